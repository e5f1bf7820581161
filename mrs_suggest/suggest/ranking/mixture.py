"""A linear mixture of the parts of a reply's score, with weights fitted on validation.

Each part is standardised per message over the candidates, so a constant added to a part changes nothing, and weights
are comparable. Weights are fitted as in maximum likelihood: a reply drawn from a softmax over the candidates should be
as near to the real one as possible. The mixed scores thus give a distribution, by which suggestions are chosen. The
objective is smooth; optimising the best of the first three, which is piecewise constant, gained a hundredth less on
held-out messages of coffee orders.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.text.predictions import SUGGESTIONS

SHRINKAGE = 300  # examples of all languages together that count like a language's own; ours, as the figures below
ABSENT = -1e6  # each part of a missing candidate
_FLOOR = 1e-4  # of an expected gain, so that one message without a fitting candidate does not dominate
_LEAST_SHARE = 0.01  # of all weights: less would cost the time of a part and change nothing
Objective = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]


@dataclass(frozen=True)
class Examples:
    """Validation examples of one language.

    Attributes:
        parts: (n, c, p) standardised parts of up to c candidates each, padded with `ABSENT`.
        gains: (n, c) weighted ROUGE of a candidate against the real reply, 0 to 1.
    """

    parts: NDArray[np.float32]
    gains: NDArray[np.float32]


@dataclass(frozen=True)
class Mixture:
    """Weights by part, which add up to 1 without the weight of a second stage's generator."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def vector(self, names: Sequence[str]) -> NDArray[np.float32]:
        """(p,) the weights in the order of `names`, 0 for unknown parts."""
        return np.array([self.weights.get(name, 0.0) for name in names], np.float32)


def standardised(parts: NDArray[np.float32], over: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Scale (..., c, p) parts to mean 0 and deviation 1 over the candidates; a part equal for all becomes 0.

    Args:
        over: (..., n, p) the candidates that give mean and deviation; default: the c themselves.
    """
    mean, deviation = mean_and_deviation(parts if over is None else over)
    flat = deviation == 0
    found = parts - mean
    found /= np.where(flat, np.float32(1), deviation)
    np.copyto(found, 0, where=flat)
    return np.asarray(found, np.float32)


def mean_and_deviation(parts: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(..., 1, p) of (..., c, p) parts over the candidates; a negligible deviation becomes 0."""
    mean = _mean(parts)
    centred = parts - mean
    centred -= _mean(centred)
    centred *= centred
    deviation = np.sqrt(_mean(centred))
    largest = np.maximum(parts.max(-2, keepdims=True), -parts.min(-2, keepdims=True))
    flat = deviation <= 1e-6 * np.maximum(largest, 1e-30)
    return mean, np.where(flat, 0, deviation).astype(np.float32)


def _mean(parts: NDArray[np.float32]) -> NDArray[np.float32]:
    """(..., 1, p) means over the candidates, added up in their order: equal digits for each layout in memory."""
    return np.asarray(np.add.accumulate(parts, axis=-2)[..., -1:, :] / np.float32(parts.shape[-2]), np.float32)


def best_of_top(scores: NDArray[np.float32], gains: NDArray[np.float32], k: int = SUGGESTIONS) -> NDArray[np.float32]:
    """(n,) the largest gain among the k candidates with the best scores."""
    k = min(k, scores.shape[1])
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    return np.asarray(np.take_along_axis(gains, top, 1).max(1))


def tune(languages: Mapping[str, Examples], names: Sequence[str], shrinkage: float = SHRINKAGE) -> dict[str, Mixture]:
    """Fit weights for each language, drawn towards those that are best for all.

    A language with n examples maximises `(n own + shrinkage all) / (n + shrinkage)`, where `own` and `all` are
    `expected_log_gain` on its own and on all examples.

    Args:
        languages: with at least one example in all.
        names: p parts, in the order of `Examples.parts`.
    """
    sizes = {language: len(examples.gains) for language, examples in languages.items()}
    total = sum(sizes.values())
    if not total:
        raise ValueError("Expected at least one example to tune the mixture.")
    counts = {language: size / total for language, size in sizes.items() if size}
    equal = np.ones(len(names))
    shared = _fit([equal], _weighted(languages, counts))
    found = {}
    for language, size in sizes.items():
        weights = shared
        if size:
            own = size / (size + shrinkage)
            shares = {other: (1 - own) * share + own * (other == language) for other, share in counts.items()}
            weights = _fit([shared, equal], _weighted(languages, shares))
        found[language] = Mixture(dict(zip(names, _sparse(weights).tolist(), strict=True)))
    return found


def expected_log_gain(weights: NDArray[np.float64], examples: Examples) -> tuple[float, NDArray[np.float64]]:
    """The mean over the examples of `ln(sum of p(candidate) gain(candidate))`, and its (p,) gradient.

    p is the softmax of the mixed scores. If one candidate is the real reply and the others share nothing with it, this
    is the log-likelihood of the reply.
    """
    present = examples.parts[..., 0] > ABSENT / 2
    parts = np.where(present[..., None], examples.parts, 0)
    scores = np.where(present, parts @ weights.astype(np.float32), -np.inf)
    drawn = np.exp(scores - scores.max(1, keepdims=True))
    drawn /= drawn.sum(1, keepdims=True)
    gained = drawn * examples.gains
    expected = gained.sum(1, keepdims=True)
    moved = np.einsum("nc,ncp->np", gained - expected * drawn, parts)
    return float(np.log(expected + _FLOOR).mean()), (moved / (expected + _FLOOR)).mean(0, dtype=np.float64)


def _weighted(languages: Mapping[str, Examples], shares: Mapping[str, float]) -> Objective:
    """The objective over several languages, each with its share."""

    def value(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        found = [(share, *expected_log_gain(weights, languages[language])) for language, share in shares.items()]
        return sum(share * one for share, one, _ in found), np.sum([share * slope for share, _, slope in found], 0)

    return value


def _fit(starts: Sequence[NDArray[np.float64]], objective: Objective) -> NDArray[np.float64]:
    """(p,) weights of at least 0 that maximise the objective, the best found from several starts."""
    from scipy.optimize import minimize

    def turned(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        value, slope = objective(weights)
        return -value, -slope

    bounds = [(0.0, None)] * len(starts[0])
    found = [minimize(turned, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
    return np.asarray(min(found, key=lambda one: float(one.fun)).x)


def _sparse(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights that add up to 1, without negligible ones; equal weights if all are 0."""
    kept = np.where(weights >= _LEAST_SHARE * weights.sum(), weights, 0.0)
    kept = kept if kept.any() else np.ones(len(weights))
    return np.asarray(kept / kept.sum())
