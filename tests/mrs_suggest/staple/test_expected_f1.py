"""The set with the highest expected weighted F1, against all subsets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.staple.rules.expected_f1 import EXACT, choose_set

Problem = tuple[np.ndarray, np.ndarray, float]


def expected_f1(problem: Problem, chosen: tuple[int, ...]) -> float:
    """By its definition: precision and weighted recall of every outcome."""
    probability, weight, uncovered = problem
    value = 0.0
    for accepted in product((0, 1), repeat=len(probability)):
        chance = np.prod([p if a else 1 - p for p, a in zip(probability, accepted, strict=True)])
        right = sum(a for a, c in zip(accepted, chosen, strict=True) if c)
        found = sum(w for w, a, c in zip(weight, accepted, chosen, strict=True) if a and c)
        total = sum(w for w, a in zip(weight, accepted, strict=True) if a) + uncovered
        if right and found:
            precision, recall = right / sum(chosen), found / total
            value += chance * 2 * precision * recall / (precision + recall)
    return float(value)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    n = draw(st.integers(1, 5))
    probability = [draw(st.sampled_from([0.01, 0.1, 0.3, 0.5, 0.8, 0.95])) for _ in range(n)]
    weight = [draw(st.sampled_from([0.01, 0.05, 0.2, 0.6])) for _ in range(n)]
    return np.array(probability), np.array(weight), draw(st.sampled_from([0.0, 0.1, 0.5]))


@given(problems())
def test_short_lists_get_nearly_the_best_of_all_subsets(problem: Problem) -> None:
    chosen, value = choose_set(*problem)
    subsets = [subset for subset in product((0, 1), repeat=len(problem[0])) if any(subset)]
    best = max(expected_f1(problem, subset) for subset in subsets)
    assert chosen.any()
    assert value == pytest.approx(expected_f1(problem, tuple(chosen.astype(int).tolist())), abs=1e-9)
    assert 0.97 * best <= value <= best + 1e-9


def test_drawn_outcomes_lose_little_against_all_subsets() -> None:
    n = EXACT + 2
    sets = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)
    random, regrets, shares = np.random.default_rng(7), [], []
    for _ in range(8):
        probability = random.beta(0.6, 1.0, n)
        weight, uncovered = random.pareto(1.2, n) * 0.05 + 0.01, float(random.random() * 0.3)
        chance = np.where(sets > 0, probability, 1 - probability).prod(axis=1)
        right, found, total = sets @ sets.T, (sets * weight) @ sets.T, sets @ weight + uncovered  # (outcomes, sets)
        below = right * total[:, None] + sets.sum(axis=1) * found
        exact = chance @ (2 * right * found / np.where(below > 0, below, 1))
        chosen, _ = choose_set(probability, weight, uncovered)
        value = exact[int((chosen.astype(int) << np.arange(n)).sum())]
        regrets.append(exact.max() - value)
        shares.append(value / exact.max())
    assert max(regrets) < 0.015
    assert np.mean(shares) > 0.99


def test_certain_translations_are_chosen_and_impossible_ones_are_not() -> None:
    chosen, value = choose_set(np.array([0.999, 0.001, 0.999]), np.array([0.5, 0.9, 0.4]), 0.0)
    assert chosen.tolist() == [True, False, True]
    assert value > 0.95
