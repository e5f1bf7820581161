"""The mixture of parts: what validation chooses, and what cannot change it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.suggest.ranking.mixture import (
    ABSENT,
    Examples,
    Mixture,
    best_of_top,
    expected_log_gain,
    standardised,
    tune,
)

NAMES = ("noise", "signal", "other")


def examples(n: int, seed: int, signal: int = 1) -> Examples:
    rng = np.random.default_rng(seed)
    gains = rng.random((n, 20)).astype(np.float32) ** 4
    parts = rng.normal(size=(n, 20, 3)).astype(np.float32)
    parts[:, :, signal] = gains + 0.05 * parts[:, :, signal]
    return Examples(standardised(parts), gains)


@given(st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3), st.floats(0.1, 1e3))
def test_a_constant_added_to_a_part_and_its_unit_change_nothing(seed: int, shift: float, unit: float) -> None:
    parts = np.random.default_rng(seed).normal(size=(4, 9, 2)).astype(np.float32)
    moved = parts * np.float32(unit) + np.float32(shift)
    np.testing.assert_allclose(standardised(moved), standardised(parts), atol=1e-2 * max(1, abs(shift) / unit / 10))


def test_the_layout_in_memory_changes_no_digit() -> None:
    parts = np.random.default_rng(0).normal(2, 3, size=(3000, 3)).astype(np.float32)
    found = standardised(parts)
    np.testing.assert_array_equal(standardised(np.asfortranarray(parts)), found)
    np.testing.assert_array_equal(standardised(np.asfortranarray(parts[:, :1])), found[:, :1])
    np.testing.assert_allclose([found.mean(0), found.std(0)], [[0] * 3, [1] * 3], atol=1e-4)


def test_weights_go_to_the_part_that_tells_in_all_if_examples_are_few() -> None:
    found = tune({"en": examples(200, 0), "es": examples(50, 1)}, NAMES)
    for mixture in found.values():
        assert mixture.weights["signal"] > 0.7
        assert sum(mixture.weights.values()) == pytest.approx(1)
    languages = {"en": examples(300, 0), "es": examples(2, 1, signal=2)}
    assert tune(languages, NAMES)["es"].weights["signal"] > 0.5
    assert tune(languages, NAMES, shrinkage=0)["es"].weights["signal"] < 0.5
    assert tune({**languages, "it": Examples(np.zeros((0, 20, 3), np.float32), np.zeros((0, 20), np.float32))}, NAMES)[
        "it"
    ] == Mixture(tune(languages, NAMES, shrinkage=1e9)["en"].weights)


@given(st.integers(0, 2**32 - 1), st.lists(st.floats(0, 3), min_size=3, max_size=3))
def test_the_gradient_is_that_of_the_objective(seed: int, weights: list[float]) -> None:
    some, at, step = examples(7, seed), np.array(weights), 1e-3
    slope = expected_log_gain(at, some)[1]
    for part, move in enumerate(np.eye(3) * step):
        difference = expected_log_gain(at + move, some)[0] - expected_log_gain(at - move, some)[0]
        assert slope[part] == pytest.approx(difference / (2 * step), rel=0.02, abs=0.02)


@given(st.integers(0, 2**32 - 1))
def test_candidates_that_are_absent_change_nothing(seed: int) -> None:
    some = examples(5, seed)
    absent = np.full((5, 4, 3), ABSENT, np.float32), np.zeros((5, 4), np.float32)
    padded = Examples(*(np.concatenate(pair, 1) for pair in zip((some.parts, some.gains), absent, strict=True)))
    for weights in (np.zeros(3), np.array([0.5, 1.0, 0.0])):
        for one, other in zip(expected_log_gain(weights, some), expected_log_gain(weights, padded), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


def test_parts_that_tell_nothing_are_mixed_equally() -> None:
    parts, gains = np.zeros((4, 5, 3), np.float32), np.full((4, 5), 0.5, np.float32)
    assert tune({"en": Examples(parts, gains)}, NAMES)["en"].weights == pytest.approx(dict.fromkeys(NAMES, 1 / 3))
    with pytest.raises(ValueError, match="at least one example"):
        tune({"en": Examples(np.zeros((0, 2, 3), np.float32), np.zeros((0, 2), np.float32))}, NAMES)


def test_the_best_of_the_top_counts() -> None:
    scores = np.array([[3.0, 2.0, 1.0, 0.0]], np.float32)
    gains = np.array([[0.1, 0.4, 0.2, 0.9]], np.float32)
    assert best_of_top(scores, gains).tolist() == pytest.approx([0.4])
    assert best_of_top(scores, gains, 9).tolist() == pytest.approx([0.9])


def test_a_part_that_only_ranks_pools_better_is_kept() -> None:
    """One part puts the best candidate among the first three, in no order; another orders these three."""
    rng = np.random.default_rng(0)
    gains = np.zeros((300, 20), np.float32)
    gains[:, 0] = 1
    parts = rng.normal(size=(300, 20, 3)).astype(np.float32) * 0.01
    parts[:, :3, 1] += 5
    parts[:, 0, 2] += 1
    parts[:, 3:, 2] += rng.random((300, 17)) * 2
    weights = tune({"en": Examples(standardised(parts), gains)}, NAMES)["en"].weights
    assert weights["signal"] > 0
    assert weights["other"] > 0
    assert weights["noise"] < 0.05
