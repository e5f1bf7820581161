"""Which rows stand in which batch: shares, ranks, windows, epochs, and what is left after a resume."""

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytest
from accelerate import skip_first_batches
from hypothesis import assume, given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.sampling import CountedSampler, PairLoader, PairSampler, shares
from tests.cases import cases


def flat(lists: list[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


@dataclass(frozen=True)
class Case:
    """Arguments of a sampler; `step` is the examples of a step."""

    sizes: tuple[int, ...]
    batch: int
    alpha: float
    mixed: bool
    world: int
    accumulation: int
    seed: int
    window: int
    lengths: tuple[int, ...] | None

    @property
    def step(self) -> int:
        return self.batch * self.world * self.accumulation

    def sampler(self, rank: int = 0, epoch: int = 0, **changes: Any) -> PairSampler:
        case = replace(self, **changes)
        lengths = None if case.lengths is None else np.array(case.lengths)
        made = PairSampler(
            case.sizes, case.batch, alpha=case.alpha, mixed=case.mixed, lengths=lengths, window=case.window,
            world_size=case.world, rank=rank, accumulation=case.accumulation, seed=case.seed,
        )  # fmt: skip
        made.set_epoch(epoch)
        return made

    def steps(self, epoch: int = 0, **changes: Any) -> list[list[int]]:
        """The rows of each step on all ranks: each rank's batches, in the order of the step."""
        case = replace(self, **changes)
        ranks = [list(case.sampler(rank, epoch)) for rank in range(case.world)]
        batches = [batch for together in zip(*ranks, strict=True) for batch in together]
        per = case.world * case.accumulation
        assert len(batches) % per == 0
        return [flat(batches[begin : begin + per]) for begin in range(0, len(batches), per)]

    def source(self, row: int) -> int:
        return next(number for number, end in enumerate(accumulate(self.sizes)) if row < end)


@st.composite
def any_case(draw: st.DrawFn, **fixed: Any) -> Case:
    sizes = tuple(draw(st.lists(st.integers(1, 60), min_size=1, max_size=6)))
    lengths = st.lists(st.integers(0, 200), min_size=sum(sizes), max_size=sum(sizes)).map(tuple)
    case = Case(
        sizes=sizes, batch=draw(st.integers(1, 7)), alpha=draw(st.sampled_from([0.0, 0.3, 1.0])),
        mixed=draw(st.booleans()), world=draw(st.integers(1, 3)), accumulation=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 9)), window=draw(st.integers(0, 4)), lengths=draw(st.none() | lengths),
    )  # fmt: skip
    return replace(case, **fixed)


# --- shares


@pytest.mark.parametrize(("sizes", "alpha", "expected"), cases(__file__, "test_steps_of_each_source_by_hand"))
def test_steps_of_each_source_by_hand(sizes: list[int], alpha: float, expected: list[int]) -> None:
    case = Case(tuple(sizes), 5, alpha, False, 1, 1, 3, 0, None)
    found = Counter(case.source(rows[0]) for rows in case.steps())
    assert [found[number] for number in range(len(sizes))] == expected


