"""Batches across requests: nobody waits for company, nobody is answered twice, and a full queue says so."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Sequence

import pytest

from mrs_serving.batcher import LONGEST_PAUSE, Batcher, QueueFullError


class Model:
    """Answers a question with itself; `gate` holds it up."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.batches: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.seconds = seconds

    def __call__(self, questions: Sequence[str]) -> list[str]:
        self.batches.append(list(questions))
        assert self.gate.wait(10)
        time.sleep(self.seconds * len(questions))
        if "poison" in questions:
            raise RuntimeError("poison")
        return list(questions)


async def gathered(batcher: Batcher[str, str], *requests: Sequence[str]) -> list[object]:
    futures = [future for request in requests for future in batcher.submit(request)]
    return list(await asyncio.gather(*futures, return_exceptions=True))


def make(model: Model, most: int = 4, seconds: float = 60, room: int = 100) -> Batcher[str, str]:
    return Batcher(model, most, seconds, room)


def test_a_lone_question_is_taken_at_once_and_others_gather_behind_it() -> None:
    async def run() -> None:
        model = Model()
        model.gate.clear()
        batcher = make(model)
        first = batcher.submit(["a"])
        while not model.batches:
            await asyncio.sleep(0.001)
        later = [future for text in "bcdefg" for future in batcher.submit([text])]
        assert (batcher.waiting, batcher.at_work > 0) == (6, True)
        model.gate.set()
        assert [await future for future in first + later] == list("abcdefg")
        assert model.batches == [["a"], ["b", "c", "d", "e"], ["f", "g"]]
        assert batcher.at_work == 0
        await batcher.stop()

    asyncio.run(run())


def test_a_batch_takes_no_more_than_its_time_allows() -> None:
    async def run() -> None:
        model = Model(seconds=0.02)
        batcher = make(model, most=100, seconds=0.07)
        await gathered(batcher, ["a"])  # the average is known now
        await gathered(batcher, [*"bcdefghi"])
        assert max(map(len, model.batches)) in (1, 2, 3)
        assert sum(map(len, model.batches)) == 9
        await batcher.stop()

    asyncio.run(run())


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def run() -> None:
        model = Model()
        model.gate.clear()
        batcher = make(model, room=3)
        taken = batcher.submit(["a"])
        while not model.batches:
            await asyncio.sleep(0.001)
        taken += batcher.submit(["b", "c"])
        with pytest.raises(QueueFullError) as refused:
            batcher.submit(["d", "e"])
        assert 1 <= refused.value.seconds <= LONGEST_PAUSE
        taken += batcher.submit(["d"])  # one has room
        model.gate.set()
        assert [await future for future in taken] == ["a", "b", "c", "d"]
        await batcher.stop()

    asyncio.run(run())


def test_a_question_that_breaks_the_model_fails_alone() -> None:
    async def run() -> None:
        model = Model()
        batcher = make(model)
        found = await gathered(batcher, ["a", "poison"], ["b"])
        assert [found[0], found[2]] == ["a", "b"]
        assert isinstance(found[1], RuntimeError)
        assert await gathered(batcher, ["c"]) == ["c"]
        await batcher.stop()

    asyncio.run(run())


def test_questions_that_nobody_waits_for_are_not_asked() -> None:
    async def run() -> None:
        model = Model()
        model.gate.clear()
        batcher = make(model)
        batcher.submit(["a"])
        while not model.batches:
            await asyncio.sleep(0.001)
        gone, stays = batcher.submit(["gone", "stays"])
        gone.cancel()
        model.gate.set()
        assert await stays == "stays"
        assert model.batches == [["a"], ["stays"]]
        await batcher.stop()

    asyncio.run(run())


def test_stopping_answers_what_was_taken() -> None:
    async def run() -> None:
        batcher = make(Model(seconds=0.01), most=1)
        futures = batcher.submit([*"abc"])
        await batcher.stop()
        assert [future.result() for future in futures] == ["a", "b", "c"]

    asyncio.run(run())
