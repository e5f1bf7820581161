"""Refuses prepared data that no command can read: other columns, nulls, invalid UTF-8, huge texts.

Opening a folder reads only the footers of its Parquet files; texts are checked when their split is loaded.
`mrs data check` lists such faults instead of stopping at the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.catalogue import DatasetRecord
from mrs_suggest.common.errors import InputError, first_line

MAX_TEXT_BYTES = 1 << 20  # chosen: 26 times the longest comment of Reddit (40,000 characters)
ADVICE = "prepare the folder again, or run `mrs data check` to list all faults"
Place = Callable[[int], str]  # the number of a row among all rows -> where it is, for a sentence


def require_footers(files: Iterable[Path], record: DatasetRecord, config: str) -> None:
    """Refuse Parquet files whose columns are not those of the catalogue, or that have nulls where a value is needed.

    Only footers are read; the rows of a column are read where its statistics count nulls, to find the first one.

    Raises:
        InputError: the sentence names the file, the column and the row.
    """
    for path in files:
        try:
            with pq.ParquetFile(path) as file:
                require_columns(file.schema_arrow, record, config, str(path))
                for name, row in _nulls(file, set(required_columns(record, config))):
                    raise InputError(f"{path}, column {name!r}, row {row} (from 0): is null; {ADVICE}.")
        except (pa.ArrowException, OSError) as error:
            raise InputError(
                f"{path}: cannot be read as Parquet ({first_line(error)}); prepare the folder again."
            ) from None


def required_columns(record: DatasetRecord, config: str) -> list[str]:
    """The columns of a config in which every row has a value."""
    kind = record.kind_of(config)
    return [name for name in kind.columns if not record.columns[name].optional and name not in kind.hidden]


def require_columns(found: pa.Schema, record: DatasetRecord, config: str, where: str) -> None:
    """Refuse a schema that lacks a required column of a config, or has a column of another type.

    Raises:
        InputError: the sentence names the column.
    """
    needed = required_columns(record, config)
    for field in record.schema(config):
        if field.name not in found.names:
            if field.name in needed:
                raise InputError(
                    f"{where}: has no column {field.name!r}, only {', '.join(found.names) or 'none'}; {ADVICE}."
                )
            continue
        own = found.field(field.name).type
        if not same_type(own, field.type) and not (pa.types.is_null(own) and field.name not in needed):
            raise InputError(f"{where}, column {field.name!r}: holds {own}, expected {field.type}; {ADVICE}.")


def same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether two types hold the same values: offsets of any width, and any name for the items of a list."""
    if pa.types.is_large_string(found):
        found = pa.string()
    if pa.types.is_large_list(found):
        found = pa.list_(found.value_type)
    if pa.types.is_list(expected) and pa.types.is_list(found):
        return same_type(found.value_type, expected.value_type)
    if pa.types.is_struct(expected) and pa.types.is_struct(found):
        fields = {field.name: field.type for field in found}
        return set(fields) == {field.name for field in expected} and all(
            same_type(fields[field.name], field.type) for field in expected
        )
    return bool(found == expected)


def require_values(table: pa.Table, required: Iterable[str], place: Place) -> None:
    """Refuse rows with a null in a required column, with invalid UTF-8, or with a text above `MAX_TEXT_BYTES`.

    Raises:
        InputError: the sentence names the row and the column.
    """
    for name in required:
        if table[name].null_count:
            row = int(np.flatnonzero(np.asarray(pc.is_null(table[name])))[0])
            raise InputError(f"{place(row)}, column {name!r}: is null; {ADVICE}.")
    for name in table.column_names:
        start = 0
        for chunk in table[name].chunks:
            found = _first_bad_text(chunk)
            if found is not None:
                raise InputError(f"{place(start + found[0])}, column {name!r}: {found[1]}; {ADVICE}.")
            start += len(chunk)


def row_of(what: object, start: int, row: int) -> str:
    """Where a row of a batch is, if the batch begins with row `start`."""
    return f"{what}, row {start + row} (from 0)"


def place_in(files: list[Path]) -> Place:
    """Where a row is, if the rows are those of these files in order."""

    def place(row: int) -> str:
        for path in files:
            rows = pq.read_metadata(path).num_rows
            if row < rows:
                return row_of(path, 0, row)
            row -= rows
        raise AssertionError(row)

    return place


def _nulls(file: pq.ParquetFile, names: set[str]) -> Iterable[tuple[str, int]]:
    """Columns that hold a null by the statistics of a row group, each with its first row in that group."""
    start = 0
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        for column in map(group.column, range(group.num_columns)):
            counts = column.statistics if column.path_in_schema in names else None
            if counts is not None and counts.has_null_count and counts.null_count:
                values = file.read_row_group(number, columns=[column.path_in_schema]).column(0)
                yield column.path_in_schema, start + int(np.flatnonzero(np.asarray(pc.is_null(values)))[0])
        start += group.num_rows


def _first_bad_text(chunk: pa.Array) -> tuple[int, str] | None:
    """The first row whose texts cannot be used, and why."""
    texts, rows = chunk, None  # the row of each text; None: its own number
    while pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type):
        parents = np.asarray(pc.list_parent_indices(texts))
        rows = parents if rows is None else rows[parents]
        texts = texts.flatten()
    fields = texts.flatten() if pa.types.is_struct(texts.type) else [texts]
    for held in fields:
        if not (pa.types.is_string(held.type) or pa.types.is_large_string(held.type)):
            continue
        lengths = pc.fill_null(pc.binary_length(held), 0)
        longest = pc.max(lengths).as_py() or 0
        if longest > MAX_TEXT_BYTES:
            first = int(np.flatnonzero(np.asarray(lengths) > MAX_TEXT_BYTES)[0])
            problem = f"a text of {np.asarray(lengths)[first]:,} bytes, where {MAX_TEXT_BYTES:,} are allowed"
        elif (bad := _first_invalid(held)) is not None:
            first, problem = bad, "not valid UTF-8"
        else:
            continue
        return (first if rows is None else int(rows[first])), problem
    return None


def _first_invalid(texts: pa.Array) -> int | None:
    """The number of the first text that is not UTF-8."""
    try:
        texts.validate(full=True)
        return None
    except pa.ArrowInvalid:
        return next((n for n in range(len(texts)) if not _decodes(texts[n])), None)


def _decodes(text: pa.Scalar) -> bool:
    try:
        text.as_py()
        return True
    except UnicodeDecodeError:
        return False
