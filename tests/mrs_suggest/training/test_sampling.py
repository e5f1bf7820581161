"""Which rows stand in which batch: shares, ranks, windows, epochs, and what is left after a resume."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pytest
from accelerate import skip_first_batches
from datasets import Dataset
from hypothesis import assume, given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.reply.data import byte_lengths
from mrs_suggest.training.sampling import CountedSampler, PairLoader, PairSampler, make_sampler, shares


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
        made = PairSampler(
            case.sizes,
            case.batch,
            alpha=case.alpha,
            mixed=case.mixed,
            lengths=None if case.lengths is None else np.array(case.lengths),
            window=case.window,
            world_size=case.world,
            rank=rank,
            accumulation=case.accumulation,
            seed=case.seed,
        )
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
def cases(draw: st.DrawFn, **fixed: Any) -> Case:
    sizes = tuple(draw(st.lists(st.integers(1, 60), min_size=1, max_size=6)))
    lengths = st.lists(st.integers(0, 200), min_size=sum(sizes), max_size=sum(sizes)).map(tuple)
    case = Case(
        sizes=sizes,
        batch=draw(st.integers(1, 7)),
        alpha=draw(st.sampled_from([0.0, 0.3, 1.0])),
        mixed=draw(st.booleans()),
        world=draw(st.integers(1, 3)),
        accumulation=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 9)),
        window=draw(st.integers(0, 4)),
        lengths=draw(st.none() | lengths),
    )
    return replace(case, **fixed)


# --- shares


@pytest.mark.parametrize(
    ("sizes", "alpha", "expected"),
    [
        ([40, 10], 0.0, [8, 8]),
        ([40, 10], 0.3, [8, 5]),  # 13 steps at .602 and .398
        ([40, 10], 1.0, [8, 2]),
        ([40, 10, 5], 0.0, [8, 8, 8]),
        ([7], 1.0, [1]),
        ([2], 1.0, [1]),  # repeats to fill a step
    ],
)
def test_steps_of_each_source_by_hand(sizes: list[int], alpha: float, expected: list[int]) -> None:
    case = Case(tuple(sizes), 5, alpha, False, 1, 1, 3, 0, None)
    found = Counter(case.source(rows[0]) for rows in case.steps())
    assert [found[number] for number in range(len(sizes))] == expected


@given(cases(mixed=False))
def test_shares_are_exact(case: Case) -> None:
    steps = case.steps()
    exact = shares(case.sizes, case.alpha) * len(steps)
    found = np.bincount([case.source(rows[0]) for rows in steps], minlength=len(case.sizes))
    needed = np.maximum(np.array(case.sizes) // case.step, 1)
    assert (found >= needed).all()
    assume((exact >= needed).all())
    assert (np.abs(found - exact) < 1).all()


@given(cases(mixed=True))
def test_shares_of_mixed_batches_are_exact(case: Case) -> None:
    rows = flat(case.steps())
    found = np.bincount([case.source(row) for row in rows], minlength=len(case.sizes))
    assert (np.abs(found - shares(case.sizes, case.alpha) * len(rows)) < 1).all()


@given(cases())
def test_every_row_is_seen_in_an_epoch_but_for_what_fills_no_step(case: Case) -> None:
    unseen = set(range(sum(case.sizes))) - {row for rows in case.steps() for row in rows}
    if case.mixed:
        assert len(unseen) < case.step
        return
    left = Counter(case.source(row) for row in unseen)
    for number, size in enumerate(case.sizes):
        assert left[number] <= (size % case.step if size >= case.step else 0)


def test_many_small_sources_take_no_steps_from_a_large_one() -> None:
    case = Case((100, 1, 1, 1, 1, 1), 10, 1.0, False, 1, 1, 0, 0, None)
    seen = {row for rows in case.steps() for row in rows}
    assert seen == set(range(105))


@given(cases())
def test_rows_repeat_evenly(case: Case) -> None:
    """No row of a source comes again before all others came: passes are shuffled, rows are not drawn."""
    counts = Counter(row for rows in case.steps() for row in rows)
    assert all(0 <= row < sum(case.sizes) for row in counts)
    begin = 0
    for size in case.sizes:
        times = [counts[row] for row in range(begin, begin + size)]
        assert max(times) - min(times) <= 1
        begin += size


# --- ranks and steps


@given(cases())
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


@given(cases(), st.integers(0, 3))
def test_the_same_step_however_it_is_divided(case: Case, epoch: int) -> None:
    """Two ranks with b, one rank with 2b, and one rank with b and two batches a step draw the same rows."""
    two_ranks = case.steps(epoch, world=2, accumulation=1)
    assert two_ranks == case.steps(epoch, world=1, accumulation=1, batch=2 * case.batch)
    assert two_ranks == case.steps(epoch, world=1, accumulation=2)
    whole = case.steps(epoch, world=1, accumulation=1, batch=case.step)
    assert case.steps(epoch) == whole


@given(cases(mixed=False))
def test_a_step_has_one_source(case: Case) -> None:
    for rows in case.steps():
        assert len({case.source(row) for row in rows}) == 1


@pytest.mark.parametrize("mixed", [False, True])
def test_a_source_smaller_than_a_step(mixed: bool) -> None:
    case = Case((3, 40), 8, 0.0, mixed, 1, 1, 0, 0, None)
    counts = Counter(row for rows in case.steps() for row in rows)
    assert [counts[row] for row in range(3, 43)] == [1] * 40
    assert sorted(counts[row] for row in range(3)) == [13, 13, 14]  # forty draws, as many as of the other


# --- lengths


def padding(case: Case, steps: list[list[int]]) -> int:
    assert case.lengths is not None
    return sum(
        max(case.lengths[row] for row in rows) * len(rows) - sum(case.lengths[r] for r in rows) for rows in steps
    )


@given(cases())
def test_windows_save_padding_and_keep_the_rows(case: Case) -> None:
    assume(case.lengths is not None)
    plain, sorted_ = case.steps(window=0), case.steps()
    assert Counter(flat(plain)) == Counter(flat(sorted_))
    assert padding(case, sorted_) <= padding(case, plain)


@pytest.mark.parametrize("mixed", [False, True])
def test_windows_save_most_padding_without_sorting_the_epoch(mixed: bool) -> None:
    lengths = tuple(np.random.default_rng(0).integers(5, 200, 2_000).tolist())
    case = Case((1_000, 1_000), 10, 1.0, mixed, 1, 1, 0, 50, lengths)
    assert padding(case, case.steps()) < 0.1 * padding(case, case.steps(window=0))
    longest = [max(lengths[row] for row in rows) for rows in case.steps()]
    assert abs(np.corrcoef(longest, np.arange(len(longest)))[0, 1]) < 0.2  # short and long steps come in any order


def test_both_sides_save_padding_where_their_sum_does_not() -> None:
    rng = np.random.default_rng(0)
    sides = rng.integers(1, 100, (2_000, 2))

    def padded(lengths: np.ndarray) -> int:
        sampler = PairSampler([2_000], 10, lengths=lengths, window=50, seed=1)
        return sum(int(sides[rows].max(axis=0).sum()) * len(rows) for rows in sampler)

    both, total = padded(sides), padded(sides.sum(axis=1))
    assert both < 0.85 * total
    assert both < 0.75 * padded(np.zeros(2_000, np.int64))
    rows = [row for batch in PairSampler([2_000], 10, lengths=sides, window=50, seed=1) for row in batch]
    assert sorted(rows) == list(range(2_000))


# --- epochs


@given(cases(), st.integers(0, 50))
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


@given(cases(), st.integers(0, 3), st.integers(0, 200))
def test_a_resumed_epoch_has_the_batches_that_are_left(case: Case, epoch: int, done: int) -> None:
    """As the trainer resumes: skip what was trained, then set the epoch on the sampler inside."""
    expected = list(case.sampler(epoch=epoch))
    done %= len(expected) + 1
    loader = PairLoader(range(sum(case.sizes)), batch_sampler=case.sampler(), collate_fn=list)  # type: ignore[arg-type]
    resumed = skip_first_batches(loader, done)
    resumed.batch_sampler.batch_sampler.set_epoch(epoch)
    assert list(resumed) == expected[done:]
    loader.set_epoch(epoch + 1)  # the epochs after it are whole
    assert list(loader) == list(case.sampler(epoch=epoch + 1))
    assert len(loader) == len(expected)


@dataclass
class Training:
    """What the sampler and the loader read of the trainer's arguments."""

    per_device_train_batch_size: int = 4
    world_size: int = 2
    process_index: int = 1
    gradient_accumulation_steps: int = 3
    seed: int = 7
    dataloader_num_workers: int = 0
    dataloader_pin_memory: bool = False
    dataloader_persistent_workers: bool = False
    dataloader_prefetch_factor: int | None = None


