"""Resampled sums and ratios against the bootstrap of means and exact values."""

from __future__ import annotations

import numpy as np
import pytest

from mrs_metrics.significance import bootstrap_interval, percentile_interval, ratio_interval, resampled_sums


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
    assert ratio_interval([3, 6, 0.3], [10, 20, 1]) == pytest.approx((0.3, 0.3))


def test_ratios_of_skewed_parts_are_in_nineteen_of_twenty_intervals() -> None:
    """Percentiles hold them in .90 of the samples."""
    generator = np.random.default_rng(15)
    held = 0
    for number in range(150):
        tokens = 1.0 + generator.poisson(6, 50)
        low, high = ratio_interval(generator.lognormal(sigma=0.8, size=50) * tokens, tokens, samples=400, seed=number)
        held += low <= np.exp(0.32) <= high
    assert held / 150 >= 0.93


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: resampled_sums([]), "table"),
        (lambda: resampled_sums([1.0]), "table"),
        (lambda: resampled_sums([[float("nan")]]), "finite"),
        (lambda: resampled_sums([[1.0]], samples=0), "At least one"),
        (lambda: percentile_interval([1.0], confidence=1), "between 0 and 1"),
        (lambda: ratio_interval([1.0], [0.0]), "above 0"),
        (lambda: ratio_interval([1.0], [1.0, 2.0]), "same length"),
        (lambda: ratio_interval([], []), "at least one row"),
    ],
)
def test_bad_arguments(call, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
