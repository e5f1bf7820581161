"""Second stage of a build from dumps: one month's comments, ordered by the hash of their thread, in one file.

All comments of a thread are in the same bucket in every month, so that a bucket of all months can be joined alone (see
`join`). Up to `GROUPS` buckets, every run is written bucket by bucket. More buckets would split a run into tiny pieces,
each of which takes a read later: then runs are first split into `GROUPS` groups of neighbouring buckets, in a separate
file, and each group, read back from all runs, is split into its buckets. So a bucket of a month is read in one go, for
the price of writing and reading the month once more.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_datasets.builders.pipeline.checked_files import xxhash
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.shards.partition_files import (
    PARTITION,
    PartitionWriter,
    new_ipc_file,
    opened,
    read_checked,
    whole_ipc_file,
    write_checked,
)
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.storage import Location, local_file
from mrs_suggest.common.io.storage import size as size_of

MAX_BUCKETS = 1 << 16  # numpy uses radix sort for 16-bit numbers, which is several times faster
CHUNK_BYTES = 96 << 20  # a run; with 64 buckets a batch is about 1.5 MiB, which compresses as a whole month would
GROUPS = 256  # so that pieces of a run have .4 MB, and a group of a month of 24 GB is as large as a run
_MAX_CHUNK_BYTES = 1 << 30  # Arrow's string arrays are limited to 2 GiB


@dataclass(frozen=True)
class PartitionStats:
    """The sizes in a partition file.

    Attributes:
        comments: rows.
        bytes: of the file.
        runs: how often the budget was filled.
        bucket_comments, bucket_bytes: rows, and bytes in memory before compression, of every bucket.
    """

    comments: int
    bytes: int
    runs: int
    bucket_comments: tuple[int, ...]
    bucket_bytes: tuple[int, ...]

    def as_dict(self) -> dict[str, object]:
        """All values, for JSON."""
        return {**asdict(self), "bucket_comments": list(self.bucket_comments), "bucket_bytes": list(self.bucket_bytes)}


def partition(
    batches: Iterable[pa.RecordBatch], path: Location, buckets: int, chunk_bytes: int = CHUNK_BYTES
) -> PartitionStats:
    """Write the comments of `batches` into `path`, ordered by bucket, `xxhash64(link_id) % buckets`.

    Comments are gathered up to `chunk_bytes`, sorted by bucket (those of one bucket keep their order) and written as
    one run; so memory is about three times the budget for any number of comments. The file appears whole, under a
    temporary name until it is on the disk. Same batches, same bytes.

    Args:
        batches: with the columns of `PARTITION` and perhaps others, which are left out; a batch should be small
            compared with the budget.
        buckets: how many parts the join has; the same for all months.
        chunk_bytes: the budget of a run; at most 1 GiB.

    Raises:
        InputError: the file cannot be written (no such folder, no rights, disk full); nothing is left behind.
        ValueError: a number is out of range, or a batch that lacks a column or has nulls in one.
    """
    if not 1 <= buckets <= MAX_BUCKETS:
        raise ValueError(f"buckets must be from 1 to {MAX_BUCKETS}, not {buckets}.")
    if not 1 <= chunk_bytes <= _MAX_CHUNK_BYTES:
        raise ValueError(f"chunk_bytes must be from 1 to {_MAX_CHUNK_BYTES}, not {chunk_bytes}.")
    with whole_ipc_file(path) as writer:
        out = PartitionWriter(writer, path, buckets)
        pieces = _runs(batches, chunk_bytes)
        runs = _write_runs(pieces, out) if buckets <= GROUPS else _write_groups(pieces, out, path, chunk_bytes)
        out.finish(runs)
        rows, sizes = tuple(out.comments.tolist()), tuple(out.bytes.tolist())
    return PartitionStats(sum(rows), size_of(path), runs, rows, sizes)


def read_stats(path: Location) -> PartitionStats:
    """The sizes in a finished partition file, from its index alone.

    Raises:
        InputError: there is no such file, or it is not complete.
    """
    with opened(path) as file:
        rows, sizes = tuple(file.comments.tolist()), tuple(file.bytes.tolist())
        return PartitionStats(sum(rows), size_of(path), file.runs, rows, sizes)


def read_bucket(path: Location, bucket: int, buckets: int | None = None) -> pa.Table:
    """The comments of one bucket, in the order in which they were written.

    Args:
        buckets: how many the file must have (the other months' number); None: any number.

    Returns:
        A table with the schema `PARTITION`, in as many chunks as it was written in.

    Raises:
        InputError: there is no such file, it is not complete, it has another number of buckets, or it is damaged.
    """
    with opened(path) as file:
        found = len(file.comments)
        if buckets is not None and buckets != found:
            raise InputError(f"{path}: has {found} buckets and the other months {buckets}; build the months again.")
        if not 0 <= bucket < found:
            raise ValueError(f"bucket must be from 0 to {found - 1}, not {bucket}.")
        table = pa.Table.from_batches(file.batches(bucket), PARTITION)
        if table.num_rows != file.comments[bucket]:
            raise pa.ArrowInvalid(f"bucket {bucket} has {table.num_rows} of {file.comments[bucket]} comments")
        return table


def stable_hashes(values: pa.Array) -> NDArray[np.uint64]:
    """xxHash64 of every string (UTF-8, seed 0): the same on every machine and in every version.

    >>> stable_hashes(pa.array(["abc"])).tolist()
    [4952883123889572249]
    """
    from_bytes = xxhash().xxh64_intdigest
    return np.fromiter(map(from_bytes, values.cast(pa.binary()).to_pylist()), np.uint64, count=len(values))


_Run = tuple[list[pa.RecordBatch], bool]


def _runs(batches: Iterable[pa.RecordBatch], chunk_bytes: int) -> Iterator[_Run]:
    """Batches with the columns of `PARTITION`, gathered up to the budget (a larger batch comes alone), and whether
    more follow.
    """
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
            yield held, True
            held, size = [], 0
        held.append(kept)
        size += kept.nbytes
    if held:
        yield held, False


def _ordered(run: list[pa.RecordBatch], buckets: int) -> tuple[pa.RecordBatch, NDArray[np.int64]]:
    """The comments of a run in the order of their buckets, and (buckets,) the end of each bucket; `run` is emptied."""
    links = pa.concat_arrays([batch.column("link_id") for batch in run]).dictionary_encode()
    of_link = (stable_hashes(links.dictionary) % np.uint64(buckets)).astype(np.uint16)
    of_row = of_link[links.indices.to_numpy()]
    order = pa.array(np.argsort(of_row, kind="stable"))
    columns = [
        pa.concat_arrays([batch.column(name) for batch in run]).take(order).cast(kind)
        for name, kind in zip(PARTITION.names, PARTITION.types, strict=True)
    ]
    run.clear()
    return pa.RecordBatch.from_arrays(columns, schema=PARTITION), np.cumsum(np.bincount(of_row, minlength=buckets))


def _write_runs(runs: Iterable[_Run], out: PartitionWriter) -> int:
    """Write every run as it comes; return how many there were."""
    written = 0
    for run, _ in runs:
        out.add(*_ordered(run, len(out.comments)))
        written += 1
    return written


def _write_groups(runs: Iterator[_Run], out: PartitionWriter, path: Location, chunk_bytes: int) -> int:
    """Write the buckets of all runs together, via groups; return how many runs there were."""
    run, more = next(runs, ([], False))
    if not more:
        return _write_runs([(run, more)] if run else [], out)
    buckets = len(out.comments)
    bounds = np.arange(GROUPS + 1) * buckets // GROUPS
    with _scratch_file(path) as (scratch, writer):
        written = 0
        for part, _ in chain([(run, more)], runs):
            ordered, ends = _ordered(part, buckets)
            for start, end in pairwise(np.insert(ends, 0, 0)[bounds].tolist()):
                write_checked(writer, path, ordered.slice(start, end - start))
            del ordered
            written += 1
        with writing(path):
            writer.close()
        for group, (low, high) in enumerate(pairwise(bounds.tolist())):
            for part, _ in _runs(_batches_of_group(scratch, group), chunk_bytes):
                ordered, ends = _ordered(part, buckets)
                out.add(ordered, ends[low:high], low)
    return written


@contextmanager
def _scratch_file(path: Location) -> Iterator[tuple[Path, pa.RecordBatchFileWriter]]:
    """A local file, to be written and then read; removed after the block, or, after a kill, by the next build."""
    with local_file(path, f"groups-{os.getpid()}") as scratch:
        sink = None
        try:
            with writing(path):
                sink = pa.OSFile(str(scratch), "wb")
                writer = new_ipc_file(sink)
            yield scratch, writer
        finally:
            if sink is not None:
                sink.close()


def _batches_of_group(scratch: Path, group: int) -> Iterator[pa.RecordBatch]:
    """The pieces of a group, run after run.

    Raises:
        InputError: the disk does not return what was written.
    """
    try:
        with pa.OSFile(str(scratch), "rb") as source:
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False))
            for number in range(group, reader.num_record_batches, GROUPS):
                yield read_checked(reader, number)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{scratch}: is not what was written ({first_line(error)}); check the disk, and continue with --resume."
        ) from None
