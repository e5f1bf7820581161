"""The pairs of a bucket on disk, between the stages: an Arrow file, ordered by language, with a checksum per column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_core.errors import InputError, RemoteError, first_line
from mrs_core.storage import Location, local_file, open_arrow, publish
from mrs_datasets.reddit.partition_files import column_checksum
from mrs_datasets.reddit.work_folder import unreachable, writing

BATCH_ROWS = 1 << 16


def by_language(pairs: pa.Table) -> pa.Table:
    """The pairs grouped by language, else in the same order. (Sorting would put all texts into one array of 2 GiB.)"""
    languages = sorted(pc.unique(pairs["language"]).to_pylist())
    parts = [pairs.filter(pc.equal(pairs["language"], language)) for language in languages]
    return pa.concat_tables(parts) if parts else pairs


def write_pairs(path: Location, pairs: pa.Table) -> None:
    """Write pairs that are ordered by `language`; the file appears whole.

    Raises:
        InputError: the disk reports an error.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with whole_file(path) as temporary:
        sink = pa.OSFile(str(temporary), "wb")
        with sink, pa.ipc.new_file(sink, pairs.schema, options=options) as writer:
            for batch in pairs.to_batches(max_chunksize=BATCH_ROWS):
                checksums = {
                    name: column_checksum(column)
                    for name, column in zip(batch.schema.names, batch.columns, strict=True)
                }
                writer.write_batch(batch, custom_metadata=checksums)


@contextmanager
def whole_file(path: Location) -> Iterator[Path]:
    """A temporary local path, which becomes `path` when the block ends without an error.

    Raises:
        InputError: the disk reports an error.
    """
    with writing(path), local_file(path) as temporary:
        yield temporary
        publish(temporary, path)


def read_pairs(path: Location, language: str, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """The rows of a language, and the number of the first of them in the file.

    Args:
        columns: only these are read.

    Raises:
        InputError: the file is damaged.
    """
    try:
        with open_arrow(path) as source:
            before, numbers = _batches_of(source, language)
            reader = _reader(source, [*columns, "language"])
            batches = [_checked(reader, number) for number in numbers]
            table = pa.Table.from_batches(batches, reader.schema)
            rows = np.flatnonzero(pc.equal(table["language"], language).to_numpy())
            first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
            return table.select(list(columns)).slice(first, end - first), before + first
    except RemoteError as error:
        raise unreachable(path, error) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, SystemError) as error:
        raise damaged(path, first_line(error)) from None


def damaged(path: Location, reason: str) -> InputError:
    """The error for a damaged file between the stages."""
    return InputError(f"{path}: is damaged ({reason}); delete it and continue with --resume.")


def _reader(source: pa.NativeFile, columns: Sequence[str]) -> pa.RecordBatchFileReader:
    schema = pa.ipc.open_file(source).schema
    wanted = sorted({schema.get_field_index(name) for name in columns})
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))


def _checked(reader: pa.RecordBatchFileReader, number: int) -> pa.RecordBatch:
    """A batch, after comparing its checksum.

    Raises:
        pa.ArrowInvalid: it is damaged.
    """
    batch, checksums = reader.get_batch_with_custom_metadata(number)
    batch.validate(full=True)  # first: a broken offset would crash the process later
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if (checksums or {}).get(name.encode()) != column_checksum(column):
            raise pa.ArrowInvalid(f"the column {name} of batch {number} has another checksum than when it was written")
    return batch


def _batches_of(source: pa.NativeFile, language: str) -> tuple[int, list[int]]:
    """The number of rows before the batches that may have the language, and the numbers of these batches."""
    reader = _reader(source, ["language"])
    before, found = 0, []
    for number in range(reader.num_record_batches):
        languages = _checked(reader, number)["language"]
        if not len(languages) or languages[-1].as_py() < language:
            before += len(languages)
        elif languages[0].as_py() <= language:
            found.append(number)
    return before, found
