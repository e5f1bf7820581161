"""The file of a partitioned month: an Arrow file with batches by bucket and a checksum per batch.

Batches come in segments: one batch per bucket, for buckets `low` to `high`, in their order. Their places,
and how many comments and bytes each bucket has, are in an index: the metadata of one empty batch at the end.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_datasets.builders.pipeline.checked_files import add_column, digest_bytes, xxhash
from mrs_datasets.builders.pipeline.work_folder import unreachable, writing
from mrs_datasets.builders.reddit.schema import COMMENTS
from mrs_suggest.common.errors import InputError, RemoteError, first_line, reason_of
from mrs_suggest.common.io.files import to_disk
from mrs_suggest.common.io.storage import Location, local_file, open_arrow, publish

PARTITION = pa.schema([COMMENTS.field(name) for name in ("id", "parent_id", "link_id", "body", "created")])
_FORMAT = {"format": "mrs-reddit-partition", "version": "2"}
_INDEX, _CHECKSUM = b"index", b"xxh3_64"
_COMPRESSION = "lz4"  # 1.5 times the size of zstd's level 1, for a third of its time to write and read
_EMPTY = pa.RecordBatch.from_arrays([pa.array([], kind) for kind in PARTITION.types], schema=PARTITION)


class _Index(TypedDict):
    """The places of all batches; a segment: its first bucket, the bucket after its last, its first batch."""

    buckets: int
    runs: int
    batches: int
    segments: list[tuple[int, int, int]]
    comments: str
    bytes: str


class PartitionWriter:
    """Writes segments into a file, and collects its index.

    Attributes:
        comments, bytes: (buckets,) rows, and bytes in memory before compression, so far.
    """

    def __init__(self, writer: pa.RecordBatchFileWriter, path: Location, buckets: int) -> None:
        self._writer, self._path = writer, path
        self.comments, self.bytes = np.zeros(buckets, np.int64), np.zeros(buckets, np.int64)
        self._segments: list[tuple[int, int, int]] = []  # first bucket, bucket after the last, first batch
        self._batches = 0

    def add(self, ordered: pa.RecordBatch, ends: NDArray[np.int64], low: int = 0) -> None:
        """Write a segment.

        Args:
            ordered: comments in the order of their buckets.
            ends: (n,) where the rows of bucket `low`, `low` + 1 ... end.
        """
        high = low + len(ends)
        self._segments.append((low, high, self._batches))
        start = 0
        for bucket, end in enumerate(ends.tolist(), low):
            # Arrow would write an empty slice with the offsets of all rows.
            batch = ordered.slice(start, end - start) if end > start else _EMPTY
            write_checked(self._writer, self._path, batch)
            self.comments[bucket] += batch.num_rows
            self.bytes[bucket] += batch.nbytes
            start = end
        self._batches += len(ends)

    def finish(self, runs: int) -> None:
        """Write the index."""
        index: _Index = {
            "buckets": len(self.comments),
            "runs": runs,
            "batches": self._batches,
            "segments": self._segments,
            "comments": _as_text(self.comments),
            "bytes": _as_text(self.bytes),
        }
        text = json.dumps(index).encode()
        with writing(self._path):
            self._writer.write_batch(
                _EMPTY, custom_metadata={_INDEX: text, _CHECKSUM: digest_bytes(xxhash().xxh3_64(text))}
            )


class PartitionReader:
    """A partition file that is open.

    Attributes:
        runs: how often the budget was filled.
        comments, bytes: (buckets,) of each bucket.
    """

    def __init__(self, reader: pa.RecordBatchFileReader) -> None:
        self._reader = reader
        index = _read_index(reader)
        self.runs: int = index["runs"]
        self._segments = index["segments"]
        self.comments, self.bytes = _from_text(index["comments"]), _from_text(index["bytes"])

    def batches(self, bucket: int) -> list[pa.RecordBatch]:
        """The batches of a bucket, after comparing their checksums.

        Raises:
            pa.ArrowInvalid: one is damaged.
        """
        numbers = [first + bucket - low for low, high, first in self._segments if low <= bucket < high]
        return [read_checked(self._reader, number) for number in numbers]

    def pieces(self, buckets: Collection[int]) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """The batches of several buckets in the order of the file, each with its bucket and its segment's number.

        Raises:
            pa.ArrowInvalid: one is damaged.
        """
        for number, (low, high, first) in enumerate(self._segments):
            for bucket in range(low, high):
                if bucket in buckets:
                    yield bucket, number, read_checked(self._reader, first + bucket - low)


def write_checked(writer: pa.RecordBatchFileWriter, path: Location, batch: pa.RecordBatch) -> None:
    """Write a batch with its checksum.

    Raises:
        InputError: the disk reports an error.
    """
    with writing(path):
        writer.write_batch(batch, custom_metadata={_CHECKSUM: _checksum(batch)})


def read_checked(reader: pa.RecordBatchFileReader, number: int) -> pa.RecordBatch:
    """A batch, after comparing its checksum.

    Raises:
        pa.ArrowInvalid: it is damaged.
    """
    batch, metadata = reader.get_batch_with_custom_metadata(number)
    batch.validate(full=True)  # first: a broken offset would crash the process later
    if (metadata or {}).get(_CHECKSUM) != _checksum(batch):
        raise pa.ArrowInvalid(f"batch {number} has another checksum than when it was written")
    return batch


def _checksum(batch: pa.RecordBatch) -> bytes:
    """XXH3 over lengths and contents of the columns, the same for a slice and after reading it back.

    Raises:
        pa.ArrowInvalid: there is a null.
    """
    digest = xxhash().xxh3_64()
    for column in batch.columns:
        add_column(digest, column)
    return digest_bytes(digest)


def _as_text(numbers: NDArray[np.int64]) -> str:
    return base64.b64encode(numbers.astype("<i8").tobytes()).decode()


def _from_text(text: str) -> NDArray[np.int64]:
    return np.frombuffer(base64.b64decode(text), "<i8")


def new_ipc_file(sink: pa.NativeFile) -> pa.RecordBatchFileWriter:
    """A writer of comments into an open file."""
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION, use_threads=False)
    return pa.ipc.new_file(sink, PARTITION.with_metadata(_FORMAT), options=options)


@contextmanager
def whole_ipc_file(path: Location) -> Iterator[pa.RecordBatchFileWriter]:
    """A writer of a temporary Arrow file that becomes `path` when the block ends without an error."""
    with local_file(path, str(os.getpid())) as partial:
        sink = None
        try:
            with writing(path):
                sink = pa.OSFile(str(partial), "wb")
                writer = new_ipc_file(sink)
            yield writer
            with writing(path):
                writer.close()
                sink.close()
                publish(partial, path)
                if isinstance(path, Path):
                    to_disk(path.parent)
        finally:
            if sink is not None and not sink.closed:
                sink.close()


@contextmanager
def opened(path: Location) -> Iterator[PartitionReader]:
    """A partition file; errors in its contents, also later ones, name the file."""
    try:
        source = open_arrow(path)  # no memory map: an unreadable page would crash the process
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({reason_of(error)}); expected a partition file of a month."
        ) from None
    with source:
        try:
            yield PartitionReader(pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(use_threads=False)))
        except RemoteError as error:
            raise unreachable(path, error) from None
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise InputError(
                f"{path}: is not a complete partition file ({first_line(error)}); delete it and resume."
            ) from None


def _read_index(reader: pa.RecordBatchFileReader) -> _Index:
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
    if not text or (last or {}).get(_CHECKSUM) != digest_bytes(xxhash().xxh3_64(text)):
        raise pa.ArrowInvalid("it has no index, or a broken one")
    index: _Index = json.loads(text)
    if reader.num_record_batches != index["batches"] + 1:
        raise pa.ArrowInvalid("its index does not fit its batches")
    return index
