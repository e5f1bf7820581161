"""Second stage of a build from dumps: one month's comments, ordered by the hash of their thread, in one file.

All comments of a thread fall into one bucket, in every month, so that a bucket of all months can be joined alone (see
`join`). A file is a plain Arrow IPC file: runs of `buckets` record batches each, one a bucket and in their order, and
at the end one empty batch that carries the index. Batch number `run * buckets + bucket` is read without the others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_core.errors import InputError, MissingExtraError, first_line
from mrs_core.files import to_disk
from mrs_datasets.reddit.schema import COMMENTS
from mrs_datasets.reddit.work import writing

PARTITION = pa.schema([COMMENTS.field(name) for name in ("id", "parent_id", "link_id", "body", "created")])
MAX_BUCKETS = 1 << 16  # numpy sorts 16-bit numbers by their digits, which is several times faster
CHUNK_BYTES = 96 << 20  # a run; with 64 buckets a batch is about 1.5 MiB, which compresses as a whole month would
_MAX_CHUNK_BYTES = 1 << 30  # Arrow's strings end at 2 GiB an array
_FORMAT = {"format": "mrs-reddit-partition", "version": "1"}
_INDEX, _CHECKSUM = b"index", b"xxh3_64"
_COMPRESSION = "lz4"  # half as large again as zstd's level 1, for a third of its time to write and read


@dataclass(frozen=True)
class PartitionStats:
    """What a partition file holds.

    Attributes:
        comments: rows.
        bytes: of the file.
        runs: how many times the budget was filled.
        bucket_comments, bucket_bytes: rows, and bytes in memory before compression, of every bucket.
    """

    comments: int
    bytes: int
    runs: int
    bucket_comments: tuple[int, ...]
    bucket_bytes: tuple[int, ...]

    def as_dict(self) -> dict[str, Any]:
        """All values, as JSON has them."""
        return {**asdict(self), "bucket_comments": list(self.bucket_comments), "bucket_bytes": list(self.bucket_bytes)}


def partition(
    batches: Iterable[pa.RecordBatch], path: Path, buckets: int, chunk_bytes: int = CHUNK_BYTES
) -> PartitionStats:
    """Write the comments of `batches` into `path`, ordered by bucket, `xxhash64(link_id) % buckets`.

    Comments are gathered up to `chunk_bytes`, sorted by bucket (those of one bucket keep their order) and written as
    one run; nothing else is held, so memory is about three times the budget however many comments come. The file
    appears whole, under a temporary name until it is on the disk. Same batches, same bytes.

    Args:
        batches: with the columns of `PARTITION` and perhaps others, which are left out; a batch should be small against
            the budget.
        buckets: how many parts the join has; the same for all months.
        chunk_bytes: the budget of a run; at most 1 GiB.

    Raises:
        InputError: the file cannot be written (no such folder, no rights, disk full); nothing is left behind.
        ValueError: a number out of range, or a batch that lacks a column or has nulls in one.
    """
    if not 1 <= buckets <= MAX_BUCKETS:
        raise ValueError(f"buckets must be from 1 to {MAX_BUCKETS}, not {buckets}.")
    if not 1 <= chunk_bytes <= _MAX_CHUNK_BYTES:
        raise ValueError(f"chunk_bytes must be from 1 to {_MAX_CHUNK_BYTES}, not {chunk_bytes}.")
    rows, sizes = np.zeros(buckets, np.int64), np.zeros(buckets, np.int64)
    runs = 0
    with _whole_ipc_file(path) as writer:
        for run in _runs(batches, chunk_bytes):
            _write_run(writer, path, run, rows, sizes)
            runs += 1
        index = {"buckets": buckets, "runs": runs, "comments": rows.tolist(), "bytes": sizes.tolist()}
        with writing(path):
            writer.write_batch(_empty_batch(), custom_metadata=_as_metadata(index))
    return PartitionStats(int(rows.sum()), path.stat().st_size, runs, tuple(rows.tolist()), tuple(sizes.tolist()))


def read_stats(path: Path) -> PartitionStats:
    """What a finished partition file holds, from its index alone.

    Raises:
        InputError: there is no such file, or it is not a whole one.
    """
    with _opened(path) as (_, index):
        rows, sizes = index["comments"], index["bytes"]
        return PartitionStats(sum(rows), path.stat().st_size, index["runs"], tuple(rows), tuple(sizes))


def read_bucket(path: Path, bucket: int, buckets: int | None = None) -> pa.Table:
    """The comments of one bucket, in the order in which they were written.

    Args:
        buckets: how many the file must have (the other months' number); None: any number.

    Returns:
        A table with the schema `PARTITION`, a chunk a run.

    Raises:
        InputError: there is no such file, it is not a whole one, it has another number of buckets, or what was read is
            not what was written.
    """
    with _opened(path) as (reader, index):
        found = index["buckets"]
        if buckets is not None and buckets != found:
            raise InputError(f"{path}: has {found} buckets and the other months {buckets}; build the months again.")
        if not 0 <= bucket < found:
            raise ValueError(f"bucket must be from 0 to {found - 1}, not {bucket}.")
        parts = []
        for number in range(bucket, found * index["runs"], found):
            batch, metadata = reader.get_batch_with_custom_metadata(number)
            batch.validate(full=True)  # first of all: a broken offset would end the process further on
            if (metadata or {}).get(_CHECKSUM) != _checksum(batch):
                raise pa.ArrowInvalid(f"batch {number} has another checksum than when it was written")
            parts.append(batch)
        table = pa.Table.from_batches(parts, PARTITION)
        if table.num_rows != index["comments"][bucket]:
            raise pa.ArrowInvalid(f"bucket {bucket} has {table.num_rows} of {index['comments'][bucket]} comments")
        return table


def stable_hashes(values: pa.Array) -> NDArray[np.uint64]:
    """xxHash64 of every string (UTF-8, seed 0): the same on every machine and in every version.

    >>> stable_hashes(pa.array(["abc"])).tolist()
    [4952883123889572249]
    """
    from_bytes = _xxhash().xxh64_intdigest
    return np.fromiter(map(from_bytes, values.cast(pa.binary()).to_pylist()), np.uint64, count=len(values))


def _xxhash() -> Any:
    try:
        import xxhash
    except ImportError:
        raise MissingExtraError("xxhash", "reddit", "a build from dumps") from None
    return xxhash


def _runs(batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> Iterator[list[pa.RecordBatch]]:
    """Batches with the columns of `PARTITION`, gathered up to the budget; a batch that is larger comes alone."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        lacking = [name for name in PARTITION.names if name not in batch.schema.names]
        if lacking:
            raise ValueError(f"the batch has no column {lacking[0]!r}, only {', '.join(batch.schema.names)}.")
        kept = batch.select(PARTITION.names)
        for name, column in zip(PARTITION.names, kept.columns, strict=True):
            if column.null_count:
                raise ValueError(f"the column {name!r} has {column.null_count} nulls; none is expected.")
        if not kept.num_rows:
            continue
        if held and size + kept.nbytes > chunk_bytes:
            yield held
            held, size = [], 0
        held.append(kept)
        size += kept.nbytes
    if held:
        yield held


def _write_run(
    writer: pa.RecordBatchFileWriter,
    path: Path,
    run: list[pa.RecordBatch],
    rows: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> None:
    """Write a run, one batch a bucket (perhaps empty), and add to the counts; `run` is emptied on the way."""
    buckets = len(rows)
    links = pa.concat_arrays([batch.column("link_id") for batch in run]).dictionary_encode()
    of_link = (stable_hashes(links.dictionary) % np.uint64(buckets)).astype(np.uint16)
    of_row = of_link[links.indices.to_numpy()]
    order = pa.array(np.argsort(of_row, kind="stable"))
    columns = [
        pa.concat_arrays([batch.column(name) for batch in run]).take(order).cast(kind)
        for name, kind in zip(PARTITION.names, PARTITION.types, strict=True)
    ]
    run.clear()
    ordered = pa.RecordBatch.from_arrays(columns, schema=PARTITION)
    ends = np.cumsum(np.bincount(of_row, minlength=buckets))
    for bucket, (start, end) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
        batch = ordered.slice(start, end - start)
        with writing(path):
            writer.write_batch(batch, custom_metadata={_CHECKSUM: _checksum(batch)})
        rows[bucket] += batch.num_rows
        sizes[bucket] += batch.nbytes


def _checksum(batch: pa.RecordBatch) -> bytes:
    """XXH3 over lengths and contents of the columns, the same for a slice and for what is read back.

    Raises:
        pa.ArrowInvalid: there is a null.
    """
    digest = _xxhash().xxh3_64()
    for column in batch.columns:
        _update(digest, column)
    return _hex(digest)


def column_checksum(column: pa.Array) -> bytes:
    """The same of one column.

    Raises:
        pa.ArrowInvalid: there is a null.
    """
    digest = _xxhash().xxh3_64()
    _update(digest, column)
    return _hex(digest)


def _update(digest: Any, column: pa.Array) -> None:
    if column.null_count:
        raise pa.ArrowInvalid("it has nulls")
    if len(column) and pa.types.is_string(column.type):
        _, offsets, content = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        digest.update(bounds - bounds[0])
        if content is not None:  # all strings are empty
            digest.update(memoryview(content)[bounds[0] : bounds[-1]])
    elif len(column):
        digest.update(column.to_numpy())


def _hex(digest: Any) -> bytes:
    return str(digest.hexdigest()).encode()


def _as_metadata(index: dict[str, Any]) -> dict[bytes, bytes]:
    text = json.dumps(index).encode()
    return {_INDEX: text, _CHECKSUM: _hex(_xxhash().xxh3_64(text))}


def _empty_batch() -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], kind) for kind in PARTITION.types], schema=PARTITION)


