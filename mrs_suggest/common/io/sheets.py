"""Sheets that people fill in with a spreadsheet program: CSV in UTF-8 whose texts survive the program.

CSV has no types: a cell that begins with = + - @ would run as a formula, a short one with a digit would become a number
or a date. Such a cell, and one that begins with an apostrophe, gets one apostrophe in front (`escaped`); reading takes
one off (`restored`). Programs that drop the apostrophe, change line endings or upper-case TRUE do no harm, since texts
are compared without these (`text_hash`).
"""

import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256

BULLET = "•"  # nothing that begins with it is a value or formula
# What begins a formula in some program, in full width in Japanese ones; and the apostrophe itself.
RISKY = "=+-@＝＋－＠'"
VALUE_WORDS = 3  # a number, amount, time or date has no more words: Mon 5 May 2020, 1e5 USD
_WORD = re.compile(r"[^\W\d_]+")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet program reads as a formula, a number or a date.

    >>> escaped("=1+1"), escaped("5/6"), escaped("yes")
    ("'=1+1", "'5/6", 'yes')
    """
    value = any(letter.isnumeric() for letter in text) and len(_WORD.findall(text)) <= VALUE_WORDS
    first = next((letter for letter in text if not letter.isspace() and unicodedata.category(letter)[0] != "C"), " ")
    return f"'{text}" if first in RISKY or (value and first != BULLET) else text


def restored(cell: str) -> str:
    """The text of a cell that `escaped` made."""
    return cell.removeprefix("'")


def text_hash(text: str) -> str:
    """Hash of what spreadsheet programs do not change: letters without case, runs of white space as one."""
    plain = " ".join(unicodedata.normalize("NFC", text.casefold()).split())
    return hashlib.sha256(plain.encode("utf-8")).hexdigest()[:16]


def is_altered(cell: str, made: str) -> bool:
    """Whether a cell's text is another than the one whose `text_hash` is `made`."""
    return made not in (text_hash(restored(cell)), text_hash(cell))


def sheet_bytes(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """CSV with a byte order mark, by which spreadsheet programs recognize UTF-8. Texts must be `escaped`."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8-sig")


def read_sheet(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield row numbers (the header has 1) and cells by column; empty rows and other columns are left out.

    Separators may be commas, semicolons or tabs: what programs write differs by country.

    Raises:
        InputError: not UTF-8, not CSV, or a column is missing.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; save the file as CSV in UTF-8.") from None
    for delimiter in ",;\t":
        try:
            records = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
        except csv.Error as error:
            raise InputError(f"{path}: not a CSV file ({error}); save the file as CSV in UTF-8.") from None
        header = [name.strip().casefold() for name in records[0]] if records else []
        if set(columns) <= set(header):
            break
    else:
        raise InputError(f"{path}, row 1: expected the columns {', '.join(columns)}; restore the header.")
    places = {column: header.index(column) for column in columns}
    for row, cells in enumerate(records[1:], start=2):
        if any(cell.strip() for cell in cells):
            yield row, {column: cells[place] if place < len(cells) else "" for column, place in places.items()}


def item_of_row(
    where: str,
    cells: Mapping[str, str],
    texts: Mapping[int, Sequence[str]],
    columns: Sequence[str],
    seen: Container[int],
) -> int:
    """The number in the column `item` of a row that is not in an earlier row and whose texts were not changed.

    Args:
        texts: number of each item -> hash of its text in each of `columns`.
    """
    found = cells["item"].strip()
    number = int(found) if re.fullmatch("[0-9]{1,9}", found) else 0
    if number not in texts:
        raise InputError(
            f"{where}: the column 'item' has {found[:40]!r}, which is not one of the items 1 to {len(texts)}; restore "
            "the number, or remove the row."
        )
    if number in seen:
        raise InputError(f"{where}: item {number} appears twice; delete one of the rows.")
    for column, made in zip(columns, texts[number], strict=True):
        if is_altered(cells[column], made):
            raise InputError(
                f"{where}: the column {column!r} of item {number} was altered, so the answer may be about another "
                "text; restore the original text."
            )
    return number


def sheets_in(place: Path) -> dict[str, str]:
    """Name -> SHA-256 of the CSV files of a folder, without those that programs hide."""
    return {p.name: file_sha256(p) for p in sorted(place.glob("*.csv")) if p.is_file() and p.name[0] not in ".~"}


def require_unfilled(place: Path, files: Mapping[str, str], out: Path) -> None:
    """Refuse to overwrite the folder `out` if one of its sheets was filled in.

    Args:
        files: name -> SHA-256 of each sheet as it was made.
    """
    for name, found in sheets_in(place).items():
        if files.get(name) != found:
            raise InputError(f"{place / name} has been filled in; move {out} away instead of overwriting it.")


def and_more(entries: Sequence[Any]) -> str:
    """The number of further faults, as the end of a sentence about the first one."""
    return f" (and {len(entries) - 1} more)" if len(entries) > 1 else ""
