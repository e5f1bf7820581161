"""Refuses prepared data that no command can read: other columns, nulls, invalid UTF-8, huge texts.

Opening a folder compares the schemas of its Parquet files; texts are checked when their split is loaded. `mrs data
check` lists all such faults instead of stopping at the first.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.catalogue import DatasetRecord
from mrs_suggest.common.errors import InputError

MAX_TEXT_BYTES = 1 << 20  # chosen: 26 times the longest comment of Reddit (40,000 characters)
ADVICE = "prepare the folder again, or run `mrs data check` to list all faults"
Place = Callable[[int], str]  # the number of a row among all rows -> where it is, for a sentence


def required_columns(record: DatasetRecord, config: str) -> list[str]:
    """The columns of a config in which every row has a value."""
    kind = record.kind_of(config)
    return [name for name in kind.columns if not record.columns[name].optional and name not in kind.hidden]


def require_columns(found: pa.Schema, record: DatasetRecord, config: str, where: str) -> None:
    """Refuse a schema that lacks a required column of a config, or has a column of another type (InputError)."""
    needed = required_columns(record, config)
    for field in record.schema(config):
        if field.name in found.names:
            own = found.field(field.name).type
            if not same_type(own, field.type) and (field.name in needed or not pa.types.is_null(own)):
                raise InputError(f"{where}, column {field.name!r}: holds {own}, expected {field.type}; {ADVICE}.")
        elif field.name in needed:
            raise InputError(
                f"{where}: has no column {field.name!r}, only {', '.join(found.names) or 'none'}; {ADVICE}."
            )


def same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether two types store the same values: offsets of any width, and any name for the items of a list."""
    if pa.types.is_large_string(found):
        found = pa.string()
    if pa.types.is_list(expected) and (pa.types.is_list(found) or pa.types.is_large_list(found)):
        return same_type(found.value_type, expected.value_type)
    if pa.types.is_struct(expected) and pa.types.is_struct(found):
        fields = {field.name: field.type for field in found}
        return set(fields) == {field.name for field in expected} and all(
            same_type(fields[field.name], field.type) for field in expected
        )
    return bool(found == expected)


def require_values(table: pa.Table, required: Iterable[str], place: Place) -> None:
    """Refuse rows with a null in a required column, with invalid UTF-8, or with a text above `MAX_TEXT_BYTES`
    (InputError, which names row and column)."""
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
    """The place of a row of a batch that begins with row `start`."""
    return f"{what}, row {start + row} (from 0)"


def place_in(files: list[Path]) -> Place:
    """The places of rows that are those of these files in order."""

    def place(row: int) -> str:
        for path in files:
            rows = pq.read_metadata(path).num_rows
            if row < rows:
                return row_of(path, 0, row)
            row -= rows
        raise AssertionError(row)

    return place


def _first_bad_text(chunk: pa.Array) -> tuple[int, str] | None:
    """The first row with an unusable text, and the reason."""
    texts, rows = chunk, np.arange(len(chunk))  # the row of each text
    while pa.types.is_list(texts.type) or pa.types.is_large_list(texts.type):
        rows = rows[np.asarray(pc.list_parent_indices(texts))]
        texts = texts.flatten()
    for values in texts.flatten() if pa.types.is_struct(texts.type) else [texts]:
        if not (pa.types.is_string(values.type) or pa.types.is_large_string(values.type)):
            continue
        lengths = np.asarray(pc.fill_null(pc.binary_length(values), 0))
        if (lengths > MAX_TEXT_BYTES).any():
            first = int(np.argmax(lengths > MAX_TEXT_BYTES))
            return int(rows[first]), f"a text of {lengths[first]:,} bytes, where {MAX_TEXT_BYTES:,} are allowed"
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            for number, text in enumerate(values):
                try:
                    text.as_py()
                except UnicodeDecodeError:
                    return int(rows[number]), "not valid UTF-8"
    return None
