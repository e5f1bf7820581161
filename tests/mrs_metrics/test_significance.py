"""Bootstrap intervals against exact and brute-force values."""

from __future__ import annotations

import numpy as np
import pytest

from mrs_metrics import significance
from mrs_metrics.significance import bootstrap_interval, paired_bootstrap_interval


def test_interval_of_a_coin_by_the_binomial_law():
    # 100 tosses, half heads: the resampled mean is Binomial(100, 1/2) / 100, its 2.5 % and 97.5 % points .40 and .60.
    low, high = bootstrap_interval([0, 1] * 50, samples=20_000)
    assert (low, high) == (pytest.approx(0.40, abs=0.005), pytest.approx(0.60, abs=0.005))


def test_two_values_by_hand():
    # The mean of two draws from {0, 1} is 0, 1/2 or 1 with probability 1/4, 1/2, 1/4.
    assert bootstrap_interval([0.0, 1.0], confidence=0.95) == (0.0, 1.0)
    assert bootstrap_interval([0.0, 1.0], confidence=0.4) == (0.5, 0.5)


def test_wider_confidence_and_fewer_values_widen_the_interval():
    values = np.random.default_rng(0).random(400)
    narrow, wide = bootstrap_interval(values, 0.5), bootstrap_interval(values, 0.99)
    few = bootstrap_interval(values[:40], 0.5)
    assert wide[0] < narrow[0] < values.mean() < narrow[1] < wide[1]
    assert few[1] - few[0] > narrow[1] - narrow[0]


def test_same_seed_same_interval_whatever_the_chunks(monkeypatch):
    values = np.random.default_rng(1).random(200)
    whole = bootstrap_interval(values)
    assert bootstrap_interval(values) == whole
    assert bootstrap_interval(values, seed=1) != whole
    monkeypatch.setattr(significance, "_CHUNK_DRAWS", 1000)
    assert bootstrap_interval(values) == whole


def test_pairs_share_their_examples():
    a = np.random.default_rng(2).random(300)
    low, high = paired_bootstrap_interval(a + 0.01, a)
    assert (low, high) == (pytest.approx(0.01), pytest.approx(0.01))
    assert bootstrap_interval(a)[1] - bootstrap_interval(a)[0] > 0.01
    assert paired_bootstrap_interval(a, a) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: bootstrap_interval([]), "non-empty list"),
        (lambda: bootstrap_interval([[1.0]]), "non-empty list"),
        (lambda: bootstrap_interval([float("nan")]), "finite"),
        (lambda: bootstrap_interval([1.0], confidence=1.0), "between 0 and 1"),
        (lambda: bootstrap_interval([1.0], samples=0), "At least one"),
        (lambda: paired_bootstrap_interval([1.0], [1.0, 2.0]), "1 and 2"),
    ],
)
def test_bad_arguments(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
