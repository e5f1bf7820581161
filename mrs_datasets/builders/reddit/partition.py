"""Stage 2, partition: one month's comments, ordered by the hash of their thread, in one file.

All comments of a thread are in the same bucket in every month, so that a bucket of all months can be joined alone (see
`pairs`). Comments are gathered up to a budget and written as one run, bucket by bucket. More than `GROUPS` buckets
would split a run into tiny pieces, each of which takes a read later: then runs are first split into `GROUPS` groups of
neighbouring buckets, in a separate file, and each group, read back from all runs, is split into its buckets. So a
bucket of a month is read in one go, at the cost of writing and reading the month once more.

The file is an Arrow file in segments, each with the comments of neighbouring buckets, in their order. A batch ends with
a bucket: a large bucket has its own, small ones share one. An index is in the metadata of an empty batch at the end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from xxhash import xxh3_64, xxh64_intdigest

from mrs_datasets.builders.pipeline.stages import read_checked, write_checked
from mrs_datasets.builders.pipeline.work_folder import unreachable, writing
from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.read import COMMENTS
from mrs_suggest.common.errors import InputError, RemoteError, first_line, reason_of
from mrs_suggest.common.io.files import to_disk
from mrs_suggest.common.io.storage import Location, local_file, open_arrow, publish

# A run; with 64 buckets a batch is about 1.5 MiB, which compresses as a whole month would. At most 1 GiB, as Arrow's
# string arrays are limited to 2 GiB.
CHUNK_BYTES = 96 << 20
BATCH_ROWS = 1 << 10  # smaller buckets share a batch: a batch costs as much time as hundreds of comments
GROUPS = 256  # so that pieces of a run have .4 MB, and a group of a month of 24 GB is as large as a run
PARTITION = pa.schema([COMMENTS.field(name) for name in ("id", "parent_id", "link_id", "body", "created")])
_FORMAT = {"format": "mrs-reddit-partition", "version": "5"}
_INDEX, _CHECKSUM = "index", "xxh3_64"
_EMPTY = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in PARTITION.types], schema=PARTITION)
_Run = tuple[list[pa.RecordBatch], bool]  # batches, and whether more runs follow


def stable_hashes(values: pa.Array, skipped: int = 0) -> NDArray[np.uint64]:
    """xxHash64 of every string (UTF-8, seed 0), without the first `skipped` bytes: the same on every machine and in
    every version.

    >>> stable_hashes(pa.array(["abc"])).tolist()
    [4952883123889572249]
    """
    values = values.cast(pa.large_binary())
    compiled = getattr(read._lines, "hashes", None)  # type: ignore[attr-defined]  # an older one has none
    if compiled and len(values):
        _, bounds, content = values.buffers()
        bounds = np.frombuffer(bounds, np.int64)[values.offset : values.offset + len(values) + 1]
        return np.frombuffer(compiled(content or b"", bounds, skipped), np.uint64)
    return np.fromiter((xxh64_intdigest(text[skipped:]) for text in values.to_pylist()), np.uint64, len(values))


def mix(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele et al. 2014): a one-to-one scrambling of 64-bit numbers.

    The buckets of the partition are remainders of the same keys: unmixed, the split of a bucket would be lopsided.
    """
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def partition(batches: Iterable[pa.RecordBatch], path: Location, buckets: int) -> int:
    """Write the comments of `batches` into `path`, ordered by bucket, `xxhash64(link_id) % buckets`; return how many.

    The comments of a bucket keep their order. Memory is about three times the budget for any number of comments. The
    file appears whole, under a temporary name until it is on the disk. Same batches, same bytes.

    Args:
        batches: small ones with the columns of `PARTITION`; other columns are left out.
        buckets: how many parts the join has, the same for all months.

    Raises:
        InputError: the file cannot be written (no such folder, no rights, disk full); nothing is left behind.
    """
    with local_file(path, str(os.getpid())) as partial, _new_file(partial, path) as writer:
        out = _SegmentWriter(writer, path, buckets)
        runs = _runs(batches)
        if buckets > GROUPS:
            _write_groups(runs, out, path)
        else:
            for run, _ in runs:
                out.add(*_ordered(run, buckets))
        out.finish()
        with writing(path):
            writer.close()
            publish(partial, path)
            if isinstance(path, Path):
                to_disk(path.parent)
    return int(out.comments.sum())


def bucket_sizes(path: Location) -> NDArray[np.int64]:
    """(buckets,) the comments of each bucket; InputError as `read_buckets`."""
    with _opened(path) as (_, index):
        return np.array(index["comments"], np.int64)


def read_buckets(path: Location, buckets: range) -> pa.Table:
    """The comments of neighbouring buckets (schema `PARTITION`), those of each bucket in the order in which they were
    written; InputError if the file is missing, incomplete or damaged."""
    with _opened(path) as (reader, index):
        tables = [PARTITION.empty_table()]
        for low, first, bounds in index["segments"]:
            start, end = (bounds[min(max(b - low, 0), len(bounds) - 1)] for b in (buckets.start, buckets.stop))
            if start < end:
                cuts = _batch_bounds(np.array(bounds))
                begin, stop = np.searchsorted(cuts, start, "right") - 1, np.searchsorted(cuts, end)
                table = pa.Table.from_batches([read_checked(reader, first + n) for n in range(begin, stop)])
                tables.append(table.slice(start - cuts[begin], end - start))
        table, expected = pa.concat_tables(tables), sum(index["comments"][buckets.start : buckets.stop])
        if table.num_rows != expected:
            names = f"buckets {buckets.start} to {buckets.stop - 1}"
            raise pa.ArrowInvalid(f"{names} have {table.num_rows} of {expected} comments")
        return table


