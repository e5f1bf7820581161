"""Several objectives in a run: what is refused, whose steps and batches there are, and what chooses the checkpoint."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.pretraining.mixture import require_sound_mixture
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.training import figures, mixed_figures
from mrs_suggest.training.sampling import MixedSampler, PairSampler
from tests.cases import cases

PARALLEL = ["en-ht=pairs.tsv"]


@pytest.mark.parametrize(("changes", "sentence"), cases(__file__, "REFUSED"))
def test_what_cannot_share_a_run_is_refused_in_a_sentence(changes: dict[str, Any], sentence: str) -> None:
    options = PretrainingArguments(objective=["mlm", "tlm"], parallel=PARALLEL)
    require_sound_mixture(options)
    with pytest.raises(InputError) as caught:
        require_sound_mixture(replace(options, **changes))
    assert str(caught.value).startswith(sentence)


SAMPLERS = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=2, max_size=3)


@given(parts=SAMPLERS, seed=st.integers(0, 99), epoch=st.integers(0, 3), accumulation=st.integers(1, 2))
def test_a_step_has_one_objective_and_ranks_share_it(
    parts: list[tuple[int, int]], seed: int, epoch: int, accumulation: int
) -> None:
    sizes, shares = [size for size, _ in parts], [weight / sum(w for _, w in parts) for _, weight in parts]

    def batches(batch: int, world: int, rank: int, accumulation: int) -> list[list[int]]:
        samplers = [
            PairSampler([size], batch, world_size=world, rank=rank, accumulation=accumulation, seed=seed)
            for size in sizes
        ]
        mixed = MixedSampler(samplers, sizes, shares, seed)
        told: list[int] = []
        mixed.told.append(told.append)
        mixed.set_epoch(epoch)
        found = list(mixed)
        assert told == [epoch]
        assert len(found) == len(mixed)
        return found

    whole = batches(4 * accumulation, 1, 0, 1)
    ranks = [batches(2, 2, rank, accumulation) for rank in range(2)]
    ends = np.cumsum(sizes)
    which = [{int(np.searchsorted(ends, row, side="right")) for row in step} for step in whole]
    assert all(len(objectives) == 1 for objectives in which)
    counts = np.bincount([objective for one in which for objective in one], minlength=len(sizes))
    assert counts == pytest.approx(np.array(shares) * len(whole), abs=len(sizes)), "shares are exact but for rounding"
    step = 4 * accumulation
    for size, end in zip(sizes, ends, strict=True):
        seen = {row for rows in whole for row in rows if end - size <= row < end}
        assert len(seen) >= size - step + 1 or len(seen) == size, "an epoch passes all rows of all objectives"
    for number, rows in enumerate(whole):
        mine = [row for part in range(accumulation) for rank in ranks for row in rank[number * accumulation + part]]
        assert sorted(mine) == sorted(rows), "two ranks have the rows of one"


def test_epochs_differ_and_a_short_objective_begins_again_in_another_order() -> None:
    samplers = [PairSampler([80], 4, seed=1), PairSampler([16], 4, seed=1)]
    mixed = MixedSampler(samplers, [80, 16], [0.5, 0.5], 1)
    epochs = []
    for epoch in range(2):
        mixed.set_epoch(epoch)
        epochs.append(list(mixed))
    assert len(mixed) == 40
    assert epochs[0] != epochs[1]
    for found in epochs:
        second = [row for rows in found for row in rows if row >= 80]
        assert sorted(second) == sorted(list(range(80, 96)) * 5)
        passes = [tuple(rows) for rows in found if rows[0] >= 80]
        assert len(set(passes)) > 4, "other batches in each pass"
    mixed.set_epoch(0)
    assert list(mixed) == epochs[0]


def test_the_first_objectives_perplexity_chooses_and_the_mean_loss_is_by_shares() -> None:
    losses = {"mlm": {"ht": ([2.0, 4.0], [1, 2])}, "tlm": {"en-ht": ([9.0], [3])}}
    found = mixed_figures(losses, {"mlm": 0.25, "tlm": 0.75})
    assert found["loss"] == pytest.approx(2.0)
    assert found["perplexity"] == pytest.approx(np.exp(2.0)) == found["perplexity_ht"]
    assert found["tlm_perplexity"] == pytest.approx(np.exp(3.0)) == found["tlm_perplexity_en-ht"]
    assert found["mean_loss"] == pytest.approx(0.25 * 2 + 0.75 * 3)
    assert mixed_figures({"mlm": losses["mlm"]}, {"mlm": 1.0}) == figures(losses["mlm"])