@contextmanager
def _whole_ipc_file(path: Path) -> Iterator[pa.RecordBatchFileWriter]:
    """A writer of an Arrow file beside `path` that becomes `path` when the block ends without an error."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION, use_threads=False)
    sink = writer = None
    try:
        with writing(path):
            sink = pa.OSFile(str(partial), "wb")
            writer = pa.ipc.new_file(sink, PARTITION.with_metadata(_FORMAT), options=options)
        yield writer
        with writing(path):
            writer.close()
            sink.close()
            to_disk(partial)
            partial.replace(path)
            to_disk(path.parent)
    finally:
        if sink is not None and not sink.closed:
            sink.close()
        partial.unlink(missing_ok=True)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[pa.RecordBatchFileReader, dict[str, Any]]]:
    """The reader of a partition file and its index; whatever is found wrong with the contents names the file."""
    try:
        source = pa.OSFile(str(path), "rb")  # no memory map: a page that cannot be read would end the process
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{path}: cannot be read ({reason}); expected a partition file of a month.") from None
    with source:
        try:
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False))
            yield reader, _read_index(reader)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: is not a whole partition file ({first_line(error)}); delete it and resume."
            ) from None


def _read_index(reader: pa.RecordBatchFileReader) -> dict[str, Any]:
    """The index, checked.

    Raises:
        pa.ArrowInvalid: it is missing, or does not fit the file.
    """
    metadata = reader.schema.metadata or {}
    if not reader.schema.equals(PARTITION) or {k.decode(): v.decode() for k, v in metadata.items()} != _FORMAT:
        raise pa.ArrowInvalid("it is an Arrow file of another kind")
    if not reader.num_record_batches:
        raise pa.ArrowInvalid("it has no index")
    _, last = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)
    text = (last or {}).get(_INDEX, b"")
    if not text or (last or {}).get(_CHECKSUM) != _hex(_xxhash().xxh3_64(text)):
        raise pa.ArrowInvalid("it has no index, or a broken one")
    index: dict[str, Any] = json.loads(text)
    if reader.num_record_batches != index["buckets"] * index["runs"] + 1:
        raise pa.ArrowInvalid("its index does not fit its batches")
    return index