def _batch_bounds(bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the batches of a segment begin and end, from where its buckets do: with the bucket that completes another
    `BATCH_ROWS` rows."""
    full, large = np.diff(bounds // BATCH_ROWS) > 0, np.diff(bounds) >= BATCH_ROWS
    return np.unique([0, *bounds[1:][full], *bounds[:-1][large], bounds[-1]])


# --- Runs and groups ------------------------------------------------------------------------------------------------


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[_Run]:
    """Batches gathered up to the budget; a larger batch forms one run."""
    held: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        kept = batch.select(PARTITION.names)
        if not kept.num_rows:
            continue
        if held and size + kept.nbytes > CHUNK_BYTES:
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


def _write_groups(runs: Iterator[_Run], out: _SegmentWriter, path: Location) -> None:
    """Write the buckets of all runs together, via groups."""
    buckets = len(out.comments)
    run, more = next(runs, ([], False))
    if not more:  # a single run needs no groups
        if run:
            out.add(*_ordered(run, buckets))
        return
    bounds = np.arange(GROUPS + 1) * buckets // GROUPS
    with local_file(path, f"groups-{os.getpid()}") as scratch:
        with _new_file(scratch, path) as writer:
            for part, _ in chain([(run, more)], runs):
                ordered, ends = _ordered(part, buckets)
                for start, end in pairwise(np.insert(ends, 0, 0)[bounds].tolist()):
                    with writing(path):
                        write_checked(writer, ordered.slice(start, end - start))
                del ordered
            with writing(path):
                writer.close()
        for group, (low, high) in enumerate(pairwise(bounds.tolist())):
            for part, _ in _runs(_batches_of_group(scratch, group)):
                ordered, ends = _ordered(part, buckets)
                out.add(ordered, ends[low:high], low)


def _batches_of_group(scratch: Path, group: int) -> Iterator[pa.RecordBatch]:
    """The pieces of a group, run after run."""
    try:
        with pa.OSFile(str(scratch), "rb") as source:
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False))
            for number in range(group, reader.num_record_batches, GROUPS):
                yield read_checked(reader, number)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{scratch}: is not what was written ({first_line(error)}); check the disk, and continue with --resume."
        ) from None


# --- The file -------------------------------------------------------------------------------------------------------


class _SegmentWriter:
    """Writes segments into a file, and collects its index; `comments` are the rows of each bucket so far."""

    def __init__(self, writer: pa.RecordBatchFileWriter, path: Location, buckets: int) -> None:
        self._writer, self._path = writer, path
        self.comments = np.zeros(buckets, np.int64)
        self._segments: list[tuple[int, int, list[int]]] = []  # first bucket, first batch, where its buckets begin, end
        self._batches = 0

    def add(self, ordered: pa.RecordBatch, ends: NDArray[np.int64], low: int = 0) -> None:
        """Write comments in the order of their buckets; `ends` (n,): where bucket `low`, `low` + 1 ... end."""
        bounds = np.insert(ends, 0, 0)
        self._segments.append((low, self._batches, bounds.tolist()))
        for start, end in pairwise(_batch_bounds(bounds).tolist()):
            with writing(self._path):
                write_checked(self._writer, ordered.slice(start, end - start))
            self._batches += 1
        self.comments[low : low + len(ends)] += np.diff(bounds)

    def finish(self) -> None:
        """Write the index."""
        index = {"batches": self._batches, "segments": self._segments, "comments": self.comments.tolist()}
        text = json.dumps(index).encode()
        with writing(self._path):
            write_checked(self._writer, _EMPTY, {_INDEX: text, _CHECKSUM: xxh3_64(text).hexdigest().encode()})


@contextmanager
def _new_file(local: Path, path: Location) -> Iterator[pa.RecordBatchFileWriter]:
    """A writer of comments into a local file; errors name `path`."""
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)  # a third of zstd's time, 1.5 times the size
    with writing(path):
        sink = pa.OSFile(str(local), "wb")
    try:
        with writing(path):
            writer = pa.ipc.new_file(sink, PARTITION.with_metadata(_FORMAT), options=options)
        yield writer
    finally:
        sink.close()


@contextmanager
def _opened(path: Location) -> Iterator[tuple[pa.RecordBatchFileReader, dict[str, Any]]]:
    """A partition file and its index; errors in its contents, also later ones, name the file."""
    try:
        source = open_arrow(path)  # no memory map: an unreadable page would crash the process
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({reason_of(error)}); expected a partition file of a month."
        ) from None
    with source:
        try:
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False))
            yield reader, _read_index(reader)
        except RemoteError as error:
            raise unreachable(path, error) from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: is not a complete partition file ({first_line(error)}); delete it and resume."
            ) from None


def _read_index(reader: pa.RecordBatchFileReader) -> dict[str, Any]:
    """The index; ArrowInvalid if it is missing, or does not fit the file."""
    metadata = reader.schema.metadata or {}
    if not reader.schema.equals(PARTITION) or {k.decode(): v.decode() for k, v in metadata.items()} != _FORMAT:
        raise pa.ArrowInvalid("it is an Arrow file of another kind")
    last: dict[bytes, bytes] = {}
    if reader.num_record_batches:
        last = reader.get_batch_with_custom_metadata(reader.num_record_batches - 1)[1] or {}
    text = last.get(_INDEX.encode(), b"")
    if not text or last.get(_CHECKSUM.encode()) != xxh3_64(text).hexdigest().encode():
        raise pa.ArrowInvalid("it has no index, or a broken one")
    index: dict[str, Any] = json.loads(text)
    if reader.num_record_batches != index["batches"] + 1:
        raise pa.ArrowInvalid("its index does not fit its batches")
    return index
