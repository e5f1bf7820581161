"""Answers the messages of many requests together, in one thread."""

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from mrs_suggest.common.errors import MrsError

Waiting = tuple[Any, "asyncio.Future[Any]", float]  # a question, its answer, and when it came
LONGEST_PAUSE = 60  # seconds that a client is asked to wait at most
NEWEST = 0.1  # the weight of the last batch in the fitted times; ours: they follow a change within about 20 batches
LEAST_SPREAD = 1e-3  # of batch sizes, their variance over the squared mean: a difference of about 3 %; ours


class QueueFullError(MrsError):
    """The queue is full.

    Args:
        seconds: until the waiting messages will have been answered, rounded up.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"too many messages wait; try again in {self.seconds} s."


class BatchTimes:
    """The seconds of a batch by its size: a fixed cost and a cost per question, fitted by least squares.

    Older batches count less and less (`NEWEST`). Batches of one size cannot separate the two costs: the cost per
    question then stays as it was; while it is unknown, other sizes are tried.
    """

    def __init__(self) -> None:
        self._count = self._largest = 0
        self._size = self._seconds = self._size_spread = self._both_spread = 0.0  # means, and moments about them
        self._each: float | None = None

    def add(self, size: int, seconds: float) -> None:
        self._count += 1
        self._largest = max(self._largest, size)
        share = max(NEWEST, 1 / self._count)
        size_off, seconds_off = size - self._size, seconds - self._seconds
        self._size += share * size_off
        self._seconds += share * seconds_off
        self._size_spread = (1 - share) * (self._size_spread + share * size_off**2)
        self._both_spread = (1 - share) * (self._both_spread + share * size_off * seconds_off)
        if self._size_spread > LEAST_SPREAD * self._size**2:
            self._each = max(0.0, self._both_spread / self._size_spread)

    @property
    def costs(self) -> tuple[float, float]:
        """Fixed seconds and seconds per question, not negative, and 0 before the first batch."""
        if not self._count:
            return 0.0, 0.0
        average = self._seconds / self._size
        each = average if self._each is None else min(self._each, average)
        return max(0.0, self._seconds - each * self._size), each

    def most(self, seconds: float, size: int) -> int:
        """The size, 1 to `size`, of a batch that should take at most `seconds`, or at most twice the fixed cost.

        If the fixed cost dominates, smaller batches would only make the queue longer. A batch is at most twice as large
        as any before, unless it would be in time even without a fixed cost.
        """
        if not self._count:
            return size
        if self._each is None and self._seconds > seconds:
            return max(1, min(size, int(self._size / 2) if self._size >= 2 else 2))
        fixed, each = self.costs
        surely = max(2 * self._largest, int(seconds * self._size / max(self._seconds, 1e-9)))
        left = max(seconds - fixed, fixed)
        fitting = size if self._each is None or each * size <= left else int(left / each)
        return max(1, min(size, surely, fitting))

    def until(self, waiting: int, size: int) -> float:
        """Seconds until `waiting` questions have been answered in batches of `size`."""
        fixed, each = self.costs
        return math.ceil(waiting / size) * fixed + waiting * each


class Batcher:
    """Answers questions in the order in which they came, several at a time.

    An idle model starts immediately, so a single request is never delayed; while it works, the next batch gathers, so
    batches grow with the load.

    Args:
        answer: questions -> their answers; called in a separate thread.
        most: questions in a batch.
        seconds: for a batch, as expected by `BatchTimes.most`.
        room: questions that may wait.
        observe: called for each batch with its number of questions, its seconds, and the longest wait.
    """

    def __init__(
        self, answer: Callable[[Sequence[Any]], Sequence[Any]], most: int, seconds: float, room: int,
        observe: Callable[[int, float, float], None] = lambda size, seconds, waited: None,
    ) -> None:  # fmt: skip
        self._answer, self._most, self._seconds, self._room, self._observe = answer, most, seconds, room, observe
        self._waiting: deque[Waiting] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._times = BatchTimes()
        self._busy: asyncio.Task[None] | None = None
        self._since: float | None = None  # the start of the current batch

    @property
    def waiting(self) -> int:
        """The number of questions in the queue that are not cancelled."""
        return sum(not future.done() for _, future, _ in self._waiting)

    @property
    def at_work(self) -> float:
        """Seconds since the current batch began; 0 if the model is idle."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def submit(self, questions: Sequence[Any]) -> list[asyncio.Future[Any]]:
        """A future for each question, which may be cancelled; QueueFullError if they do not all fit into the queue."""
        if len(self._waiting) + len(questions) > self._room:  # cancelled ones make room
            self._waiting = deque(entry for entry in self._waiting if not entry[1].done())
        if (waiting := len(self._waiting)) + len(questions) > self._room:
            seconds = math.ceil(self._times.until(waiting, self._times.most(self._seconds, self._most)))
            raise QueueFullError(max(1, min(seconds, LONGEST_PAUSE)))
        loop, now = asyncio.get_running_loop(), time.monotonic()
        futures: list[asyncio.Future[Any]] = [loop.create_future() for _ in questions]
        self._waiting.extend((question, future, now) for question, future in zip(questions, futures, strict=True))
        if self._busy is None and questions:
            self._busy = loop.create_task(self._work())
        return futures

    async def stop(self) -> None:
        """Answer all accepted questions, and end the thread."""
        while self._busy is not None:
            await asyncio.wait([self._busy])
        self._thread.shutdown()

    async def _work(self) -> None:
        try:
            while batch := self._take():
                await self._run(batch)
        finally:
            self._busy = None

    def _take(self) -> list[Waiting]:
        most = self._times.most(self._seconds, self._most)
        batch: list[Waiting] = []
        while self._waiting and len(batch) < most:
            if not self._waiting[0][1].done():
                batch.append(self._waiting[0])
            self._waiting.popleft()
        return batch

    async def _run(self, batch: list[Waiting]) -> None:
        loop, start = asyncio.get_running_loop(), time.monotonic()
        self._since = start
        answers = await loop.run_in_executor(self._thread, self._answer_all, [question for question, _, _ in batch])
        self._since = None
        took = time.monotonic() - start
        self._times.add(len(batch), took)
        self._observe(len(batch), took, start - batch[0][2])
        for (_, future, _), found in zip(batch, answers, strict=True):
            if future.done():
                continue
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

    def _answer_all(self, questions: list[Any]) -> Sequence[Any]:
        """The answers or errors; if a batch fails, each question alone, so that one does not fail the others."""
        try:
            return self._answer(questions)
        except Exception as error:
            if len(questions) == 1:
                return [error]
        return [answer for question in questions for answer in self._answer_all([question])]