@dataclass
class Options:
    batches: str = "language"
    length_window: int = 2


LENGTHS = np.random.default_rng(1).integers(5, 50, 90)


def test_the_options_of_a_run_reach_its_sampler() -> None:
    case = Case((60, 30), 4, 0.3, False, 2, 3, 7, 2, tuple(LENGTHS.tolist()))
    made = make_sampler([60, 30], Options(), Training(), 0.3, LENGTHS)
    assert list(made) == list(case.sampler(rank=1))
    mixed = make_sampler([60, 30], Options(batches="mixed", length_window=0), Training(process_index=0), 1.0, LENGTHS)
    assert list(mixed) == list(case.sampler(mixed=True, window=0, alpha=1.0))


@pytest.mark.parametrize("sizes", [[], [5, 0]])
def test_a_source_without_rows_is_refused(sizes: list[int]) -> None:
    with pytest.raises(InputError, match="a training source has no examples"):
        PairSampler(sizes, 2)


@given(cases())
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


def test_byte_lengths_are_those_of_both_sides() -> None:
    pairs = Dataset.from_dict({"message": ["ab", "ñ", ""], "reply": ["c", "はい", "x"], "label": [1, 2, 3]})
    assert byte_lengths(pairs).sum(axis=1).tolist() == [3, 2 + 6, 1]
    chosen = pairs.select([2, 0])  # a sample of rows: in its own order
    assert byte_lengths(chosen).sum(axis=1).tolist() == [1, 3]


def test_whoever_draws_with_the_epoch_is_told_of_it() -> None:
    """Also where the library puts its own loader before the sampler, in the first epoch of a resumed run."""
    from accelerate import skip_first_batches

    told: list[int] = []
    sampler = PairSampler([8], 2)
    sampler.told.append(told.append)
    PairLoader(list(range(8)), batch_sampler=sampler).set_epoch(1)
    skipping = skip_first_batches(PairLoader(list(range(8)), batch_sampler=sampler), 1)
    skipping.batch_sampler.batch_sampler.set_epoch(2)  # as transformers' trainer does
    assert told == [1, 2]
