"""A response set as a person writes it: lines, or a table or JSON lines with replies, weights, tags and examples."""

import csv
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mrs_suggest.common.command_parser import did_you_mean
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

COLUMNS = ("reply", "weight", "tags", "examples")
EXAMPLE = '{"reply": "Yes, please.", "weight": 3, "tags": ["yes"], "examples": ["Coffee?"]}'
TAG = re.compile(r"[\w.:-]{1,64}")
_BETWEEN_TAGS = re.compile(r"[;,|\s]+")
_BETWEEN_EXAMPLES = re.compile(r"[|\r\n]+")


@dataclass(frozen=True)
class ResponseRow:
    """One reply of a file.

    Attributes:
        number: of its line, from 1.
        weight: how often it is given, in any unit; None: not stated.
        tags: by which requests allow or deny it.
        examples: messages that it answers.
    """

    number: int
    reply: str
    weight: float | None = None
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


def read_response_file(path: Path) -> list[ResponseRow]:
    """Read the replies of a file, blank ones too, so that they can be reported.

    A `.csv` (with quotes, as spreadsheets write it) or `.tsv` file (without) has a header with the column `reply` and
    perhaps `weight`, `tags` (several with spaces or `;` between them) and `examples` (several with `|` or a line break
    between them). A `.jsonl` file has an object with these keys on each line, tags and examples as a list or a text.
    Any other file has a reply on each line. Each may be packed (`.gz`, `.xz`).

    Raises:
        InputError: the file is missing or empty, a column is missing or unknown, or a row has too many cells, a weight
            that is not a number of 0 or more, a tag with other characters than letters, digits and `_.:-`, or a line of
            JSON is not an object with these keys.
    """
    kind = Path(path.name.removesuffix(".gz").removesuffix(".xz")).suffix.lower()
    if kind in (".csv", ".tsv"):
        rows = list(_table(path, "," if kind == ".csv" else "\t"))
    elif kind == ".jsonl":
        rows = list(_objects(path))
    else:
        rows = [ResponseRow(number, line.strip()) for number, line in read_lines(path)]
    if not rows:
        raise InputError(f"{path}: has no reply; expected one on each line, or in the column reply of a table.")
    stated = [row.weight is not None for row in rows if row.reply]
    if any(stated) and not all(stated):
        row = next(row for row in rows if row.reply and row.weight is None)
        raise InputError(f"{path}, line {row.number}: no weight, and other rows have one; add it, or leave all out.")
    if any(stated) and not any(row.weight for row in rows):
        raise InputError(f"{path}: every weight is 0; expected how often each reply is given.")
    return rows


def _table(path: Path, delimiter: str) -> Iterator[ResponseRow]:
    columns: list[str] | None = None
    for number, cells in _cells(path, delimiter):
        where = f"{path}, line {number}"
        if columns is None:
            columns = [cell.strip().lower() for cell in cells]
            unknown = [name for name in columns if name not in COLUMNS]
            if "reply" not in columns or unknown or len(set(columns)) < len(columns):
                what = f"unknown column {unknown[0]!r}{did_you_mean(unknown[0], COLUMNS)}; " if unknown else ""
                raise InputError(
                    f"{where}: {what}expected a header with the columns reply and, optionally, weight, tags and "
                    f"examples, separated by {'commas' if delimiter == ',' else 'tabs'}; found {' '.join(columns)!r}."
                )
        elif len(cells) > len(columns):
            advice = "; put a text with ',' in quotes" if delimiter == "," else ""
            raise InputError(f"{where}: {len(cells)} cells, and the header has {len(columns)}{advice}.")
        else:
            row = dict(zip(columns, cells, strict=False))
            examples = _BETWEEN_EXAMPLES.split(row.get("examples", ""))
            yield _row(where, number, row.get("reply", ""), row.get("weight", ""), row.get("tags", ""), examples)


def _objects(path: Path) -> Iterator[ResponseRow]:
    for number, line in read_lines(path):
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
            json.dumps(row, ensure_ascii=False).encode()  # an escape can name half a character
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not JSON ({error}); expected an object such as {EXAMPLE}.") from None
        if not isinstance(row, dict) or not isinstance(row.get("reply"), str) or set(row) - set(COLUMNS):
            raise InputError(f"{where}: expected an object such as {EXAMPLE}, found {line[:60]}.")
        examples = row.get("examples") or []
        texts = _BETWEEN_EXAMPLES.split(examples) if isinstance(examples, str) else examples
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise InputError(f"{where}: expected examples to be a list of texts.")
        yield _row(where, number, row["reply"], _as_text(row.get("weight")), _as_text(row.get("tags")), texts)


def _as_text(value: Any) -> str:
    """A weight, or tags, as the cell of a table would have them."""
    return "" if value is None else ";".join(map(str, value)) if isinstance(value, list) else str(value)


def _row(where: str, number: int, reply: str, weight: str, tags: str, examples: list[str]) -> ResponseRow:
    names = [tag for tag in _BETWEEN_TAGS.split(tags) if tag]
    if wrong := next((tag for tag in names if not TAG.fullmatch(tag)), None):
        raise InputError(f"{where}: the tag {wrong!r} has other characters than letters, digits and _ . : -")
    value = _weight(where, weight.strip()) if weight.strip() else None
    messages = tuple(dict.fromkeys(text.strip() for text in examples if text.strip()))
    return ResponseRow(number, reply.strip(), value, tuple(dict.fromkeys(names)), messages)


def _cells(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line on which a row begins, its cells)."""
    lines = (line + "\n" for _, line in read_lines(path, any_line_end=True))
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if delimiter == "," else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    begin = 1
    try:
        for cells in reader:
            yield begin, cells
            begin = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{path}, line {begin}: cannot be read as a table ({error}); check its quotes.") from None


def _weight(where: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"{where}: the weight is {text!r}; expected a number of 0 or more, such as a count.")
    return value
