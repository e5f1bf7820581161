"""Stage 8, response sets: exact counts of replies in bounded memory (Zhang et al. 2021, section 2.1).

Replies are counted in memory until the budget is used up, and then appended to a temporary file, in parts by the hash
of the text. All counts of a reply are in one part, so that counts and totals are exact, and only one part is in memory
at a time. One counter is for one language; `mrs_datasets.prepared.responses.response_table` makes its response set.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.work_folder import writing

PARTS = 256  # of the temporary file; with a budget of 512 MB, about .5 MB are appended to each at a time
_COUNTED = pa.schema([("reply", pa.large_string()), ("count", pa.int64())])
_TABLE_BYTES = 1024  # overhead of a table in memory


class ReplyCounts:
    """How often every reply was given, like `collections.Counter` but in bounded memory.

    Use it as a context manager, or call `close` at the end: the temporary file is removed.

    Args:
        budget_bytes: approximate memory, without Arrow's buffers and the batch that is added.
        folder: for the temporary file, which has no name; created if missing.

    Attributes:
        pairs: how many replies were added.

    Raises:
        InputError: the folder cannot be written (then or later).

    >>> with tempfile.TemporaryDirectory() as folder, ReplyCounts(1 << 20, Path(folder)) as counts:
    ...     counts.add(["yes", "no", "yes", "maybe", "no", "yes"])
    ...     counts.frequent(min_count=2, most=10), counts.pairs, counts.distinct
    ([('yes', 3), ('no', 2)], 6, 3)
    """

    def __init__(self, budget_bytes: int, folder: Path) -> None:
        self.pairs = 0
        self._folder = folder
        self._limit = max(1, budget_bytes // 4)  # of the counts: grouping and splitting need as much again, twice
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._file: IO[bytes] | None = None
        self._pieces: list[list[tuple[int, int]]] = [[] for _ in range(PARTS)]  # place and bytes in the file
        self._distinct: int | None = None
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> ReplyCounts:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the temporary file; the counter cannot be used any more."""
        if self._file is not None:
            self._file.close()

    def add(self, replies: Sequence[str] | pa.Array | pa.ChunkedArray) -> None:
        """Count a batch of replies, none of which is null."""
        if not isinstance(replies, (pa.Array, pa.ChunkedArray)):
            replies = pa.array(replies, pa.large_string())
        rows = max(1, len(replies) * self._limit // (2 * max(1, replies.nbytes)))
        for start in range(0, len(replies), rows):
            part = replies[start : start + rows].cast(pa.large_string())
            self._hold(_summed(pa.table([part, pa.repeat(pa.scalar(1, pa.int64()), len(part))], _COUNTED)))
        self.pairs += len(replies)
        self._distinct = None

    def frequent(self, min_count: int = 1, most: int | None = None) -> list[tuple[str, int]]:
        """The `most` most frequent replies that were given at least `min_count` times, with their counts.

        Returns:
            Most frequent first, ties in the order of the text. (None: all, which may not fit into memory.)
        """
        best: pa.Table = _COUNTED.empty_table()
        self._distinct = 0
        for part in self._parts():
            self._distinct += part.num_rows
            enough = part.filter(pc.greater_equal(part["count"], min_count))
            best = pa.concat_tables([best, enough])
            if most is not None and best.num_rows > most:
                best = _ranked(best)[:most].combine_chunks()
        best = _ranked(best)
        return list(zip(best["reply"].to_pylist(), best["count"].to_pylist(), strict=True))

    @property
    def distinct(self) -> int:
        """How many different replies were added; known after `frequent`, else it takes equally long."""
        if self._distinct is None:
            self._distinct = sum(part.num_rows for part in self._parts())
        return self._distinct

    def _hold(self, counted: pa.Table) -> None:
        self._held.append(counted)
        self._held_bytes += counted.nbytes + _TABLE_BYTES
        if self._held_bytes <= self._limit:
            return
        summed = _summed(pa.concat_tables(self._held))
        self._held, self._held_bytes = [summed], summed.nbytes + _TABLE_BYTES
        if 2 * self._held_bytes > self._limit:  # else many replies repeat, and the memory suffices for as much again
            self._append(summed)
            self._held, self._held_bytes = [], 0

    def _append(self, counted: pa.Table) -> None:
        """Append counts to the file, part by part."""
        of = np.fromiter(map(hash, counted["reply"].to_pylist()), np.int64, counted.num_rows) % PARTS
        order = np.argsort(of, kind="stable")
        ordered = counted.take(pa.array(order)).combine_chunks()
        bounds = np.searchsorted(of[order], np.arange(PARTS + 1))
        options = pa.ipc.IpcWriteOptions(compression="zstd", use_threads=False)
        with writing(self._folder):
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 (`close` closes it)
            for part, (start, end) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
                if start == end:
                    continue
                sink = io.BytesIO()
                with pa.ipc.new_stream(sink, _COUNTED, options=options) as out:
                    out.write_table(ordered.slice(start, end - start))
                place = self._file.seek(0, io.SEEK_END)
                self._pieces[part].append((place, self._file.write(sink.getbuffer())))

    def _parts(self) -> Iterator[pa.Table]:
        """All replies with their counts, each reply once."""
        if self._file is None:
            if self._held:
                yield _summed(pa.concat_tables(self._held))
            return
        if self._held:
            self._append(_summed(pa.concat_tables(self._held)))
            self._held, self._held_bytes = [], 0
        for pieces in self._pieces:
            tables = []
            for place, size in pieces:
                self._file.seek(place)
                tables.append(pa.ipc.open_stream(self._file.read(size)).read_all())
            if tables:
                yield _summed(pa.concat_tables(tables))


def _ranked(counted: pa.Table) -> pa.Table:
    return counted.sort_by([("count", "descending"), ("reply", "ascending")])


def _summed(counted: pa.Table) -> pa.Table:
    """One row per reply, in no particular order."""
    # A quarter of the time of Arrow's `group_by`. The sums are exact, since they stay below 2^53.
    replies = counted["reply"].combine_chunks().dictionary_encode()
    sums = np.bincount(replies.indices.to_numpy(), counted["count"].to_numpy(), len(replies.dictionary))
    return pa.table([replies.dictionary, pa.array(sums.astype(np.int64))], _COUNTED)
