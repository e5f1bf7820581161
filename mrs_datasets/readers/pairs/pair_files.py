"""Rows of one file of message-reply pairs: TSV, CSV or JSON lines, plain or compressed.

LANG.tsv      message, tab, reply; a header line is recognised
LANG.csv      with a header line; quoted cells may contain line ends; the separator is a comma, semicolon or tab
LANG.jsonl    one object per line
"""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mrs_datasets.prepared.report import Report
from mrs_datasets.readers.sources import parse_object
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import NUL, read_lines

STOP, SKIP = "stop", "skip"
MESSAGE, REPLY = "message", "reply"
# A TSV's first line is a header if it has one name of each, in any case.
LEFT_NAMES = frozenset(
    ["message", "prompt", "question", "query", "context", "input", "source", "post", "comment", "utterance", "text"]
)
RIGHT_NAMES = frozenset(["reply", "response", "answer", "output", "target", "completion", "comment"])
OTHER_WIDTH = "another number of columns than the header"


class Row(NamedTuple):
    """One pair, unchanged; `where` is its place for a report (`es.tsv:17`)."""

    where: str
    message: str
    reply: str


class Columns(NamedTuple):
    """The names of the two columns, if the format has names."""

    message: str = MESSAGE
    reply: str = REPLY


class Broken(NamedTuple):
    """Handles a row that breaks the layout: stops, or counts it in the report.

    Attributes:
        on_error: `stop` or `skip`.
    """

    report: Report
    part: str
    source: str
    name: str
    on_error: str = STOP

    def place(self, number: int) -> str:
        """A row's place in the report."""
        return f"{self.name}:{number}"

    def __call__(self, number: int, reason: str, sentence: str, unit: str = "line") -> None:
        """Stop with a sentence; with `skip`, count the row as dropped for `reason`."""
        if self.on_error != SKIP:
            raise InputError(
                f"{self.source}, {unit} {number}: {sentence}; correct it, or leave such rows out with --on-error skip."
            )
        self.report.drop(self.part, reason, where=self.place(number))


def format_of(path: Path) -> str | None:
    """`.tsv`, `.csv` or `.jsonl`, also of `.gz` and `.xz` files; None for any other file."""
    name = path.name.removesuffix(".gz").removesuffix(".xz")
    return next((ending for ending in READERS if name.endswith(ending)), None)


def stem_of(path: Path) -> str:
    """The name of a file of pairs without its endings."""
    return path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(format_of(path) or "")


def read_rows(path: Path, columns: Columns, broken: Broken) -> Iterator[Row]:
    """Yield the rows of a file of pairs unchanged.

    Rows that are not UTF-8, contain a NUL, or have too few or too many cells go to `broken`; a header line and further
    columns are noted in its report.
    """
    empty = True
    for number, (message, reply) in READERS[format_of(path) or ""](path, columns, broken):
        empty = False
        yield Row(broken.place(number), message, reply)
    if empty and not broken.report.dropped.get(broken.part):
        raise InputError(f"{path}: the file is empty; expected one message and reply per line.")


Pairs = Iterator[tuple[int, tuple[str, str]]]  # number of the line, message and reply


def _tsv(path: Path, columns: Columns, broken: Broken) -> Pairs:
    (left, right), width = (0, 1), 0
    for number, line in read_lines(path, tolerant=True):
        cells = line.split("\t")
        if number == 1 and (found := _tsv_header(path, cells, columns)):
            (left, right), width = found, len(cells)
            broken.report.find(broken.part, "header line, left out", broken.place(number))
        elif _unreadable(number, line, broken):
            continue
        elif len(cells) < 2 or (width and len(cells) != width):
            expected = f"{width} columns as in the header" if width else "message and reply separated by a tab"
            found_columns = "one column" if len(cells) == 1 else f"{len(cells)} columns"
            reason = OTHER_WIDTH if width else "fewer than two columns"
            broken(number, reason, f"expected {expected}, found {found_columns} ({line[:60]!r})")
        else:
            if len(cells) > 2 and not width:
                broken.report.find(broken.part, "further columns, left out", broken.place(number))
            yield number, (cells[left], cells[right])


