"""Ranks, MRR, precision at k and pools with hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics.ranking import mean_reciprocal_rank, precision_at_k, random_pools, ranks, reciprocal_ranks


def test_ranks_by_hand():
    scores = [[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 5.0, 9.0]]
    assert ranks(scores).tolist() == [1, 3, 3]
    assert ranks(scores, 1).tolist() == [3, 3, 2]
    assert ranks(scores, [2, 0, 2]).tolist() == [2, 3, 1]
    assert ranks(np.zeros((0, 4))).tolist() == []


def test_figures_by_hand():
    assert reciprocal_ranks([1, 2, 4]).tolist() == [1.0, 0.5, 0.25]
    assert mean_reciprocal_rank([1, 2, 4]) == pytest.approx(1.75 / 3)
    assert mean_reciprocal_rank([1, 1, 4], groups=["thanks", "thanks", "fine"]) == pytest.approx((1 + 0.25) / 2)
    assert precision_at_k([1, 2, 4, 1]) == 0.5
    assert precision_at_k([1, 2, 4, 1], k=2) == pytest.approx(0.75 / 2)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ranks([1.0, 2.0]), "table"),
        (lambda: ranks([[1.0, float("nan")]]), "NaN"),
        (lambda: ranks([[1.0, 2.0]], 2), "outside the 2 columns"),
        (lambda: ranks([[1.0, 2.0]], [0, 1]), "one for each of the 1 rows"),
        (lambda: ranks([[1.0, 2.0]], 0.5), "integers"),
        (lambda: mean_reciprocal_rank([]), "At least one rank"),
        (lambda: mean_reciprocal_rank([0, 1]), "count from 1"),
        (lambda: mean_reciprocal_rank([1, 1], groups=["a"]), "one group for each of the 2"),
        (lambda: precision_at_k([1], k=0), "must be 1 or more"),
        (lambda: random_pools([5], 5), "from 0 to 4"),
        (lambda: random_pools([-1], 5), "from 0 to 4"),
        (lambda: random_pools([0], 5, size=0), "1 or more"),
        (lambda: random_pools([0], 5, seed=-1), "seed from 0"),
    ],
)
def test_bad_arguments(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@given(st.lists(st.integers(0, 29), max_size=12), st.integers(30, 200), st.integers(1, 120), st.integers(0, 2**64 - 1))
def test_pools_hold_the_target_and_distinct_others(targets, n_candidates, size, seed):
    pools = random_pools(targets, n_candidates, size, seed)
    assert pools.shape == (len(targets), min(size, n_candidates))
    assert pools[:, 0].tolist() == targets
    assert all(len(set(pool)) == len(pool) for pool in pools.tolist())
    assert np.all((pools >= 0) & (pools < n_candidates))
    # Independent of the order and of the batches.
    assert random_pools(targets[::-1], n_candidates, size, seed).tolist() == pools[::-1].tolist()
    assert [random_pools([target], n_candidates, size, seed)[0].tolist() for target in targets] == pools.tolist()


def test_pools_are_fixed_for_all_time():
    assert random_pools([3, 0], n_candidates=50, size=6, seed=7).tolist() == [
        [3, 44, 23, 21, 19, 20],
        [0, 20, 15, 25, 48, 37],
    ]


def test_pools_differ_by_seed_and_draw_every_candidate_alike():
    targets = np.arange(2000)
    first, second = (random_pools(targets, 2000, 21, seed) for seed in (0, 1))
    assert np.mean(first[:, 1:] == second[:, 1:]) < 0.01
    drawn = np.bincount(first[:, 1:].ravel(), minlength=2000)
    # 20 expected draws each, nearly Poisson: variance about 20.
    assert drawn.mean() == 20
    assert 17 < drawn.var() < 23


def test_large_pools_do_not_depend_on_chunks(monkeypatch):
    from mrs_metrics import ranking

    whole = random_pools(list(range(50)), 500, 20)
    monkeypatch.setattr(ranking, "_CHUNK_ENTRIES", 100)
    assert random_pools(list(range(50)), 500, 20).tolist() == whole.tolist()
