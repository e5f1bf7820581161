"""The engine of one machine: processes that work on shards, each on one thread."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import TYPE_CHECKING

import pyarrow as pa

from mrs_datasets.builders.pipeline.signals import ignore_sigint_in_children
from mrs_datasets.builders.pipeline.stages import Bar, Shard, ShardCounts
from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import Synchronized

POLL_SECONDS = 0.5


class Workers:
    """Processes that work on shards: started when first needed, kept from stage to stage, ended with the block.

    Args:
        number: at most this many; with one, this process does the shards.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._context = multiprocessing.get_context("spawn")  # Arrow and Polars have threads, which a fork would break
        self._progress: Synchronized[int] | None = None  # what all have done together, in the stages' units
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers now: a resumed build repeats unfinished work."""
        if self._pool:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def do(self, shards: Sequence[Shard], bar: Bar) -> Iterator[tuple[Shard, ShardCounts]]:
        """Yield every shard with its counts when it is done, and move the bar meanwhile.

        Raises:
            InputError: a worker was killed.
        """
        if self.number > 1 and len(shards) > 1:
            yield from self._together(shards, bar)
            return
        settle()
        for shard in shards:
            before = bar.n
            counts = shard.work(bar.update)
            bar.update(before + shard.size - bar.n)  # the remainder of an estimate
            yield shard, counts

    def _together(self, shards: Sequence[Shard], bar: Bar) -> Iterator[tuple[Shard, ShardCounts]]:
        try:
            with ignore_sigint_in_children():
                if self._pool is None or self._progress is None:
                    self._progress = self._context.Value("q", 0)
                    self._pool = ProcessPoolExecutor(
                        self.number, mp_context=self._context, initializer=_begin, initargs=(self._progress,)
                    )
                progress = self._progress.get_obj()  # without the lock: a killed worker may hold it forever
                begun, told, finished = bar.n, progress.value, 0
                waiting: dict[Future[ShardCounts], Shard] = {self._pool.submit(_do, s): s for s in shards}
            while waiting:
                ready, _ = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                bar.update(max(begun + progress.value - told, bar.n) - bar.n)
                for future in sorted(ready, key=lambda done: done.exception() is not None):  # what is finished stays
                    shard = waiting.pop(future)
                    counts = future.result()
                    finished += shard.size
                    yield shard, counts
            bar.update(begun + finished - bar.n)
        except BrokenProcessPool:
            raise InputError(
                "a worker was killed (perhaps for lack of memory); finished work stays: continue with --resume, with "
                "fewer --workers if memory was the reason."
            ) from None


def settle() -> None:
    """Set this process up for shards: Polars on one thread, since shards share the cores already or are done one at a
    time (threads for small joins cost more than they save), and the system's memory allocator, which takes about a
    seventh less time here than Arrow's own.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # read when Polars is imported
    pa.set_memory_pool(pa.system_memory_pool())


_progress: Synchronized[int] | None = None  # of a worker: what all workers have done together


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
    def advance(amount: int) -> None:
        assert _progress is not None  # `_begin` came first
        with _progress.get_lock():
            _progress.value += amount

    return shard.work(advance)
