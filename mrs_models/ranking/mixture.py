"""One linear mixture of what speaks for a reply, with weights that validation chooses.

Each part is standardised per message over its candidates, so that a part that adds the same to all of them changes
nothing, and weights compare. Weights are found by coordinate ascent on the geometric mean of the weighted ROUGE of the
best of three and the reciprocal rank of the best candidate, as checkpoints are chosen by ROUGE and MRR: a ranking is
piecewise constant in them, which has no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mrs_core.predictions import SUGGESTIONS

GRID = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # ours, as the other figures here
ROUNDS = 4  # through all parts; the second or third changed nothing on the sample
SHRINKAGE = 300  # examples of all languages together that count like a language's own
_SMALLEST_GAIN = 1e-6
Gain = Callable[[NDArray[np.float32]], float]


@dataclass(frozen=True)
class Examples:
    """Validation examples of one language.

    Attributes:
        parts: (n, c, p) standardised parts of c candidates each.
        gains: (n, c) weighted ROUGE of a candidate against the real reply, 0 to 1.
    """

    parts: NDArray[np.float32]
    gains: NDArray[np.float32]


@dataclass(frozen=True)
class Mixture:
    """Weights by part; they add up to 1. That of a generator, a second stage, stands beside them and is not counted."""

    weights: Mapping[str, float] = field(default_factory=dict)

    def vector(self, names: Sequence[str]) -> NDArray[np.float32]:
        """(p,) the weights in the order of `names`, 0 for those that it does not know."""
        return np.array([self.weights.get(name, 0.0) for name in names], np.float32)


def standardised(parts: NDArray[np.float32], over: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
    """Mean 0 and deviation 1 over the candidates; a part that does not tell them apart becomes 0.

    Args:
        parts: (..., c, p).
        over: (..., n, p) the candidates that give mean and deviation; default: the c themselves.
    """
    mean, deviation = mean_and_deviation(parts if over is None else over)
    flat = deviation == 0
    return np.where(flat, 0, (parts - mean) / np.where(flat, 1, deviation)).astype(np.float32)


def mean_and_deviation(parts: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(..., 1, p) of (..., c, p) parts over the candidates; the deviation of a part that tells none apart is 0."""
    mean = parts.mean(-2, keepdims=True)
    deviation = (parts - mean).std(-2, keepdims=True)
    flat = deviation <= 1e-6 * np.maximum(np.abs(parts).max(-2, keepdims=True), 1e-30)
    return mean, np.where(flat, 0, deviation).astype(np.float32)


def best_of_top(scores: NDArray[np.float32], gains: NDArray[np.float32], k: int = SUGGESTIONS) -> NDArray[np.float32]:
    """(n,) the largest gain among the k candidates with the best scores."""
    k = min(k, scores.shape[1])
    top = np.argpartition(-scores, k - 1, axis=1)[:, :k]
    return np.asarray(np.take_along_axis(gains, top, 1).max(1))


def tune(
    languages: Mapping[str, Examples], names: Sequence[str], shrinkage: float = SHRINKAGE, seed: int = 0
) -> dict[str, Mixture]:
    """Find weights for each language, drawn towards those that are best for all.

    A language with n examples maximises `(n own + shrinkage all) / (n + shrinkage)`, where `own` and `all` are the
    objective on its own and on all examples, starting from the weights that are best for all.

    Args:
        languages: at least one.
        names: p parts, in the order of `Examples.parts`.
        seed: of the orders in which the parts are tried.

    Raises:
        ValueError: there is no example.
    """
    if not sum(len(examples.gains) for examples in languages.values()):
        raise ValueError("There is no example to tune the mixture on.")
    rng = np.random.default_rng(seed)
    everything = list(languages.values())
    starts = np.eye(len(names), dtype=np.float32)
    shared = _ascend(
        max(starts, key=lambda start: _mean_gain(everything, start)), lambda w: _mean_gain(everything, w), rng
    )
    found = {}
    for language, own in languages.items():
        share = len(own.gains) / (len(own.gains) + shrinkage)

        def gain(weights: NDArray[np.float32], own: Examples = own, share: float = share) -> float:
            return share * _mean_gain([own], weights) + (1 - share) * _mean_gain(everything, weights)

        weights = _ascend(shared, gain, rng) if share else shared
        found[language] = Mixture(dict(zip(names, (weights / weights.sum()).tolist(), strict=True)))
    return found


def reciprocal_ranks(scores: NDArray[np.float32], gains: NDArray[np.float32]) -> NDArray[np.float32]:
    """(n,) of the candidate with the largest gain among all candidates, ties counted against it."""
    best = np.take_along_axis(scores, gains.argmax(1)[:, None], 1)
    return np.asarray(1 / (scores >= best).sum(1), np.float32)


def _mean_gain(parts: Sequence[Examples], weights: NDArray[np.float32]) -> float:
    """The geometric mean of the best of three's mean gain and the mean reciprocal rank of the best candidate.

    The first alone, on a few hundred examples, gave all weight to one part where a mixture ranks pools better and
    suggests as well: it looks at the first three places only.
    """
    scores = [(examples.parts @ weights, examples.gains) for examples in parts if len(examples.gains)]
    if not scores:
        return 0.0
    gain, rank = (np.concatenate([of(*one) for one in scores]).mean() for of in (best_of_top, reciprocal_ranks))
    return float(np.sqrt(gain * rank))


def _ascend(start: NDArray[np.float32], gain: Gain, rng: np.random.Generator) -> NDArray[np.float32]:
    """Set one weight after the other to the best value of the grid, until a round changes nothing."""
    weights, best = start.copy(), gain(start)
    for _ in range(ROUNDS):
        before = best
        for part in rng.permutation(len(weights)):
            for value in GRID:
                tried = weights.copy()
                tried[part] = value
                if value != weights[part] and tried.any() and (reached := gain(tried)) > best + _SMALLEST_GAIN:
                    weights, best = tried, reached
        if best == before:
            break
    return weights
