"""Batches across requests: nobody waits for company, nobody is answered twice, and a full queue says so."""

import asyncio
import math
import random
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.serving import batcher as batcher_module
from mrs_suggest.serving.batcher import LONGEST_PAUSE, Batcher, BatchTimes, QueueFullError
from tests.cases import cases


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


async def gathered(batcher: Batcher, *requests: Sequence[str]) -> list[object]:
    futures = [future for request in requests for future in batcher.submit(request)]
    return list(await asyncio.gather(*futures, return_exceptions=True))


async def held(model: Model, batcher: Batcher) -> list[asyncio.Future[str]]:
    """A question that keeps the model at work until its gate opens."""
    model.gate.clear()
    taken = batcher.submit(["a"])
    while not model.batches:
        await asyncio.sleep(0.001)
    return taken


def make(model: Model, most: int = 4, seconds: float = 60, room: int = 100) -> Batcher:
    return Batcher(model, most, seconds, room)


def test_a_lone_question_is_taken_at_once_and_others_gather_behind_it() -> None:
    async def run() -> None:
        batcher = make(model := Model())
        first = await held(model, batcher)
        later = [future for text in "bcdefg" for future in batcher.submit([text])]
        assert (batcher.waiting, batcher.at_work > 0) == (6, True)
        model.gate.set()
        assert [await future for future in first + later] == list("abcdefg")
        assert model.batches == [["a"], ["b", "c", "d", "e"], ["f", "g"]]
        assert batcher.at_work == 0
        await batcher.stop()

    asyncio.run(run())


def test_a_batch_takes_no_more_than_its_time_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    now, batches = 0.0, list[str]()

    def answer(questions: Sequence[str]) -> list[str]:
        nonlocal now
        now += 0.02 * len(questions)
        batches.append("".join(questions))
        return list(questions)

    monkeypatch.setattr(batcher_module, "time", SimpleNamespace(monotonic=lambda: now))

    async def run() -> None:
        batcher = Batcher(answer, 100, 0.07, 100)
        await gathered(batcher, ["a"])  # the time of one is known now
        await gathered(batcher, [*"bcdefghi"])
        assert batches == ["a", "bcd", "efg", "hi"]
        await batcher.stop()

    asyncio.run(run())


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    async def run() -> None:
        batcher = make(model := Model(), room=3)
        taken = await held(model, batcher)
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


def test_questions_that_nobody_waits_for_are_not_asked_and_take_no_room() -> None:
    async def run() -> None:
        batcher = make(model := Model(), room=3)
        first = await held(model, batcher)
        for future in batcher.submit(["b", "c", "d"]):
            future.cancel()
        assert batcher.waiting == 0
        gone, *later = batcher.submit(["gone", "f", "g"])
        gone.cancel()
        model.gate.set()
        assert [await future for future in first + later] == ["a", "f", "g"]
        assert model.batches == [["a"], ["f", "g"]]
        await batcher.stop()

    asyncio.run(run())


def test_stopping_answers_what_was_taken() -> None:
    async def run() -> None:
        batcher = make(Model(seconds=0.01), most=1)
        futures = batcher.submit([*"abc"])
        await batcher.stop()
        assert [future.result() for future in futures] == ["a", "b", "c"]

    asyncio.run(run())


def saturated(fixed: float, each: float, seconds: float = 0.05, batches: int = 40, most: int = 32) -> list[int]:
    """The sizes of batches of a queue that never empties, with exact simulated costs."""
    times, sizes = BatchTimes(), [1]
    for _ in range(batches):
        times.add(sizes[-1], fixed + each * sizes[-1])
        sizes.append(times.most(seconds, most))
    return sizes


@pytest.mark.parametrize(("fixed", "each", "expected"), cases(__file__, "test_a_fixed_cost_is_counted_once_a_batch"))
def test_a_fixed_cost_is_counted_once_a_batch(fixed: float, each: float, expected: int) -> None:
    sizes = saturated(fixed, each)
    assert abs(sizes[-1] - expected) <= 1
    assert sizes[1] <= max(2, 0.05 / (fixed + each))  # what a question adds is not known yet


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0, 100)), max_size=30))
def test_any_times_give_a_batch(observed: list[tuple[int, float]]) -> None:
    times = BatchTimes()
    for size, seconds in observed:
        times.add(size, seconds)
        assert 1 <= times.most(0.05, 32) <= 32
        assert all(0 <= cost < math.inf for cost in times.costs)
    assert 0 <= times.until(50, times.most(0.05, 32)) < math.inf


def test_batches_of_one_size_that_take_too_long_get_smaller() -> None:
    times = BatchTimes()
    sizes = [32]
    for _ in range(60):
        times.add(sizes[-1], 0.02 * sizes[-1])
        sizes.append(times.most(0.05, 32))
    assert sizes[1] == 16
    assert sizes[-1] in (1, 2, 3)


def test_costs_follow_noisy_times_and_a_machine_that_gets_slower() -> None:
    draw = random.Random(1)
    times = BatchTimes()
    for fixed, each in ((0.01, 0.001), (0.04, 0.004)):
        for _ in range(120):
            size = draw.randint(1, 32)
            times.add(size, (fixed + each * size) * draw.uniform(0.9, 1.1))
        assert times.costs == pytest.approx((fixed, each), rel=0.3)
    assert times.until(64, 32) == pytest.approx(2 * times.costs[0] + 64 * times.costs[1])
