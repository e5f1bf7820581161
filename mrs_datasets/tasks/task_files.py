"""A user's own rows for a task of a benchmark, in addition to the prepared data: one file with the task's columns."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.readers.sources import parse_object
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.io.lines import read_lines

if TYPE_CHECKING:
    from datasets import Dataset

KINDS = (".parquet", ".jsonl")


def read_task_file(path: Path, schema: pa.Schema) -> Dataset:
    """The rows of a Parquet file, or of a file of JSON lines; columns that the task does not have are left out.

    Args:
        schema: the task's columns, as in the catalogue; all are needed, and none may be null.

    Raises:
        InputError: the file is missing, damaged, empty, of another kind, or lacks a column.
    """
    from datasets import Dataset

    if path.suffix not in KINDS:
        raise InputError(f"{path}: expected a file {' or '.join(f'*{kind}' for kind in KINDS)}.")
    if not path.is_file():
        raise InputError(f"{path}: no such file.")
    table = _parquet(path, schema) if path.suffix == KINDS[0] else _json_lines(path, schema)
    if not table.num_rows:
        raise InputError(f"{path}: the file is empty; expected one example a row.")
    for name in schema.names:
        if table[name].null_count:
            row = table[name].is_null().to_pylist().index(True) + 1
            raise InputError(f"{path}, row {row}: {name} is missing; training rows need every column.")
    digest = hashlib.blake2b(f"{file_sha256(path)} {schema}".encode(), digest_size=16)
    return Dataset(table, fingerprint=digest.hexdigest())


def _parquet(path: Path, schema: pa.Schema) -> pa.Table:
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({first_line(error)}).") from None
    lacking = [name for name in schema.names if name not in table.column_names]
    if lacking:
        raise InputError(
            f"{path}: has no column {lacking[0]}; expected {', '.join(schema.names)}, found "
            f"{', '.join(table.column_names)}."
        )
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise InputError(f"{path}: a column is of another type ({first_line(error)}).") from None


def _json_lines(path: Path, schema: pa.Schema) -> pa.Table:
    rows: list[dict[str, Any]] = []
    for number, line in read_lines(path):
        row = parse_object(f"{path}, line {number}", line)
        lacking = [name for name in schema.names if row.get(name) is None]
        if lacking:
            raise InputError(f"{path}, line {number}: has no {lacking[0]}; expected {', '.join(schema.names)}.")
        rows.append(row)
    try:
        return pa.Table.from_pylist(rows, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{path}: a value is of another type ({first_line(error)}).") from None