def _tsv_header(path: Path, cells: Sequence[str], columns: Columns) -> tuple[int, int] | None:
    """The positions of message and reply by a header line; None if the first line is not one."""
    if _has(cells, columns):
        return _positions(path, cells, columns)
    if columns != Columns():
        raise _no_column(path, cells, columns)
    names = _names(cells)
    return (0, 1) if len(names) > 1 and names[0] in LEFT_NAMES and names[1] in RIGHT_NAMES else None


def _csv(path: Path, columns: Columns, broken: Broken) -> Pairs:
    lines = (line + "\n" for _, line in read_lines(path, tolerant=True))
    first = next(lines, None)
    if first is None:
        return
    headers = {separator: next(csv.reader([first], delimiter=separator), []) for separator in ",;\t"}
    separator = next((one for one, cells in headers.items() if _has(cells, columns)), None)
    if separator is None:
        raise _no_column(path, headers[","], columns)
    header = headers[separator]
    left, right = _positions(path, header, columns)
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 2  # the row's first line; the header is line 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            broken(number, "broken CSV", f"not a CSV row ({error}); a quote may not be closed")
            continue
        if not cells or _unreadable(number, "".join(cells), broken):  # no cells: an empty line
            continue
        if len(cells) != len(header):
            broken(number, OTHER_WIDTH, f"expected {len(header)} cells as in the header, found {len(cells)}")
            continue
        yield number, (cells[left], cells[right])


def _positions(path: Path, header: Sequence[str], columns: Columns) -> tuple[int, int]:
    """The positions of the two columns; an exact name takes precedence over one in another case."""
    found = []
    for wanted in columns:
        places = [place for place, cell in enumerate(header) if cell.strip() == wanted]
        places = places or [place for place, name in enumerate(_names(header)) if name == wanted.casefold()]
        if len(places) > 1:
            raise InputError(
                f"{path}, line 1: {len(places)} columns are called {wanted!r}; rename all but one of them."
            )
        found.append(places[0])
    return found[0], found[1]


def _names(cells: Sequence[str]) -> list[str]:
    return [cell.strip().casefold() for cell in cells]


def _has(cells: Sequence[str], columns: Columns) -> bool:
    return {name.casefold() for name in columns} <= set(_names(cells))


def _no_column(path: Path, cells: Sequence[str], columns: Columns) -> InputError:
    shown = ", ".join(repr(cell.strip()[:30]) for cell in cells[:8])
    return InputError(
        f"{path}, line 1: expected a header with the columns {columns.message!r} and {columns.reply!r}, found {shown}; "
        "name the columns with --message-column and --reply-column."
    )


def _json(path: Path, columns: Columns, broken: Broken) -> Pairs:
    for number, line in read_lines(path, tolerant=True):
        if _unreadable(number, line, broken):
            continue
        try:
            row = parse_object("", line)
        except InputError as error:
            broken(number, "no JSON object", str(error).removeprefix(": ").rstrip("."))
            continue
        texts = row_texts(row, columns, broken, number)
        if texts:
            yield number, texts


READERS = {".tsv": _tsv, ".csv": _csv, ".jsonl": _json}


def row_texts(
    row: dict[str, Any], columns: Columns, broken: Broken, number: int, unit: str = "line"
) -> tuple[str, str] | None:
    """Message and reply of a row with names, null as an empty text; None if it went to `broken`."""
    texts = []
    for name in columns:
        if name not in row:
            keys = ", ".join(map(repr, list(row)[:8])) or "none"
            problem = f"expected the key {name!r}, found {keys} (--message-column and --reply-column name the keys)"
            broken(number, f"no key {name!r}", problem, unit)
            return None
        value = "" if row[name] is None else row[name]
        if not isinstance(value, str):
            broken(number, f"no text under {name!r}", f"expected {name!r} to be a text, found {value!r:.60}", unit)
            return None
        texts.append(value)
    if any("\0" in text for text in texts):
        broken(number, "NUL character", f"{NUL}, which no text has", unit)
        return None
    return texts[0], texts[1]


def _unreadable(number: int, text: str, broken: Broken) -> bool:
    """Whether a line (read with `tolerant`) is not a text; then it went to `broken`."""
    if "\0" in text:
        broken(number, "NUL character", f"{NUL}, which no text has; the file may be UTF-16")
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        place = f"byte {ord(text[error.start]) - 0xDC00:#04x} at position {error.start}"
        broken(number, "not UTF-8", f"not UTF-8 ({place}), convert the file to UTF-8")
        return True
    return False