@given(any_case(mixed=False))
def test_a_step_has_one_source_and_shares_are_exact(case: Case) -> None:
    steps = case.steps()
    assert all(len({case.source(row) for row in rows}) == 1 for rows in steps)
    exact = shares(case.sizes, case.alpha) * len(steps)
    found = np.bincount([case.source(rows[0]) for rows in steps], minlength=len(case.sizes))
    needed = np.maximum(np.array(case.sizes) // case.step, 1)
    assert (found >= needed).all()
    assume((exact >= needed).all())
    assert (np.abs(found - exact) < 1).all()


@given(any_case())
def test_every_row_is_seen_in_an_epoch_but_for_what_fills_no_step(case: Case) -> None:
    unseen = set(range(sum(case.sizes))) - {row for rows in case.steps() for row in rows}
    if case.mixed:
        assert len(unseen) < case.step
        return
    left = Counter(case.source(row) for row in unseen)
    for number, size in enumerate(case.sizes):
        assert left[number] <= (size % case.step if size >= case.step else 0)


# --- ranks and steps


@given(any_case())
def test_all_ranks_have_equally_many_whole_batches(case: Case) -> None:
    """Else one rank would wait for ever."""
    for rank in range(case.world):
        sampler = case.sampler(rank)
        batches = list(sampler)
        assert len(batches) == len(sampler) == len(case.sampler(0))
        assert len(batches) % case.accumulation == 0
        assert len(batches) > 0
        assert {len(batch) for batch in batches} == {case.batch}
        assert all(isinstance(row, int) for row in batches[0])


@given(any_case(), st.integers(0, 3))
def test_the_same_step_however_it_is_divided(case: Case, epoch: int) -> None:
    """Two ranks with b, one rank with 2b, and one rank with b and two batches a step draw the same rows."""
    two_ranks = case.steps(epoch, world=2, accumulation=1)
    assert two_ranks == case.steps(epoch, world=1, accumulation=1, batch=2 * case.batch)
    assert two_ranks == case.steps(epoch, world=1, accumulation=2)
    whole = case.steps(epoch, world=1, accumulation=1, batch=case.step)
    assert case.steps(epoch) == whole


# --- epochs


@given(any_case(), st.integers(0, 50))
def test_an_epoch_is_the_same_each_time(case: Case, epoch: int) -> None:
    sampler = case.sampler(epoch=epoch)
    first = list(sampler)
    assert list(sampler) == first
    sampler.set_epoch(epoch + 1)
    assert len(list(sampler)) == len(first)
    sampler.set_epoch(epoch)
    assert list(sampler) == first == list(case.sampler(epoch=epoch))


@pytest.mark.parametrize("mixed", [False, True])
def test_epochs_and_seeds_differ(mixed: bool) -> None:
    lengths = tuple(np.random.default_rng(0).permutation(90).tolist())  # a sort of all rows would know one order
    case = Case((60, 30), 5, 1.0, mixed, 1, 1, 3, 2, lengths)
    orders = [case.steps(epoch) for epoch in range(5)] + [case.steps(seed=seed) for seed in (4, 5)]
    for number, order in enumerate(orders):
        assert order not in orders[:number]
        # The partners of a row change too, not only the order of the batches.
        assert [sorted(rows) for rows in sorted(order)] != [sorted(rows) for rows in sorted(orders[number - 1])]


# --- loaders


@given(any_case(), st.integers(0, 3), st.integers(0, 200))
def test_a_resumed_epoch_has_the_batches_that_are_left(case: Case, epoch: int, done: int) -> None:
    """As the trainer resumes: skip what was trained, then set the epoch on the sampler inside, which passes it on."""
    expected, sampler, told = list(case.sampler(epoch=epoch)), case.sampler(), list[int]()
    sampler.told.append(told.append)
    done %= len(expected) + 1
    loader = PairLoader(range(sum(case.sizes)), batch_sampler=sampler, collate_fn=list)  # type: ignore[arg-type]
    resumed = skip_first_batches(loader, done)
    resumed.batch_sampler.batch_sampler.set_epoch(epoch)
    assert list(resumed) == expected[done:]
    loader.set_epoch(epoch + 1)  # the epochs after it are whole
    assert list(loader) == list(case.sampler(epoch=epoch + 1))
    assert len(loader) == len(expected)
    assert told == [epoch, epoch + 1]


@pytest.mark.parametrize("sizes", [[], [5, 0]])
def test_a_source_without_rows_is_refused(sizes: list[int]) -> None:
    with pytest.raises(InputError, match="a training source has no examples"):
        PairSampler(sizes, 2)


@given(any_case())
def test_counted_numbers_tell_each_use_of_a_row(case: Case) -> None:
    """In the order of the steps, whatever the ranks."""
    rows, uses = sum(case.sizes), Counter[int]()
    counted = [CountedSampler(case.sampler(rank), rows) for rank in range(case.world)]
    for sampler in counted:
        sampler.set_epoch(2)
    usual = flat(case.steps(2))
    batches = [batch for together in zip(*(list(sampler) for sampler in counted), strict=True) for batch in together]
    for number, row in zip(flat(batches), usual, strict=True):
        assert divmod(number, rows) == (uses[row], row)
        uses[row] += 1
