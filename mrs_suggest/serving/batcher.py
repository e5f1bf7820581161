"""Messages of many requests, answered together by one thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from mrs_suggest.common.errors import MrsError

Question = TypeVar("Question")
Answer = TypeVar("Answer")
LONGEST_PAUSE = 60  # seconds that a client is asked to wait at most
NEWEST = 0.1  # the weight of the last batch in the fitted times; ours: they follow within some twenty batches
LEAST_SPREAD = 1e-3  # of batch sizes, as a variance over the mean squared: sizes that differ by some 3 %; ours


class QueueFullError(MrsError):
    """So many messages wait that no more are taken.

    Args:
        seconds: when those that wait will have been answered, rounded up.
    """

    def __init__(self, seconds: int) -> None:
        super().__init__(seconds)
        self.seconds = seconds

    def __str__(self) -> str:
        return f"too many messages wait; try again in {self.seconds} s."


class BatchTimes:
    """The seconds of a batch by its size: a fixed cost and one per question, fitted by least squares.

    Older batches count less and less (`NEWEST`). Batches of one size cannot tell the two costs apart: the cost per
    question stays as it was, and as long as it is not known, other sizes are tried.
    """

    def __init__(self) -> None:
        self._count = self._largest = 0
        self._size = self._seconds = self._size_spread = self._both_spread = 0.0  # means, and moments about them
        self._each: float | None = None

    def add(self, size: int, seconds: float) -> None:
        """A batch of this size took so long."""
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
        """Fixed seconds, and seconds per question; neither is negative, and both are 0 before the first batch."""
        if not self._count:
            return 0.0, 0.0
        average = self._seconds / self._size
        each = average if self._each is None else min(self._each, average)
        return self._seconds - each * self._size, each

    def most(self, seconds: float, size: int) -> int:
        """Questions, 1 to `size`, of a batch that should take no longer than this, or than twice the fixed cost.

        Where the fixed cost takes most of the time, smaller batches would only make the queue longer. A batch is at
        most twice as large as any before, unless it would be in time even without a fixed cost.
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
        """Seconds until so many questions have been answered in batches of `size`."""
        fixed, each = self.costs
        return math.ceil(waiting / size) * fixed + waiting * each


class Batcher(Generic[Question, Answer]):
    """Answers questions in the order in which they came, several at a time.

    Nothing waits for a batch to fill up: an idle model takes what is there, and while it is at work the next batch
    gathers. So a lone request waits for nothing, and the more come the larger the batches are.

    Args:
        answer: questions -> an answer to each, in their order; called in a thread of its own.
        most: questions of a batch.
        seconds: a batch takes no more questions than `BatchTimes.most` expects to be answered in this time.
        room: questions that may wait.
        observe: told of each batch how many questions it had, its seconds, and how long its oldest had waited.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Question]], Sequence[Answer]],
        most: int,
        seconds: float,
        room: int,
        observe: Callable[[int, float, float], None] = lambda size, seconds, waited: None,
    ) -> None:
        self._answer, self._most, self._seconds, self._room, self._observe = answer, most, seconds, room, observe
        self._waiting: deque[tuple[Question, asyncio.Future[Answer], float]] = deque()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._times = BatchTimes()
        self._busy: asyncio.Task[None] | None = None
        self._since: float | None = None  # when the present batch began

    @property
    def waiting(self) -> int:
        """Questions that no batch has taken yet, and that somebody still waits for."""
        return sum(not future.done() for _, future, _ in self._waiting)

    @property
    def at_work(self) -> float:
        """Seconds since the present batch began; 0 where the model is idle."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def submit(self, questions: Sequence[Question]) -> list[asyncio.Future[Answer]]:
        """A future for each question; a cancelled one is not asked any more.

        Raises:
            QueueFullError: there is no room for all of them.
        """
        if len(self._waiting) + len(questions) > self._room:  # those that nobody waits for any more make room
            self._waiting = deque(entry for entry in self._waiting if not entry[1].done())
        if (waiting := len(self._waiting)) + len(questions) > self._room:
            seconds = math.ceil(self._times.until(waiting, self._times.most(self._seconds, self._most)))
            raise QueueFullError(max(1, min(seconds, LONGEST_PAUSE)))
        loop, now = asyncio.get_running_loop(), time.monotonic()
        futures: list[asyncio.Future[Answer]] = [loop.create_future() for _ in questions]
        self._waiting.extend((question, future, now) for question, future in zip(questions, futures, strict=True))
        if self._busy is None and questions:
            self._busy = loop.create_task(self._work())
        return futures

    async def stop(self) -> None:
        """Answer what was taken, and end the thread."""
        while self._busy is not None:
            await asyncio.wait([self._busy])
        self._thread.shutdown()

    async def _work(self) -> None:
        """Until nothing waits."""
        try:
            while batch := self._take():
                await self._run(batch)
        finally:
            self._busy = None

    def _take(self) -> list[tuple[Question, asyncio.Future[Answer], float]]:
        most = self._times.most(self._seconds, self._most)
        batch: list[tuple[Question, asyncio.Future[Answer], float]] = []
        while self._waiting and len(batch) < most:
            if not self._waiting[0][1].done():
                batch.append(self._waiting[0])
            self._waiting.popleft()
        return batch

    async def _run(self, batch: list[tuple[Question, asyncio.Future[Answer], float]]) -> None:
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

    def _answer_all(self, questions: list[Question]) -> Sequence[Answer | Exception]:
        """Where a batch fails, each of its questions alone: one that breaks the model does not fail the others."""
        try:
            return self._answer(questions)
        except Exception as error:
            if len(questions) == 1:
                return [error]
        return [answer for question in questions for answer in self._answer_all([question])]
