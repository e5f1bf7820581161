"""Intervals, tests and ranks against exact, brute-force and other packages' values."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mrs_metrics import significance
from mrs_metrics.significance import (
    bootstrap_interval,
    holm,
    paired_bootstrap_interval,
    permutation_test,
    rank_groups,
    ratio_interval,
    resampled_sums,
)
from tests.mrs_metrics.modules import refused_calls


def test_interval_of_a_coin_by_the_binomial_law():
    # 100 tosses, half heads: t is that of Binomial(100, 1/2) / 100, whose 97.5 % point .60 is .05 / .049 * 2 = 2.04.
    low, high = paired_bootstrap_interval([0, 1] * 50, [0] * 100, samples=20_000)
    assert (low, high) == (pytest.approx(0.398, abs=0.006), pytest.approx(0.602, abs=0.006))


@pytest.mark.parametrize(("ones", "n"), [(0, 50), (1, 50), (7, 50), (50, 50), (1, 1), (61, 3_000)])
@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_shares_have_clopper_and_pearsons_interval(ones, n, confidence):
    found = bootstrap_interval([1] * ones + [0] * (n - ones), confidence)
    expected = binomtest(ones, n).proportion_ci(confidence, method="exact")
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert found.method == "Clopper-Pearson"


def test_where_there_is_no_interval_the_method_says_why():
    for found, reason in (
        (bootstrap_interval([0.7]), "there is a single score"),
        (bootstrap_interval([0.1] * 7), "all 7 scores are equal"),
        (bootstrap_interval([0.3, 0.7, 0.3, 0.7], units=[1, 1, 2, 2]), "all 2 scores are equal"),
        (bootstrap_interval([0.3, 0.7], units=[1, 1]), "there is a single score"),
        (paired_bootstrap_interval([1.0] * 3, [0.0] * 3), "all 3 differences are equal"),
        (paired_bootstrap_interval([1.0], [0.0]), "there is a single difference"),
        (ratio_interval([0.0, 0.0], [3, 4]), "all 2 scores are equal"),
    ):
        assert (found.ends, found.method) == (None, f"no interval: {reason}")
        assert np.isnan(found).all()
    assert bootstrap_interval([0.0, 0.5]).ends == [0.0, 0.5]
    assert paired_bootstrap_interval([1.0, 0.0], [0.0, 0.0]).method == "studentised bootstrap", "no share"


def test_shares_of_units():
    ones = [1.0] * 6 + [0.0] * 44
    units = [n for n in range(50) for _ in range(3)]
    assert bootstrap_interval(np.repeat(ones, 3), units=units) == bootstrap_interval(ones)
    mixed = np.repeat(ones, 3)
    mixed[0] = 0
    assert bootstrap_interval(mixed, units=units).method == "studentised bootstrap"
    sizes = [1, 6] * 25  # effectively (7 * 25)**2 / (37 * 25) = 33.1 units
    uneven = [n for n, size in enumerate(sizes) for _ in range(size)]
    assert bootstrap_interval([0] * 175, units=uneven) == bootstrap_interval([0] * 33)
    assert ratio_interval([2, 1, 4], [2, 1, 4], shares=True) == bootstrap_interval([1] * 2)


@pytest.mark.parametrize("by_unit", [False, True])
def test_the_mean_of_scores_that_are_mostly_zero_is_covered(by_unit):
    """Without the exact interval of scores that are all 0, in .90 of the samples."""
    generator = np.random.default_rng(16)
    held = 0
    for number in range(300):
        values = np.where(generator.random(50) < 0.95, 0.0, generator.beta(1, 2, 50))
        units = np.repeat(np.arange(50), generator.integers(1, 7, 50)) if by_unit else np.arange(50)
        low, high = bootstrap_interval(values[units], samples=300, seed=number, units=units.tolist())
        held += low <= 0.05 / 3 <= high
    assert held / 300 >= 0.94


def test_few_values_stay_in_their_range():
    assert bootstrap_interval([0.0] * 49 + [0.9])[0] == 0.0
    assert bootstrap_interval([1.0] * 49 + [0.1])[1] == 1.0


def test_other_units_change_nothing_but_the_unit():
    values = np.random.default_rng(11).random(80)
    low, high = bootstrap_interval(values)
    for unit in (1e-200, 1e200):
        assert bootstrap_interval(unit * values) == pytest.approx((unit * low, unit * high), rel=1e-9)
    assert bootstrap_interval(values + 1000) == pytest.approx((low + 1000, high + 1000), rel=1e-12)
    assert bootstrap_interval(-values) == pytest.approx((-high, -low), rel=1e-9)


@pytest.mark.parametrize(("n", "seen"), [(50, 0.925), (200, 0.94)])
@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_the_mean_of_skewed_scores_is_in_nineteen_of_twenty_intervals(n, seen, zeros):
    """Percentiles hold it in .83 and .89 of the samples at n = 50; at length: benchmarks/bench_intervals.py."""
    generator = np.random.default_rng(12)
    mean = (1 - zeros) * np.exp(0.5)
    samples = [np.where(generator.random(n) < zeros, 0.0, generator.lognormal(size=n)) for _ in range(400)]
    intervals = [bootstrap_interval(sample, seed=number) for number, sample in enumerate(samples)]
    assert np.mean([low <= mean <= high for low, high in intervals]) >= seen


def test_symmetric_differences_with_many_ties_are_covered_too():
    """An equal-tailed studentised interval holds their mean in .91 of the samples, a BCa one in .89."""
    generator = np.random.default_rng(13)
    samples = [np.where(generator.random(50) < 0.7, 0.0, generator.normal(size=50)) for _ in range(400)]
    intervals = [paired_bootstrap_interval(s, np.zeros(50), seed=number) for number, s in enumerate(samples)]
    assert np.mean([low <= 0 <= high for low, high in intervals]) >= 0.94


def test_same_seed_same_interval():
    values = np.random.default_rng(1).random(200)
    whole = bootstrap_interval(values)
    assert bootstrap_interval(values) == whole
    assert bootstrap_interval(values, seed=1) != whole


def test_pairs_share_their_examples():
    a = np.random.default_rng(2).random(300)
    low, high = paired_bootstrap_interval(a + 0.01, a)
    assert np.isnan([low, high]).all()
    b = a + 0.01 * np.random.default_rng(3).random(300)
    low, high = paired_bootstrap_interval(b, a)
    assert 0.004 < low < high < 0.006 < 0.01 < bootstrap_interval(a)[1] - bootstrap_interval(a)[0]
    assert paired_bootstrap_interval(a, a).ends is None


@pytest.mark.parametrize(("call", "sentence"), refused_calls(__file__, "test_bad_arguments", significance))
def test_bad_arguments(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


# --- permutation test

SIXTHS = st.integers(0, 6).map(lambda k: k / 6)
PAIRS = st.lists(st.tuples(SIXTHS, SIXTHS), min_size=1, max_size=10)


def swapped(pairs: list[tuple[float, float]]) -> float:
    """The exact p-value from the definition, in whole sixths: every swap of every example."""
    differences = [round(6 * a) - round(6 * b) for a, b in pairs]
    every_sign = product((1, -1), repeat=len(differences))
    sums = [sum(sign * d for sign, d in zip(signs, differences, strict=True)) for signs in every_sign]
    return sum(abs(value) >= abs(sum(differences)) for value in sums) / len(sums)


def columns(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


@given(PAIRS)
def test_few_examples_give_the_exact_share_whatever_the_rounding(pairs):
    assert permutation_test(*columns(pairs)) == swapped(pairs)


@given(PAIRS, st.randoms(use_true_random=False))
def test_sides_and_order_do_not_matter(pairs, random):
    a, b = columns(pairs)
    p = permutation_test(a, b)
    assert 0 < p <= 1
    assert permutation_test(b, a) == p
    random.shuffle(pairs)
    assert permutation_test(*columns(pairs)) == p
    assert permutation_test([*a, 0.5], [*b, 0.5]) == p  # an example without a difference says nothing


def test_a_tie_with_what_was_seen_counts():
    assert permutation_test([1, 0, 0], [0, 0, 0]) == 1  # both swaps of the one win reach |d|
    assert permutation_test([1, 1, 0], [0, 0, 0]) == 0.5
    assert permutation_test([1, 1, 0], [0, 0, 1]) == 1  # 1 + 1 - 1: every swap reaches 1


def test_rounding_decides_no_tie():
    # Ten differences of .1 that are not the same double, and ten of -.1: |d| is 0 but for rounding, so p is 1.
    a, b = [0.3, 0.7] * 5 + [0.2, 0.1] * 5, [0.2, 0.6] * 5 + [0.3, 0.2] * 5
    assert permutation_test(a, b, samples=2**20) == 1
    assert permutation_test(a, b, samples=1000) == 1
    # Three against one: 10 of 16 swaps reach |d| = .2 by counting; .1 + .2 - type errors must not lose any of them.
    assert permutation_test([0.3, 0.7, 0.9, 0.1], [0.2, 0.6, 0.8, 0.2]) == 10 / 16
    # Large scores with small differences round more coarsely.
    assert permutation_test([1000.1, 1000.2, 1000.3, 1000.0], [1000.0, 1000.1, 1000.2, 1000.1]) == 10 / 16


def test_small_differences_of_small_scores_are_differences():
    assert permutation_test([1e-200] * 6, [2e-200] * 6) == 2 / 2**6
    assert permutation_test([1 + 1e-9] * 6, [1] * 6) == 2 / 2**6


def test_agrees_with_scipy_on_scores_that_fill_several_words():
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(3)
    a = generator.random(203)
    b = a + generator.normal(0.012, 0.1, 203)
    rival = stats.permutation_test(
        (a, b), lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples", vectorized=True, n_resamples=20_000, batch=5_000, rng=np.random.default_rng(4),
    )  # fmt: skip
    p = permutation_test(a, b, samples=20_000)
    assert 0.02 < p < 0.5
    assert abs(p - rival.pvalue) < 5 * np.sqrt(2 * p * (1 - p) / 20_000)


def test_the_formula_counts_what_was_seen():
    clear, none = np.ones(100), np.zeros(100)
    assert permutation_test(clear, none, samples=999) == 1 / 1000
    assert permutation_test(clear, clear, samples=999) == 1


def test_false_alarms_are_as_rare_as_alpha_says():
    generator = np.random.default_rng(5)
    p_values = [permutation_test(*generator.random((2, 70)), samples=500) for _ in range(600)]
    # 600 tests of equal systems: 30 false alarms expected at .05, standard deviation 5.3
    assert 10 <= sum(p < 0.05 for p in p_values) <= 50


# --- ranks


def test_ranks_number_the_groups_as_in_table_3():
    """The shape of the Hungarian column: 1 1 2 3 4 5."""
    noise = np.random.default_rng(8).normal(0, 0.05, (2, 300))
    base = np.random.default_rng(9).random(300) / 4
    means = {"jbrem": 0.555, "sweagraw": 0.469, "helcl": 0.435, "aws": 0.281, "fairseq": 0.124}
    systems = {name: base + mean for name, mean in means.items()}
    systems["rakchada"] = systems["jbrem"] - 0.0001 + noise[0] - noise[0].mean()
    ranks = rank_groups(dict(reversed(systems.items())), samples=2000)
    assert list(ranks) == ["jbrem", "rakchada", "sweagraw", "helcl", "aws", "fairseq"]
    assert list(ranks.values()) == [1, 1, 2, 3, 4, 5]


def test_a_group_is_a_chain_of_neighbours():
    # 5 of 100 examples lost at each step: p = 2 / 2**5 = .0625 next to each other, 2 / 2**10 two steps apart.
    systems = {f"s{k}": [1] * (100 - 5 * k) + [0] * 5 * k for k in range(3)}
    assert permutation_test(systems["s0"], systems["s1"]) == 0.0625
    assert permutation_test(systems["s0"], systems["s2"]) < 0.05
    assert rank_groups(systems) == {"s0": 1, "s1": 1, "s2": 1}
    assert rank_groups(systems, alpha=0.07) == {"s0": 1, "s1": 2, "s2": 3}
    # Holm doubles the smaller of two p-values
    assert rank_groups(systems, alpha=0.07, correct=True) == {"s0": 1, "s1": 1, "s2": 1}


def test_lower_is_better_turns_the_order():
    systems = {"high": [2.0] * 8, "low": [1.0] * 8, "same": [1.0] * 8}
    assert list(rank_groups(systems).items()) == [("high", 1), ("low", 2), ("same", 2)]
    assert list(rank_groups(systems, higher_is_better=False).items()) == [("low", 1), ("same", 1), ("high", 2)]
    assert rank_groups({"alone": [1.0]}) == {"alone": 1}


def test_holm_by_hand():
    assert holm([0.01, 0.02, 0.02, 0.5]) == pytest.approx([0.04, 0.06, 0.06, 0.5])
    assert holm([0.9, 0.4, 0.001]) == pytest.approx([0.9, 0.8, 0.003])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


# --- ratios and other figures


def test_a_ratio_over_ones_is_the_bootstrap_of_the_mean() -> None:
    values = np.random.default_rng(3).random(157)
    assert ratio_interval(values, np.ones(157)) == pytest.approx(bootstrap_interval(values))
    assert ratio_interval(values, np.ones(157), 0.8, 300, 7) == pytest.approx(bootstrap_interval(values, 0.8, 300, 7))


def test_the_columns_of_a_row_stay_together() -> None:
    sums = resampled_sums([[1, 10], [2, 20], [5, 50]], samples=200)
    assert sums.shape == (200, 2)
    assert np.array_equal(sums[:, 1], 10 * sums[:, 0])
    assert set(sums[:, 0]) <= {3, 4, 5, 6, 7, 8, 9, 11, 12, 15}
    assert len(set(sums[:, 0])) > 5


def test_a_ratio_weighs_by_the_wholes() -> None:
    # One example of two is drawn twice or each once: 0/1, 9/9 or 9/10, not the mean of the ratios 1/2.
    low, high = ratio_interval([0, 9], [1, 9], confidence=0.4)
    assert low <= 0.9 <= high
    assert ratio_interval([0, 9], [1, 9]) == (0.0, 1.0), "no ratio lies outside the examples' own"
    assert ratio_interval([3, 6, 0.3], [10, 20, 1]).ends is None, "equal up to rounding"


def test_ratios_of_skewed_parts_are_in_nineteen_of_twenty_intervals() -> None:
    """Percentiles hold them in .90 of the samples."""
    generator = np.random.default_rng(15)
    held = 0
    for number in range(150):
        tokens = 1.0 + generator.poisson(6, 50)
        low, high = ratio_interval(generator.lognormal(sigma=0.8, size=50) * tokens, tokens, samples=400, seed=number)
        held += low <= np.exp(0.32) <= high
    assert held / 150 >= 0.93


# --- units


def clusters(generator: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores of n units with 1 to 6 rows each, which have most of their score in common, and the rows' units."""
    units = np.repeat(np.arange(n), generator.integers(1, 7, n))
    return generator.normal(size=n)[units] + 0.3 * generator.normal(size=len(units)), units


