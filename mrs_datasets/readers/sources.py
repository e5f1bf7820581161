"""Functions that the readers of published data sets share: the files of a source, JSON lines, and their columns."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from mrs_datasets.catalogue import Column, DatasetRecord, Kind
from mrs_datasets.prepared.report import Report
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED, NUL, read_lines
from mrs_suggest.common.text.text import is_blank

Row = dict[str, Any]
Key = tuple[str, ...]  # config and split, in some formats also the kind of a file
MAX_NUMBER = 1 << 31  # of an identifier


def folders_of(source: Path) -> list[Path]:
    """A source and its direct subfolders, since archives have one enclosing folder; none if it is not a folder."""
    return [source, *sorted(path for path in source.iterdir() if path.is_dir())] if source.is_dir() else []


def find_files(
    sources: Iterable[Path], files: Callable[[Path], Iterable[tuple[Key, Path]]], expected: str
) -> dict[Key, Path]:
    """The file of each part of a data set.

    Args:
        expected: ends the sentence about a source without any part.

    Raises:
        InputError: a source has no part, or two files are the same part.
    """
    found: dict[Key, Path] = {}
    for source in sources:
        parts = list(files(source))
        if not parts:
            raise InputError(f"{source}: {expected}.")
        for key, path in parts:
            other = found.setdefault(key, path)
            if other != path:
                raise InputError(f"{path}: {'/'.join(key)} is in {other} already; keep one of them.")
    return found


def note_size(report: Report, record: DatasetRecord, config: str, split: str, rows: int) -> None:
    """Note a split whose number of rows is not that of a complete source."""
    expected = record.kind_of(config).rows_of(record.language_of(config)).get(split)
    if expected not in (None, rows):
        report.notes.append(f"{config}: the {split} split has {rows:,} rows, a complete source has {expected:,}.")
        report.partial_splits.append(f"{config}/{split}")


def lacking(record: DatasetRecord, kind: Kind, found: Iterable[Key], optional: Iterable[str] = ()) -> list[str]:
    """The configs of a kind that a source does not have, then the missing `config/split` of others.

    Args:
        optional: `config/split` that a complete source may lack.
    """
    parts = {key[:2] for key in found}
    have = {config for config, _ in parts}
    configs = [config for config, _, own in record.configs() if own is kind]
    missing = [f"{one}/{split}" for one in configs if one in have for split in kind.splits if (one, split) not in parts]
    return [*(one for one in configs if one not in have), *(part for part in missing if part not in set(optional))]


def as_number(text: str) -> float:
    """The number in a text; NaN if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def read_json_rows(path: Path) -> Iterator[tuple[str, Row]]:
    """Yield (file and line, for errors; the object) of a published file of JSON lines."""
    for number, line in read_lines(path, as_published=True):
        where = f"{path}, line {number}"
        yield where, parse_object(where, line)


def parse_object(where: str, line: str) -> Row:
    """The JSON object in a line, without repeated keys or half characters; `where` starts the sentence of an error."""
    if not line.strip():
        raise InputError(f"{where}: an empty line; expected one JSON object per line.")

    def distinct(items: list[tuple[str, Any]]) -> Row:
        keys = [key for key, _ in items]
        if len(set(keys)) < len(keys):  # Python would silently keep the last value
            key = next(key for key in keys if keys.count(key) > 1)
            raise InputError(f"{where}: the key {key!r} is repeated in one object; keep one of them.")
        return dict(items)

    try:
        row = json.loads(line, object_pairs_hook=distinct)
        if "\\u" in line:  # an escape can name half a surrogate pair, which UTF-8 cannot hold
            json.dumps(row, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(
            f"{where}: half a character (an escape \\ud800 to \\udfff alone); fetch the file again."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a JSON object ({error}); the line may be truncated.") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(row).__name__}.")
    return row


def checked_row(where: str, row: Row, columns: Mapping[str, Column]) -> Row:
    """The values of some columns of the catalogue: of their types, among the allowed values, no text blank."""
    for name, column in columns.items():
        value = row.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if column.dtype == "string":
            wrong = "a text" if not isinstance(value, str) or is_blank(value) else ""
            if column.values and value not in column.values:
                wrong = wrong or " or ".join(column.values)
        elif column.dtype == "bool":
            wrong = "" if isinstance(value, bool) else "true or false"
        elif not whole:
            wrong = "a whole number"
        elif column.names:
            wrong = "" if value in range(len(column.names)) else " or ".join(map(str, range(len(column.names))))
        else:
            wrong = "" if 0 <= value < MAX_NUMBER else "the number of the example, from 0"  # type: ignore[operator]
        if wrong:
            found = repr(value)[:60] if name in row else "nothing"
            raise InputError(f"{where}: expected {name!r} to be {wrong}, found {found}.")
        if isinstance(value, str) and "\0" in value:
            raise InputError(f"{where}: {name!r} has {NUL} in it; {EDITED}")
    return {name: row[name] for name in columns}
