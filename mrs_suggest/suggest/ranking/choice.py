"""Choosing three suggestions together: a set that is likely to contain one that fits, not three wordings of one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

CHOICES = ("expected", "top")
WIDTH = 40  # candidates that a generator scores, too; ours: beyond, the sample had less than 1 % of the probability


def softmax(scores: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Probabilities of scores: `exp(score / temperature)`, normalised."""
    scaled = np.asarray(scores, np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return np.asarray(weights / weights.sum())


def expected_best(chosen: ArrayLike, probabilities: ArrayLike, similarity: ArrayLike) -> float:
    """The expected similarity of the best chosen candidate with the reply that will be given.

    Args:
        chosen: numbers of candidates.
        probabilities: (n,) that the reply is candidate i.
        similarity: (n, n) between candidates.
    """
    rows = np.asarray(similarity)[np.asarray(chosen, np.int64)]
    return float(rows.max(0) @ np.asarray(probabilities)) if len(rows) else 0.0


def choose_expected(probabilities: ArrayLike, similarity: ArrayLike, k: int) -> list[int]:
    """Choose the set with the largest expected best similarity, one candidate after the other.

    The expectation is monotone and submodular in the set, so the greedy choice reaches at least 1 - 1/e of the best set
    of k (Nemhauser et al. 1978). Towle and Zhou (2023, "Model-based simulation for optimising smart reply") choose
    suggestions by the same expectation.

    Args:
        probabilities: (n,) that candidate i is the reply; of equal gains, the first candidate wins.
        similarity: (n, n), not negative.
        k: number of candidates to choose; at most n are chosen.

    Returns:
        Numbers of candidates in the order of choice.
    """
    weights, table = np.asarray(probabilities, np.float64), np.asarray(similarity, np.float64)
    chosen: list[int] = []
    best = np.zeros(len(weights))
    for _ in range(min(k, len(weights))):
        gains = np.maximum(table - best, 0) @ weights
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
        best = np.maximum(best, table[chosen[-1]])
    return chosen