def test_units_of_one_row_change_nothing():
    values = np.random.default_rng(3).random(40)
    units = [f"message {n}" for n in range(40)]
    assert bootstrap_interval(values, units=units) == bootstrap_interval(values)
    assert permutation_test(values, values[::-1], units=units) == permutation_test(values, values[::-1])


def test_rows_that_repeat_their_unit_tell_nothing_new():
    values = np.random.default_rng(4).random(60)
    low, high = bootstrap_interval(values)
    repeated = bootstrap_interval(np.repeat(values, 5), units=np.repeat(np.arange(60), 5).tolist())
    assert repeated == pytest.approx((low, high), abs=0.15 * (high - low))
    assert np.diff(bootstrap_interval(np.repeat(values, 5))) < 0.55 * np.diff(repeated)
    others = np.random.default_rng(5).random(60)
    units = [*range(60), *range(60)]
    doubled = permutation_test(np.tile(values, 2), np.tile(others, 2), samples=20_000, units=units)
    assert doubled == pytest.approx(permutation_test(values, others, samples=20_000), abs=0.02)


def test_the_mean_of_clusters_is_in_nineteen_of_twenty_intervals_by_unit():
    generator = np.random.default_rng(6)
    seen = {"rows": 0, "units": 0}
    for number in range(300):
        values, units = clusters(generator, 60)
        for name, given_units in (("rows", None), ("units", units.tolist())):
            low, high = bootstrap_interval(values, samples=300, seed=number, units=given_units)
            seen[name] += low <= 0 <= high
    assert seen["units"] >= 0.92 * 300 > 0.85 * 300 > seen["rows"]


def test_clusters_without_a_difference_are_told_apart_once_in_twenty():
    generator = np.random.default_rng(7)
    rejected = {"rows": 0, "units": 0}
    for number in range(300):
        (values, units), other = clusters(generator, 40), generator.normal(size=40)
        others = other[units] + 0.3 * generator.normal(size=len(units))
        for name, given_units in (("rows", None), ("units", units.tolist())):
            rejected[name] += permutation_test(values, others, 999, number, given_units) < 0.05
    assert rejected["rows"] > 0.12 * 300 > 0.09 * 300 > rejected["units"] > 0.01 * 300


def test_whole_units_are_swapped():
    a, b = np.array([0.9, 0.8, 0.4, 0.7, 0.3]), np.array([0.5, 0.6, 0.6, 0.1, 0.2])
    units = ["x", "x", "y", "z", "y"]
    sums = {unit: sum(a[n] - b[n] for n in range(5) if units[n] == unit) for unit in "xyz"}
    swapped = [
        abs(sum(s * d for s, d in zip(signs, sums.values(), strict=True))) for signs in product((1, -1), repeat=3)
    ]
    expected = np.mean([total >= abs(sum(sums.values())) - 1e-12 for total in swapped])
    assert permutation_test(a, b, units=units) == expected
