"""The probability that one of the suggestions will be used, and the threshold below which nothing is suggested.

Smart Reply has a separate triggering model (Kannan et al. 2016, "Smart Reply: Automated Response Suggestion for Email",
section 5). Here the features come from the ranker: how sure its distribution over the candidates is, and how near the
nearest remembered message is. A logistic model of these and an isotonic table, both fitted on validation, turn them
into a probability.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

# The expected similarity of the best suggestion with the reply (see `choice.py`), the probability of the likeliest
# candidate, and the cosine of the nearest remembered message.
FEATURES = ("expected", "likeliest", "nearest")
USED = 0.3  # weighted ROUGE from which a suggestion counts as used; ours: about one of three words in common, in order


@dataclass(frozen=True)
class Trigger:
    """Features of an answer -> the probability that one of its suggestions is used.

    Attributes:
        weights: of `FEATURES`, with `bias` those of a logistic model.
        levels, probabilities: an ascending table from the model's log-odds to probabilities, interpolated between
            levels.
        used: weighted ROUGE of the best suggestion against the real reply from which it counts as used.
        curve: validation examples by falling threshold: (threshold, share of messages that are answered, share of these
            whose suggestions are used).
    """

    weights: tuple[float, ...]
    bias: float
    levels: tuple[float, ...]
    probabilities: tuple[float, ...]
    used: float = USED
    curve: tuple[tuple[float, float, float], ...] = ()

    def probability(self, features: ArrayLike) -> NDArray[np.float64]:
        """(n, 3) features -> (n,) probabilities; they never fall where the log-odds rise."""
        log_odds = np.asarray(features, np.float64) @ np.asarray(self.weights) + self.bias
        return np.interp(log_odds, self.levels, self.probabilities)

    def threshold(self, precision: float) -> float | None:
        """The lowest threshold with at least this precision on validation; None if no threshold reaches it.

        Args:
            precision: share of the answered messages whose suggestions are used, 0 to 1.
        """
        return min((at for at, _, reached in self.curve if reached >= precision), default=None)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "features": list(FEATURES)}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Read what `as_json` wrote; KeyError, TypeError or ValueError if it is damaged."""
        if tuple(facts["features"]) != FEATURES:
            raise ValueError(f"the trigger reads {', '.join(facts['features'])}")
        rows = {name: tuple(map(float, facts[name])) for name in ("weights", "levels", "probabilities")}
        curve = tuple((float(at), float(share), float(reached)) for at, share, reached in facts["curve"])
        trigger = cls(**rows, bias=float(facts["bias"]), used=float(facts["used"]), curve=curve)
        sizes = len(trigger.weights) == len(FEATURES) and len(trigger.levels) == len(trigger.probabilities) > 0
        if not sizes or np.any(np.diff(trigger.levels) < 0) or np.any(np.diff(trigger.probabilities) < 0):
            raise ValueError("the table of the trigger does not ascend")
        return trigger


def risk_coverage(probabilities: ArrayLike, used: ArrayLike, points: int = 20) -> list[tuple[float, float, float]]:
    """Coverage (share of answered messages) and precision (share of these whose suggestions are used) by threshold.

    Args:
        probabilities: (n,) of a trigger.
        used: (n,) whether one of the suggestions was used.
        points: maximum number of thresholds, at equal steps of coverage.

    Returns:
        (threshold, coverage, precision) with falling thresholds; the last one answers every message.
    """
    chances, hits = np.asarray(probabilities, np.float64), np.asarray(used, bool)
    if not len(chances):
        return []
    order = np.argsort(-chances, kind="stable")
    ordered, reached = chances[order], np.cumsum(hits[order]) / np.arange(1, len(order) + 1)
    ends = np.flatnonzero(np.append(ordered[:-1] > ordered[1:], True))
    wanted = np.unique(np.searchsorted(ends, np.linspace(0, len(order) - 1, min(points, len(order)))))
    kept = ends[wanted]
    return [(float(ordered[end]), (int(end) + 1) / len(order), float(reached[end])) for end in kept]


def choose_threshold(trigger: Trigger | None, precision: float) -> float | None:
    """The probability below which nothing is suggested; None: nothing ever is.

    Raises:
        ValueError: the precision is not between 0 and 1, or the trigger is missing.
    """
    if not 0 < precision <= 1:
        raise ValueError(f"expected a share of more than 0 and at most 1, found {precision:g}")
    if trigger is None:
        raise ValueError("the model has no calibration; train it with --ranker true")
    return trigger.threshold(precision)


def as_features(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """(n, 3) array of n rows, also for n = 0."""
    return np.asarray(rows, np.float64).reshape(-1, len(FEATURES))
