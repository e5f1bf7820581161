"""Intervals and tests of figures that are not means: against the mean's own, and by enumeration."""

from itertools import product

import numpy as np
import pytest

from mrs_metrics.corpus import Corpus, jackknife_interval, ratio_figure, swap_test, unpaired_test
from mrs_metrics.distinct import distinct_corpus, distinct_n
from mrs_metrics.ranking import aggregate, macro_corpus, score_rankings
from mrs_metrics.significance import permutation_test

VALUES = np.random.default_rng(0).random((2, 60))


def _mean(values: np.ndarray) -> Corpus:
    return Corpus([(float(value), 1.0) for value in values], ratio_figure)


def test_the_jackknife_of_a_mean_is_students_interval() -> None:
    low, high = jackknife_interval(_mean(VALUES[0]))
    error = VALUES[0].std(ddof=1) / 60**0.5
    assert (low + high) / 2 == pytest.approx(VALUES[0].mean())
    assert high - low == pytest.approx(2 * 2.001 * error, rel=1e-3)
    a, b = VALUES
    both = jackknife_interval(_mean(a), None, _mean(b))
    assert np.ptp(both) == pytest.approx(2 * 2.001 * (a - b).std(ddof=1) / 60**0.5, rel=1e-3)


def test_the_rows_of_a_unit_are_left_out_together() -> None:
    repeated, units = np.repeat(VALUES[0], 4), np.repeat(np.arange(60), 4).tolist()
    assert jackknife_interval(_mean(repeated), units) == pytest.approx(jackknife_interval(_mean(VALUES[0])))
    assert np.ptp(jackknife_interval(_mean(repeated))) < np.ptp(jackknife_interval(_mean(repeated), units)) / 1.9


def test_many_units_are_left_out_in_groups() -> None:
    values = np.random.default_rng(1).random(3_000)
    width = np.ptp(jackknife_interval(_mean(values)))
    assert width == pytest.approx(2 * 1.96 * values.std() / 3_000**0.5, rel=0.1)


@pytest.mark.parametrize("named", [True, False], ids=["units", "rows"])
def test_the_groups_of_many_units_do_not_depend_on_the_order_of_rows(named: bool) -> None:
    random = np.random.default_rng(2)
    values, other = random.random((2, 900))
    units = [f"message {number // 2}" for number in range(900)] if named else None
    orders = [np.arange(900), random.permutation(900), np.arange(900)[::-1]]
    found = [
        jackknife_interval(_mean(values[order]), units and [units[place] for place in order], _mean(other[order]))
        for order in orders
    ]
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    assert found[2] == pytest.approx(found[0], abs=1e-12)


def test_without_an_interval_the_method_gives_the_reason() -> None:
    assert jackknife_interval(_mean(VALUES[0]), ["a"] * 60).method == "no interval: there is a single unit"
    assert jackknife_interval(_mean(np.ones(9))).ends is None
    assert jackknife_interval(_mean(VALUES[0]), None, _mean(VALUES[0])).ends is None, "two equal systems"


def test_the_swap_test_of_a_mean_is_the_permutation_test() -> None:
    a, b = VALUES[:, :8]
    assert swap_test(_mean(a), _mean(b)) == permutation_test(a, b)
    units = [0, 0, 1, 1, 2, 2, 3, 3]
    assert swap_test(_mean(a), _mean(b), units) == permutation_test(a, b, units=units)
    a, b = VALUES
    assert swap_test(_mean(a), _mean(b), samples=4_000) == pytest.approx(permutation_test(a, b), abs=0.03)
    assert swap_test(_mean(a), _mean(a)) == 1


def test_swaps_compute_dist_n_again() -> None:
    ours, theirs = [["a b", "c"], ["d"], ["e f"]], [["a"], ["a", "a"], ["b a"]]
    split = [[[text.split() for text in texts] for texts in system] for system in (ours, theirs)]

    def dist(rows: list[list[list[str]]]) -> float:
        return distinct_n([tokens for texts in rows for tokens in texts], 1)

    observed = abs(dist(split[0]) - dist(split[1]))
    found = []
    for swaps in product((0, 1), repeat=3):
        chosen = [[split[which ^ swap][place] for place, swap in enumerate(swaps)] for which in (0, 1)]
        found.append(abs(dist(chosen[0]) - dist(chosen[1])) >= observed - 1e-12)
    assert swap_test(*(distinct_corpus(system, 1) for system in split)) == np.mean(found) < 1


def test_the_figures_are_those_of_the_metrics() -> None:
    texts = [[["a", "b"], ["a"]], [["c", "a", "b"]]]
    flat = [tokens for some in texts for tokens in some]
    for n, denominator, level in ((1, "tokens", "corpus"), (2, "ngrams", "corpus"), (1, "tokens", "response")):
        expected = distinct_n(flat, n, denominator, level)
        assert distinct_corpus(texts, n, denominator, level).value == pytest.approx(expected)
    scores = score_rankings([[3, 1], [1, 3], [2, 3]], [0, 0, 1], replies=["x", "y", "x"])
    assert scores.replies is not None
    macro = macro_corpus(scores.replies.tolist(), scores.reciprocal_ranks.tolist())
    assert macro.value == pytest.approx(aggregate(scores)["macro_mrr"])


def test_the_unpaired_test_is_welchs_for_many_normal_scores() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(3)
    for shift in (0.0, 0.1, 0.25):
        a, b = random.normal(shift, 1, 300), random.normal(0, 2, 500)
        welch = stats.ttest_ind(a, b, equal_var=False)
        (low, high), p = unpaired_test(a, b)
        assert p == pytest.approx(welch.pvalue, abs=0.02)
        assert (low, high) == pytest.approx(welch.confidence_interval(), abs=0.03)
    assert unpaired_test(np.ones(9), np.zeros(9)) == (pytest.approx((np.nan, np.nan), nan_ok=True), 1.0)


def test_the_unpaired_test_knows_nothing_about_the_error_of_few_units() -> None:
    random = np.random.default_rng(5)
    for one, of_one in (([0.9], None), ([0.9, 0.8, 0.7], ["a"] * 3), (random.random(9), None)):
        interval, p = unpaired_test(one, random.random(50), of_one)
        assert (interval.ends, p) == (None, 1.0)
        assert unpaired_test(random.random(50), one, None, of_one)[1] == 1.0


def test_the_unpaired_test_draws_units_and_rejects_as_often_as_it_should() -> None:
    """Eight rows of a message are one observation: by row, half of the samples without a difference would differ."""
    random = np.random.default_rng(4)
    units = np.repeat(np.arange(40), 8).tolist()
    rejected = {"unit": 0, "row": 0}
    for _ in range(200):
        a, b = (np.repeat(random.exponential(1, 40), 8) + random.normal(0, 0.1, 320) for _ in range(2))
        rejected["unit"] += unpaired_test(a, b, units, units, samples=199)[1] < 0.05
        rejected["row"] += unpaired_test(a, b, samples=199)[1] < 0.05
    assert rejected["unit"] <= 20
    assert rejected["row"] > 60
