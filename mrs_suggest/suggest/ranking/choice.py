"""Choosing three suggestions for three: a set that is likely to hold one that fits, not three wordings of one reply."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

CHOICES = ("expected", "mmr", "top")
WIDTH = 40  # candidates that a generator scores, too; ours: the share of probability beyond was below 1 % on the sample
TRADE_OFF = 0.7  # of MMR, between score and novelty; ours


def softmax(scores: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Probabilities of scores: `exp(score / temperature)`, normalised."""
    scaled = np.asarray(scores, np.float64) / temperature
    weights = np.exp(scaled - scaled.max())
    return np.asarray(weights / weights.sum())


def expected_best(chosen: ArrayLike, probabilities: ArrayLike, similarity: ArrayLike) -> float:
    """The expected similarity of the best of the chosen candidates with the reply that will be given.

    Args:
        chosen: numbers of candidates.
        probabilities: (n,) that the reply is candidate i.
        similarity: (n, n) of candidate with candidate.
    """
    rows = np.asarray(similarity)[np.asarray(chosen, np.int64)]
    return float(rows.max(0) @ np.asarray(probabilities)) if len(rows) else 0.0


def choose_expected(probabilities: ArrayLike, similarity: ArrayLike, k: int) -> list[int]:
    """The set with the largest expected best similarity, one candidate after the other.

    The expectation is monotone and submodular in the set, so the greedy choice reaches at least 1 - 1/e of the best set
    of k (Nemhauser et al. 1978). Towle and Zhou (2023, "Model-based simulation for optimising smart reply") choose
    suggestions by the same expectation.

    Args:
        probabilities: (n,) that candidate i is the reply; equal gains go to the candidate that stands first.
        similarity: (n, n), not negative.
        k: how many, at most n are chosen.

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


def choose_mmr(scores: ArrayLike, similarity: ArrayLike, k: int, trade_off: float = TRADE_OFF) -> list[int]:
    """Maximal marginal relevance (Carbonell and Goldstein 1998): score against similarity with what is chosen.

    Args:
        scores: (n,); only their order and distances count, they are scaled to 0 to 1.
        similarity: (n, n).
        k: how many, at most n are chosen.
        trade_off: 1 takes the best scores, 0 looks at novelty alone after the first.
    """
    values, table = np.asarray(scores, np.float64), np.asarray(similarity, np.float64)
    spread = values.max() - values.min()
    values = (values - values.min()) / spread if spread else np.zeros(len(values))
    chosen: list[int] = []
    for _ in range(min(k, len(values))):
        closest = table[chosen].max(0) if chosen else np.zeros(len(values))
        gains = trade_off * values - (1 - trade_off) * closest if chosen else values.copy()
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
    return chosen
