"""Messages of many requests, answered together by one thread."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from mrs_core.errors import MrsError

Question = TypeVar("Question")
Answer = TypeVar("Answer")
LONGEST_PAUSE = 60  # seconds that a client is asked to wait at most
NEWEST = 0.2  # the share of the last batch in the average time; ours: it follows within some ten batches


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


class Batcher(Generic[Question, Answer]):
    """Answers questions in the order in which they came, several at a time.

    Nothing waits for a batch to fill up: an idle model takes what is there, and while it is at work the next batch
    gathers. So a lone request waits for nothing, and the more come the larger the batches are.

    Args:
        answer: questions -> an answer to each, in their order; called in a thread of its own.
        most: questions of a batch.
        seconds: a batch takes no more questions than are answered in this time, by the average so far; at least one.
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
        self._average = 0.0  # seconds a question
        self._busy: asyncio.Task[None] | None = None
        self._since: float | None = None  # when the present batch began

    @property
    def waiting(self) -> int:
        """Questions that no batch has taken yet."""
        return len(self._waiting)

    @property
    def at_work(self) -> float:
        """Seconds since the present batch began; 0 where the model is idle."""
        return 0.0 if self._since is None else time.monotonic() - self._since

    def submit(self, questions: Sequence[Question]) -> list[asyncio.Future[Answer]]:
        """A future for each question; a cancelled one is not asked any more.

        Raises:
            QueueFullError: there is no room for all of them.
        """
        if len(self._waiting) + len(questions) > self._room:
            seconds = math.ceil(self._average * len(self._waiting))
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
        most = self._most
        if self._average:
            most = max(1, min(most, int(self._seconds / self._average)))
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
        each = took / len(batch)
        self._average = each if not self._average else (1 - NEWEST) * self._average + NEWEST * each
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
