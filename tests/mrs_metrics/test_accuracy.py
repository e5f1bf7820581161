"""Intervals and tests of accuracies: known values, the coverage that is claimed, and what is paired."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics import accuracy
from mrs_metrics.accuracy import (
    chance_test,
    macro_average,
    macro_difference_test,
    weighted_wilson_interval,
    wilson_interval,
)
from mrs_metrics.significance import permutation_test
from tests.mrs_metrics.modules import refused_calls


def test_wilson_by_its_formula() -> None:
    for correct, n in ((0, 10), (7, 10), (259, 500), (500, 500)):
        p, z = correct / n, 1.959963984540054
        middle, half = p + z * z / (2 * n), z * (p * (1 - p) / n + z * z / (4 * n * n)) ** 0.5
        ends = [(middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)]
        assert wilson_interval(correct, n) == pytest.approx(tuple(min(max(end, 0), 1) for end in ends), abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=6))
def test_strata_in_proportion_are_one_sample(strata: list[tuple[int, int]]) -> None:
    """With weights as the sizes say, the interval is Wilson's of the whole, or wider where the strata differ."""
    sizes = [size for _, size in strata]
    counts = [min(count, size) for count, size in strata]
    low, high = weighted_wilson_interval(counts, sizes, [size / sum(sizes) for size in sizes])
    plain = wilson_interval(sum(counts), sum(sizes))
    assert (low, high) == pytest.approx(plain, abs=1e-9)


@pytest.mark.parametrize(("large", "small"), [(0.02, 0.02), (0.2, 0.01), (0.05, 0.0)])
def test_weighted_interval_contains_the_share_as_often_as_it_says(large: float, small: float) -> None:
    """A language with most of the pairs and nine small ones, a hundred judged pairs of each."""
    weights = np.array([0.82, *[0.18 / 9] * 9])
    shares = np.array([large, *[small] * 9])
    counts = np.random.default_rng(5).binomial(100, shares, (2000, 10))
    ends = [weighted_wilson_interval(row, [100] * 10, weights) for row in counts]
    assert np.mean([low <= weights @ shares <= high for low, high in ends]) >= 0.93


@pytest.mark.parametrize(
    ("counts", "sizes", "weights"),
    [([], [], []), ([1], [2, 3], [1]), ([3], [2], [1]), ([0], [0], [1]), ([1, 1], [2, 2], [0.5, 0.6])],
)
def test_what_are_no_strata(counts: list[int], sizes: list[int], weights: list[float]) -> None:
    with pytest.raises(ValueError, match="strata|Expected counts"):
        weighted_wilson_interval(counts, sizes, weights)


@given(n=st.integers(1, 60), share=st.floats(0, 1), choices=st.integers(2, 4))
def test_chance_is_the_sum_over_what_is_no_more_likely(n: int, share: float, choices: int) -> None:
    chance = 1 / choices
    likely = [comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]
    correct = round(share * n)
    expected = sum(one for one in likely if one <= likely[correct] * (1 + 1e-7))
    assert chance_test(correct, n, choices) == pytest.approx(min(expected, 1), abs=1e-9)


def test_languages_that_are_alike_do_not_narrow_the_interval() -> None:
    """Eleven copies of one language tell no more than one does; eleven independent ones do."""
    generator = np.random.default_rng(0)
    one = generator.integers(2, size=500)
    alone, copies = macro_average({"et": one}), macro_average({str(n): one for n in range(11)})
    assert copies == pytest.approx(alone)
    apart = macro_average({str(n): generator.integers(2, size=500) for n in range(11)})
    assert (apart.high - apart.low) < 0.5 * (alone.high - alone.low)


@given(st.lists(st.tuples(*[st.integers(0, 1)] * 4), min_size=1, max_size=12), st.randoms())
def test_two_runs_are_compared_over_the_same_examples(rows: list[tuple[int, ...]], random: object) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    a, b = {"et": columns[0], "qu": columns[1]}, {"qu": columns[3], "et": columns[2]}
    order = list(range(len(rows)))
    random.shuffle(order)  # type: ignore[attr-defined]
    shuffled = [{code: [run[code][i] for i in order] for code in run} for run in (a, b)]
    p = macro_difference_test(a, b)
    assert p == pytest.approx(macro_difference_test(b, a))
    assert p == pytest.approx(macro_difference_test(*shuffled))
    assert macro_difference_test(a, a) == 1
    single = macro_difference_test({"et": columns[0]}, {"et": columns[2]})
    assert single == permutation_test(columns[0], columns[2])


@pytest.mark.parametrize(
    ("call", "sentence"), refused_calls(__file__, "test_what_cannot_be_computed_is_told", accuracy)
)
def test_what_cannot_be_computed_is_told(call: object, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()  # type: ignore[operator]
