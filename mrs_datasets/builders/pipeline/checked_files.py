"""Files between the stages that appear whole and reveal damage: Arrow batches with checksums, and arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.work_folder import unreachable, writing
from mrs_suggest.common.errors import InputError, MissingExtraError, RemoteError, first_line
from mrs_suggest.common.io.storage import Location, local_file, open_arrow, open_stream, publish

try:
    from xxhash import xxh3_64
except ImportError:
    raise MissingExtraError("xxhash", "reddit", "a build in stages") from None


@contextmanager
def whole_file(path: Location) -> Iterator[Path]:
    """A temporary local path, which becomes `path` when the block ends without an error.

    Raises:
        InputError: the disk reports an error.
    """
    with writing(path), local_file(path) as temporary:
        yield temporary
        publish(temporary, path)


def damaged(path: Location, reason: str) -> InputError:
    """The error for a damaged file between the stages."""
    return InputError(f"{path}: is damaged ({reason}); delete it and continue with --resume.")


# --- Arrow batches --------------------------------------------------------------------------------------------------


def write_batches(path: Location, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches as they come, each column with its checksum; the file appears whole.

    Raises:
        InputError: the disk reports an error.
    """
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with whole_file(path) as temporary:
        sink = pa.OSFile(str(temporary), "wb")
        with sink, pa.ipc.new_file(sink, schema, options=options) as writer:
            for batch in batches:
                write_checked(writer, batch)


def read_batches(path: Location, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield these columns of all batches in their order, one batch in memory at a time.

    Raises:
        InputError: the file is damaged.
    """
    with _reading(path), open_arrow(path) as source:
        reader = _reader_of(source, columns)
        for number in range(reader.num_record_batches):
            yield read_checked(reader, number).select(list(columns))


def read_pairs(path: Location, language: str, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """The rows of a language in a file ordered by `language`, and the number of the first of them in the file.

    Raises:
        InputError: the file is damaged.
    """
    with _reading(path), open_arrow(path) as source:
        languages = _reader_of(source, ["language"])
        before, numbers = 0, []  # rows before the batches that may have the language, and these batches
        for number in range(languages.num_record_batches):
            found = read_checked(languages, number)["language"]
            if not len(found) or found[-1].as_py() < language:
                before += len(found)
            elif found[0].as_py() <= language:
                numbers.append(number)
        reader = _reader_of(source, [*columns, "language"])
        table = pa.Table.from_batches([read_checked(reader, number) for number in numbers], reader.schema)
        rows = np.flatnonzero(pc.equal(table["language"], language).to_numpy())
        first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return table.select(list(columns)).slice(first, end - first), before + first


@contextmanager
def _reading(path: Location) -> Iterator[None]:
    """Turn what Arrow and the storage raise for a damaged or unreachable file into a sentence."""
    try:
        yield
    except RemoteError as error:
        raise unreachable(path, error) from None
    except (pa.ArrowException, OSError, UnicodeDecodeError, SystemError) as error:
        raise damaged(path, first_line(error)) from None


def _reader_of(source: pa.NativeFile, columns: Sequence[str]) -> pa.RecordBatchFileReader:
    schema = pa.ipc.open_file(source).schema
    wanted = sorted({schema.get_field_index(name) for name in columns})
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))


def write_checked(
    writer: pa.RecordBatchFileWriter, batch: pa.RecordBatch, metadata: Mapping[str, bytes] | None = None
) -> None:
    """Write a batch with a checksum of each column in its metadata, besides other metadata."""
    checksums = {name: column_checksum(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    writer.write_batch(batch, custom_metadata={**checksums, **(metadata or {})})


def read_checked(reader: pa.RecordBatchFileReader, number: int) -> pa.RecordBatch:
    """A batch, after comparing its checksums.

    Raises:
        pa.ArrowInvalid: it is damaged.
    """
    batch, checksums = reader.get_batch_with_custom_metadata(number)
    batch.validate(full=True)  # first: a broken offset would crash the process later
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if (checksums or {}).get(name.encode()) != column_checksum(column):
            raise pa.ArrowInvalid(f"the column {name} of batch {number} has another checksum than when it was written")
    return batch


def column_checksum(column: pa.Array) -> bytes:
    """XXH3 over lengths and contents of a column, the same for a slice and after reading it back.

    Raises:
        pa.ArrowInvalid: there is a null.
    """
    digest = xxh3_64()
    if column.null_count:
        raise pa.ArrowInvalid("it has nulls")
    if len(column) and pa.types.is_string(column.type):
        _, offsets, content = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        digest.update(bounds - bounds[0])
        if content is not None:  # None: all strings are empty
            digest.update(memoryview(content)[bounds[0] : bounds[-1]])
    elif len(column):
        digest.update(column.to_numpy())
    return str(digest.hexdigest()).encode()


# --- Arrays ---------------------------------------------------------------------------------------------------------


def write_array(path: Location, array: npt.NDArray[np.generic]) -> None:
    """Write an array; the file appears whole.

    Raises:
        InputError: the disk reports an error.
    """
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def read_array(path: Location) -> npt.NDArray[np.generic]:
    """The array in a file: memory-mapped if it is local, else in memory.

    Raises:
        InputError: the file is damaged.
    """
    try:
        if isinstance(path, Path):
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        with open_stream(path) as file:
            return np.asarray(np.load(file, allow_pickle=False))
    except RemoteError as error:
        raise unreachable(path, error) from None
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, first_line(error)) from None


def read_codes(path: Location, rows: int, of: str = "rows") -> npt.NDArray[np.uint8]:
    """The codes, one byte each, that were written for `rows` rows.

    Raises:
        InputError: the file is damaged.
    """
    codes = read_array(path)
    if codes.shape != (rows,) or codes.dtype != np.uint8:
        raise damaged(path, f"it has {codes.size:,} entries for {rows:,} {of}")
    return np.asarray(codes, np.uint8)
