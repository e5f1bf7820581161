"""Fitting a trigger: probabilities that hold on other examples, and none where there is too little to fit."""

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.suggest.ranking.trigger import FEATURES, risk_coverage
from mrs_suggest.training.retrieval.ranker_tuning import FEWEST, fit_trigger


def examples(count: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The first feature says all: log-odds 8 x - 4; the third is constant."""
    rng = np.random.default_rng(seed)
    features = np.stack([rng.random(count), rng.random(count), np.full(count, 0.5)], -1)
    return features, rng.random(count) < 1 / (1 + np.exp(4 - 8 * features[:, 0]))


def test_probabilities_hold_on_other_examples() -> None:
    trigger = fit_trigger(*examples(2000, 0))
    assert trigger is not None
    assert trigger == fit_trigger(*examples(2000, 0))
    features, used = examples(5000, 1)
    chances = trigger.probability(features)
    for low, high in ((0, 0.2), (0.2, 0.4), (0.4, 0.6), (0.6, 0.8), (0.8, 1)):
        inside = (chances >= low) & (chances < high)
        assert abs(used[inside].mean() - chances[inside].mean()) < 0.08
    at = trigger.threshold(0.9)
    assert at is not None
    assert abs(used[chances >= at].mean() - 0.9) < 0.05
    assert 0 < chances.min() < 0.1
    assert 0.9 < chances.max() < 1  # nothing is certain
    assert trigger.curve[-1][1] == 1
    assert risk_coverage(chances, used)[0][2] > 0.9


def test_too_few_examples_of_either_outcome_give_no_trigger() -> None:
    features, used = examples(FEWEST - 1, 2)
    assert fit_trigger(features, used) is None
    features, _ = examples(500, 3)
    for outcome in (False, True):
        assert fit_trigger(features, np.full(500, outcome)) is None
    assert fit_trigger(np.zeros((0, len(FEATURES))), []) is None
