"""Shards of work that are done once, whenever the process ends; the processes of this machine that do them; and the
files between the stages, which appear whole and reveal damage: Arrow batches with checksums, and arrays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

from mrs_datasets.builders.pipeline.work_folder import RESUME, WorkFolder, unreachable, writing
from mrs_suggest.common.errors import InputError, RemoteError, extra_needed, first_line
from mrs_suggest.common.io.storage import Location, local_file, open_arrow, open_stream, publish, size

with extra_needed("xxhash", "reddit", "a build in stages"):
    from xxhash import xxh3_64

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

Advance = Callable[[int], object]  # called with the number of units done since the last call
ShardCounts: TypeAlias = Mapping[str, Any]  # plain JSON, with the names of its stage
Bar: TypeAlias = "tqdm[Any] | None"
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Shard:
    """One piece of a stage.

    Attributes:
        size: in the stage's unit, for the progress bar.
        output: the file or folder that it writes, which must appear whole; without it, the shard is not done.
        work: does the shard and returns its counts; both can be pickled.
    """

    name: str
    size: int
    output: Location
    work: Callable[[Advance], ShardCounts]
    second: Location | None = None


class Engine(Protocol):
    """Processes the shards of a stage: `Workers` on one machine, or `SparkEngine` on a cluster."""

    def do(self, shards: Sequence[Shard], bar: tqdm[Any]) -> Iterator[tuple[Shard, ShardCounts]]:
        """Do every shard, and yield each once with its counts, in any order, as soon as it is done.

        A shard that was yielded is recorded as done; its outputs are complete and visible to this process. A shard may
        be done more than once, with the same files and counts. Local paths (dumps, language model, scratch) must exist
        on every machine. The bar moves by the sizes of all shards in total.

        Raises:
            InputError: a process was killed; the message explains how to continue. An error of the shard's own work is
                raised unchanged, after other finished shards were yielded.
        """

    def about(self) -> dict[str, str]:
        """Versions for the report; empty for this machine's processes."""


def run_stage(
    work: WorkFolder, stage: str, shards: Sequence[Shard], engine: Engine, unit: str, bar: Bar = None
) -> list[ShardCounts]:
    """Do the remaining shards under one progress bar, which may be that of several calls; return the counts of all;
    finished ones outlast an InputError."""
    found: dict[str, ShardCounts] = {}
    for shard in shards:
        whole = shard.output.exists() and (shard.second is None or shard.second.exists())
        if whole and (noted := work.done(stage, shard.name)) is not None:
            found[shard.name] = noted
    left = [shard for shard in shards if shard.name not in found]
    done = sum(shard.size for shard in shards if shard.name in found)
    total = sum(shard.size for shard in shards)
    if bar is not None:
        bar.update(done)
    own = tqdm(total=total, initial=done, desc=stage, unit=unit, unit_scale=total > 9999) if bar is None else None
    with nullcontext(bar) if own is None else own as shown:
        for shard, counts in engine.do(left, shown):
            work.finish(stage, shard.name, counts)
            found[shard.name] = counts
    return [found[shard.name] for shard in shards]


class Workers(AbstractContextManager["Workers"]):
    """Processes that work on shards: started when first needed, kept from stage to stage, ended with the block.

    Args:
        number: at most this many; with one, shards run in this process.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._context = multiprocessing.get_context("spawn")  # Arrow has threads, which a fork would break
        self._progress: Synchronized[int] | None = None  # units done by all processes together
        self._pool: ProcessPoolExecutor | None = None

    def __exit__(self, *error: object) -> None:
        """End the processes immediately: a resumed build repeats unfinished work."""
        if self._pool:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def about(self) -> dict[str, str]:
        return {}

    def do(self, shards: Sequence[Shard], bar: tqdm[Any]) -> Iterator[tuple[Shard, ShardCounts]]:
        if self.number > 1 and len(shards) > 1:
            yield from self._together(shards, bar)
            return
        settle()
        for shard in shards:
            before = bar.n
            counts = shard.work(bar.update)
            bar.update(before + shard.size - bar.n)  # the remainder of an estimate
            yield shard, counts

    def _together(self, shards: Sequence[Shard], bar: tqdm[Any]) -> Iterator[tuple[Shard, ShardCounts]]:
        try:
            with ignore_sigint_in_children():
                if self._pool is None or self._progress is None:
                    self._progress = self._context.Value("q", 0)
                    self._pool = ProcessPoolExecutor(
                        self.number, mp_context=self._context, initializer=_begin, initargs=(self._progress,)
                    )
                progress = self._progress.get_obj()  # without the lock: a killed worker may hold it forever
                begun, before = bar.n, progress.value
                waiting: dict[Future[ShardCounts], Shard] = {self._pool.submit(_do, s): s for s in shards}
            while waiting:
                ready, _ = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                bar.update(begun + progress.value - before - bar.n)
                for future in sorted(ready, key=lambda done: done.exception() is not None):  # first those that are done
                    counts = future.result()
                    yield waiting.pop(future), counts
        except BrokenProcessPool:
            raise InputError(
                f"a worker was killed (perhaps for lack of memory); {RESUME}, with fewer --workers if memory was the "
                "reason."
            ) from None


def settle() -> None:
    """Set this process up for shards: the system's memory allocator takes a seventh less time here than Arrow's own."""
    pa.set_memory_pool(pa.system_memory_pool())


_progress: Synchronized[int] | None = None  # in a worker process: units done by all workers together


def _begin(progress: Synchronized[int]) -> None:
    global _progress
    _progress = progress
    settle()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when the build is killed (kill -9); otherwise the worker would wait forever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(shard: Shard) -> ShardCounts:
    left = shard.size

    def advance(amount: int) -> None:
        nonlocal left
        left -= amount
        assert _progress is not None  # `_begin` ran first
        with _progress.get_lock():
            _progress.value += amount

    counts = shard.work(advance)
    advance(left)  # the remainder of an estimate
    return counts


@contextmanager
def ignore_sigint_in_children() -> Iterator[None]:
    """Make processes started in the block ignore Ctrl-C, which a terminal sends to all: the build itself ends them.

    The build handles Ctrl-C at the end of the block, since a half-started process would print errors. The mask
    alone is not enough, since another thread may receive the signal, and Python then interrupts the main one.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # else it is ignored, as for a shell's background jobs
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    resource_tracker.ensure_running()  # it clears the mask when it starts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # pending signals are delivered now
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Record how long a stage took."""
    started = time.perf_counter()
    yield
    seconds[name] = round(time.perf_counter() - started, 1)


def name_and_bytes(path: Location) -> dict[str, Any]:
    """The facts that identify a file among those with its name."""
    return {"name": path.name, "bytes": size(path)}


def summed(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The counts of several shards together."""
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total


