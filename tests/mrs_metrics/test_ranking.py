"""Ranks, MRR, macro-MRR, precision at k and pools: hand-computed values, scikit-learn's and SciPy's, and properties."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics import ranking
from mrs_metrics.ranking import RankingScores, aggregate, random_pools, ranking_signature, ranks, score_rankings
from tests.mrs_metrics.modules import golden, refused_calls

GOLDEN: list[dict[str, Any]] = golden("response_ranking")
# few values, so that ties come
numbers = st.one_of(st.integers(-2, 2), st.floats(allow_nan=False, width=32))


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[list[float]], list[int], list[str]]:
    """Scores, targets (-1 among them) and replies of some examples."""
    scores = draw(st.lists(st.lists(numbers, max_size=6), min_size=1, max_size=8))
    targets = [draw(st.integers(-1, len(row) - 1)) for row in scores]
    return scores, targets, [draw(st.sampled_from("abc")) for _ in scores]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["why"])
def test_golden_cases(case: dict[str, Any]) -> None:
    scores = score_rankings(
        case["scores"], case["targets"], case.get("replies"), missing_reference=case.get("absent", "skip")
    )
    assert scores.reciprocal_ranks.tolist() == pytest.approx(case["reciprocal_ranks"], abs=1e-7)
    found = aggregate(scores, k=(1, 2, 3))
    assert {name: found[name] for name in case["figures"]} == pytest.approx(case["figures"], abs=1e-7)


def test_examples_without_their_reply_are_counted() -> None:
    skipped = score_rankings([[1, 2], [], [3, 4]], [1, -1, -1])
    assert (skipped.kept.tolist(), skipped.skipped, skipped.replies) == ([0], {"reply_absent": 2}, None)
    counted = score_rankings([[1, 2], [], [3, 4]], [1, -1, -1], missing_reference="zero")
    assert counted.ranks.tolist() == [1, 0, 0]
    assert (counted.kept.tolist(), counted.skipped) == ([0, 1, 2], {"reply_absent": 0})
    assert aggregate(counted) == {"n": 3, "mrr": pytest.approx(1 / 3), "p@1": pytest.approx(1 / 3)}
    assert "|absent:skip|" in skipped.signature
    assert "|absent:zero|" in counted.signature
    assert "absent" not in score_rankings([[1, 2]], [0]).signature
    with pytest.raises(ValueError, match=r"No examples are left to rank; skipped: \{'reply_absent': 1\}"):
        aggregate(score_rankings([[1]], [-1]))


def test_pools_are_those_of_random_pools() -> None:
    draw = np.random.default_rng(5)
    table, targets = draw.normal(size=(30, 50)), draw.integers(50, size=30)
    pools = random_pools(targets, 50, size=10, seed=3)
    expected = ranks(np.take_along_axis(table, pools, axis=1))
    for scores in (table, table.tolist(), table.astype(np.float64)):
        found = score_rankings(scores, targets, pool=10, seed=3)
        assert found.ranks.tolist() == expected.tolist()
        assert set(found.pool_sizes.tolist()) == {10}
    assert found.signature == ranking_signature(pool=10, seed=3)
    assert score_rankings(table, targets, pool=10, seed=4).ranks.tolist() != expected.tolist()
    # a pool of as many as there are, or more, holds all of them
    everything = score_rankings(table, targets, pool=80)
    assert everything.ranks.tolist() == ranks(table, targets).tolist()
    assert "|pool:50|" in everything.signature


def test_replies_are_told_apart_to_the_last_character() -> None:
    found = aggregate(score_rankings([[1, 0]] * 3, [0, 1, 1], replies=["a", "a\0", "a\0"]))
    assert (found["replies"], found["macro_mrr"]) == (2, 0.75)


@given(rankings())
def test_ranks_are_those_of_scipy(ranking: tuple[list[list[float]], list[int], list[str]]) -> None:
    from scipy.stats import rankdata

    scores, targets, _ = ranking
    expected = [
        int(rankdata([-score for score in row], method="max")[target]) if target >= 0 else 0
        for row, target in zip(scores, targets, strict=True)
    ]
    assert score_rankings(scores, targets, missing_reference="zero").ranks.tolist() == expected


@given(rankings(), st.randoms(use_true_random=False), st.sampled_from(["skip", "zero"]))
def test_bounds_and_the_order_of_examples(
    ranking: tuple[list[list[float]], list[int], list[str]], random: Any, absent: str
) -> None:
    scores = score_rankings(*ranking, missing_reference=absent)
    if not len(scores.kept):
        return
    found = aggregate(scores, k=(1, 2, 5))
    assert 0 <= found["p@1"] <= found["mrr"] <= 1
    assert found["mrr"] <= 1 / 2 + found["p@1"] / 2 + 1e-12
    assert 0 <= found["macro_mrr"] <= 1
    for k in (2, 5):
        assert found["p@1"] <= found[f"p@{k}"] * k + 1e-12
        assert found[f"p@{k}"] * k <= 1 + 1e-12
    rows = list(zip(*ranking, strict=True))
    random.shuffle(rows)
    shuffled = [list(column) for column in zip(*rows, strict=True)]
    assert aggregate(score_rankings(*shuffled, missing_reference=absent), k=(1, 2, 5)) == pytest.approx(found)


@given(rankings())
def test_macro_mrr_of_different_replies_is_mrr(ranking: tuple[list[list[float]], list[int], list[str]]) -> None:
    scores, targets, _ = ranking

    def score(replies: list[str]) -> RankingScores:
        return score_rankings(scores, targets, replies, missing_reference="zero")

    found = aggregate(score([str(number) for number in range(len(scores))]))
    assert (found["macro_mrr"], found["replies"]) == (pytest.approx(found["mrr"]), len(scores))
    found = aggregate(score(["a"] * len(scores)))
    assert (found["macro_mrr"], found["replies"]) == (pytest.approx(found["mrr"]), 1)


@given(rankings(), st.integers(1, 8), st.integers(0, 2**64 - 1))
def test_a_pool_ranks_no_worse_than_all_candidates(
    ranking: tuple[list[list[float]], list[int], list[str]], pool: int, seed: int
) -> None:
    everything = score_rankings(*ranking, missing_reference="zero")
    pooled = score_rankings(*ranking, missing_reference="zero", pool=pool, seed=seed)
    assert (pooled.ranks <= everything.ranks).all()
    assert (pooled.ranks <= pool).all()
    assert ((pooled.ranks == 0) == (everything.ranks == 0)).all()


def test_ranks_by_hand():
    scores = [[3.0, 1.0, 2.0], [1.0, 1.0, 1.0], [0.0, 5.0, 9.0]]
    assert ranks(scores).tolist() == [1, 3, 3]
    assert ranks(scores, 1).tolist() == [3, 3, 2]
    assert ranks(scores, [2, 0, 2]).tolist() == [2, 3, 1]
    assert ranks(np.zeros((0, 4))).tolist() == []


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *refused_calls(__file__, "test_bad_arguments", ranking),
        (lambda: aggregate(score_rankings([[1.0]], [0]), k=(1, 0)), "must be 1 or more"),
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
    whole = random_pools(list(range(50)), 500, 20)
    monkeypatch.setattr(ranking, "_CHUNK_ENTRIES", 100)
    assert random_pools(list(range(50)), 500, 20).tolist() == whole.tolist()