# --- Files between the stages ---------------------------------------------------------------------------------------
# All of them raise InputError: the disk reports an error, or the file is damaged.


@contextmanager
def whole_file(path: Location) -> Iterator[Path]:
    """A temporary local path, which becomes `path` when the block ends without an error."""
    with writing(path), local_file(path) as temporary:
        yield temporary
        publish(temporary, path)


def damaged(path: Location, reason: str) -> InputError:
    """The error for a damaged file between the stages."""
    return InputError(f"{path}: is damaged ({reason}); delete it and continue with --resume.")


def write_batches(path: Location, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Write batches as they come, each column with its checksum; the file appears whole."""
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with whole_file(path) as temporary:
        sink = pa.OSFile(str(temporary), "wb")
        with sink, pa.ipc.new_file(sink, schema, options=options) as writer:
            for batch in batches:
                write_checked(writer, batch)


def read_batches(path: Location, columns: Sequence[str], which: slice = slice(None)) -> Iterator[pa.RecordBatch]:
    """Yield these columns of all batches, or of some, in their order, one batch in memory at a time."""
    with _reading(path), open_arrow(path) as source:
        reader = _reader_of(source, columns)
        for number in range(reader.num_record_batches)[which]:
            yield read_checked(reader, number).select(list(columns))


def read_pairs(path: Location, language: str, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """The rows of a language in a file ordered by `language`, and the number of the first of them in the file."""
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
    """Turn what Arrow, NumPy and the storage raise for a damaged or unreachable file into a sentence."""
    try:
        yield
    except RemoteError as error:
        raise unreachable(path, error) from None
    except (pa.ArrowException, OSError, ValueError, EOFError, SystemError) as error:
        raise damaged(path, first_line(error)) from None


def _reader_of(source: pa.NativeFile, columns: Sequence[str]) -> pa.RecordBatchFileReader:
    schema = pa.ipc.open_file(source).schema
    wanted = sorted({schema.get_field_index(name) for name in columns})
    return pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))


def write_checked(
    writer: pa.RecordBatchFileWriter, batch: pa.RecordBatch, metadata: Mapping[str, bytes] | None = None
) -> None:
    """Write a batch with a checksum of each column in its metadata, in addition to other metadata."""
    checksums = {name: column_checksum(column) for name, column in zip(batch.schema.names, batch.columns, strict=True)}
    writer.write_batch(batch, custom_metadata={**checksums, **(metadata or {})})


def read_checked(reader: pa.RecordBatchFileReader, number: int) -> pa.RecordBatch:
    """A batch, after comparing its checksums; ArrowInvalid if it is damaged."""
    batch, checksums = reader.get_batch_with_custom_metadata(number)
    batch.validate()  # first: buffers that are too short would crash the process; the checksums are of all else
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if (checksums or {}).get(name.encode()) != column_checksum(column):
            raise pa.ArrowInvalid(f"the column {name} of batch {number} has another checksum than when it was written")
    return batch


def column_checksum(column: pa.Array) -> bytes:
    """XXH3 over lengths and contents of a column without nulls, the same for a slice and after reading it back."""
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


def write_array(path: Location, array: npt.NDArray[np.generic]) -> None:
    """Write an array; the file appears whole."""
    with whole_file(path) as temporary, temporary.open("wb") as file:
        np.save(file, array, allow_pickle=False)


def read_array(path: Location) -> npt.NDArray[np.generic]:
    """The array in a file: memory-mapped if it is local, else in memory."""
    with _reading(path):
        if isinstance(path, Path):
            return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
        with open_stream(path) as file:
            return np.asarray(np.load(file, allow_pickle=False))


def read_codes(path: Location, rows: int) -> npt.NDArray[np.uint8]:
    """The codes, one byte each, that were written for `rows` rows."""
    codes = read_array(path)
    if codes.shape != (rows,) or codes.dtype != np.uint8:
        raise damaged(path, f"it has {codes.size:,} entries for {rows:,} rows")
    return np.asarray(codes, np.uint8)
