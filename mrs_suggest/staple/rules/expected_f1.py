"""The set of each prompt with the highest expected weighted F1, from calibrated probabilities and estimated weights.

Three things are estimated, all on predictions for prompts that were left out of the fit: the probability of each
translation to be accepted (trees, then isotonic regression, Zadrozny and Elkan 2002, or Platt's logistic one, 1999);
its share in the prompt's weight if it is accepted (trees by the Poisson deviance, scaled so that the mean is right);
and the share that no hypothesis covers, by linear regression on the share that the probabilities expect to be covered.

With the acceptances a_i drawn independently with probability p_i, w_i the weight of an accepted translation and u that
of the accepted ones that no hypothesis covers, a set S of k translations has A = sum of a_i in S right ones and the
weight W = sum of a_i w_i in S of the total T = sum of all a_i w_i + u. Then precision is A / k, weighted recall is
W / T, and weighted F1 is 2 A W / (A T + k W), 0 where A is 0. The expectation is a mean over draws of the acceptances:
all that there are for short lists, else a fixed number of stratified ones. No closed form is used, as both A and T vary
with the draw. The search adds the translation with the highest gain until some in a row bring none, then adds or takes
away single ones as long as that helps; tests compare it with all subsets of short lists.

Related: for plain F1 and independent labels the best set of each size are the k most probable labels, and k alone is to
be found (Lewis 1995; Ye et al. 2012, "Optimizing F-measure: A Tale of Two Approaches"); with weights that fails.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.lists import Labels, Lists, left_out
from mrs_suggest.staple.pooling import Floats
from mrs_suggest.staple.rules.base import Choice, Fitting, Learned
from mrs_suggest.staple.rules.trees import Trees, fit_classifier, fit_shares, logistic, tree_sums

ENOUGH = 1000  # rows from which isotonic regression is used; below it overfits, as scikit-learn's guide says
CERTAIN = 1e-3  # no probability comes nearer to 0 or 1
MOST_UNCOVERED = 0.95


@dataclass(frozen=True, eq=False)
class ExpectedF1(Learned):
    """The set with the highest expected weighted F1 of each prompt.

    Attributes:
        accepting: log-odds of being accepted, before calibration.
        sharing: logarithm of the share in the weight if accepted.
        levels, calibrated: (m,) log-odds, ascending, and the probability there; between them it is linear.
        uncovered: intercept and slope of the uncovered share over the expected covered one.
    """

    name: ClassVar[str] = "expected-f1"
    accepting: Trees
    sharing: Trees
    levels: Floats
    calibrated: Floats
    scale: float
    uncovered: Sequence[float]
    seed: int

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        names = cls.needs(fitting, list(lists.features))

        def both(some: Lists, right: Labels) -> tuple[Trees, Trees]:
            x, accepted = some.matrix(names), right.accepted
            accepting = fit_classifier(x, accepted, fitting.seed)
            return accepting, fit_shares(x[accepted], right.share[accepted], fitting.seed)

        def predicted(trees: tuple[Trees, Trees], some: Lists) -> Floats:
            x = some.matrix(names)
            return np.stack([tree_sums(tree, x) for tree in trees], axis=1)

        unseen = left_out(lists, gold, both, predicted, fitting.seed)
        levels, calibrated = calibration(unseen[:, 0], gold.accepted)
        share = _share(unseen[:, 1])
        claimed = float(share[gold.accepted].sum())
        scale = float(np.clip(gold.share.sum() / claimed, 0.25, 4.0)) if claimed else 1.0
        probability = np.interp(unseen[:, 0], levels, calibrated)
        uncovered = _uncovered(lists, gold, probability * share * scale)
        accepting, sharing = both(lists, gold)
        return cls(names, accepting, sharing, levels, calibrated, scale, uncovered, fitting.seed)

    def choose(self, lists: Lists) -> Choice:
        x = lists.matrix(self.names)
        probability = np.interp(tree_sums(self.accepting, x), self.levels, self.calibrated)
        share = np.clip(_share(tree_sums(self.sharing, x)) * self.scale, 1e-9, 1.0)
        covered = np.bincount(lists.prompt, probability * share, minlength=lists.prompts)
        uncovered = np.clip(self.uncovered[0] + self.uncovered[1] * covered, 0.0, MOST_UNCOVERED)
        kept = np.zeros(lists.size, bool)
        for prompt, (begin, end) in enumerate(zip(lists.starts[:-1], lists.starts[1:], strict=True)):
            if end > begin:
                rows = slice(begin, end)
                kept[rows], _ = choose_set(probability[rows], share[rows], float(uncovered[prompt]), self.seed)
        return Choice(kept, probability)


def calibration(raw: Floats, accepted: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Points between which calibrated probabilities are linear in the log-odds.

    Args:
        raw: (n,) log-odds of rows that were not in the fit.
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if accepted.all() or not accepted.any() or raw.min() == raw.max():
        return raw[:1].copy(), np.clip(accepted[:1] * 0.0 + accepted.mean(), CERTAIN, 1 - CERTAIN)
    if len(raw) >= ENOUGH:
        fitted = IsotonicRegression(y_min=CERTAIN, y_max=1 - CERTAIN, out_of_bounds="clip").fit(raw, accepted)
        return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
    levels = np.linspace(raw.min(), raw.max(), 201)
    model = LogisticRegression(C=1e6).fit(raw[:, None], accepted)
    line = logistic(levels * model.coef_[0, 0] + model.intercept_[0])
    return levels, np.clip(line, CERTAIN, 1 - CERTAIN)


def _share(raw: Floats) -> Floats:
    return np.exp(np.clip(raw, -30.0, 0.0))


def _uncovered(lists: Lists, gold: Labels, expected: Floats) -> tuple[float, float]:
    """Intercept and slope of the uncovered share over the expected covered one; the mean alone for few prompts."""
    covered = np.bincount(lists.prompt, expected, minlength=lists.prompts)
    missing = np.clip(1 - np.bincount(lists.prompt, gold.share, minlength=lists.prompts), 0.0, 1.0)
    if lists.prompts < 30 or np.ptp(covered) < 1e-9:
        return float(missing.mean()), 0.0
    slope, intercept = np.polyfit(covered, missing, 1)
    return (float(intercept), float(slope)) if slope < 0 else (float(missing.mean()), 0.0)


EXACT = 8  # lists up to this length: all 256 outcomes
DRAWS = 256  # ours: the choice hardly changes above it
PATIENCE = 4  # additions without gain before the search turns back; ours
ROUNDS = 100  # most single changes at the end


class Outcomes:
    """Outcomes of the acceptance of n translations.

    Args:
        probability: (n,) of being accepted, between 0 and 1.
        weight: (n,) of each if accepted, above 0; in shares of the prompt's weight.
        uncovered: weight of the accepted translations that are not among them, 0 or more.
    """

    def __init__(self, probability: Floats, weight: Floats, uncovered: float, seed: int = 0) -> None:
        n = len(probability)
        if n <= EXACT:
            self.accepted = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(np.float64)
            self.chance = np.where(self.accepted > 0, probability, 1 - probability).prod(axis=1)
        else:
            strata = np.stack([_column(seed, column) for column in range(n)], axis=1)
            self.accepted = (strata < probability).astype(np.float64)
            self.chance = np.full(DRAWS, 1 / DRAWS)
        self.weight = weight
        self.total = self.accepted @ weight + uncovered

    def f1(self, chosen: NDArray[np.bool_]) -> float:
        """Expected weighted F1 of a set."""
        right, weight = self._sums(chosen)
        return float(self.chance @ _f1(right, weight, self.total, chosen.sum()))

    def changed(self, chosen: NDArray[np.bool_]) -> Floats:
        """(n,) expected weighted F1 of the set with one translation added, or taken away if it is in the set."""
        right, weight = self._sums(chosen)
        found = np.zeros(len(chosen))
        for sign, which in ((1.0, ~chosen), (-1.0, chosen)):
            k = chosen.sum() + sign
            if not which.any() or k < 1:
                continue
            # Where the changed translation is not accepted, the set is only longer or shorter by one.
            other = self.chance * _f1(right, weight, self.total, k)
            accepted = self.accepted[:, which]
            sums = right[:, None] + sign, weight[:, None] + sign * self.weight[which]
            if sign < 0:  # a draw without it has no such sums
                sums = np.maximum(sums[0], 0.0), np.maximum(sums[1], 0.0)
            hit = self.chance[:, None] * _f1(*sums, self.total[:, None], k)
            found[which] = (accepted * (hit - other[:, None])).sum(axis=0) + other.sum()
        return found

    def _sums(self, chosen: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        return self.accepted[:, chosen].sum(axis=1), self.accepted[:, chosen] @ self.weight[chosen]


def choose_set(probability: Floats, weight: Floats, uncovered: float, seed: int = 0) -> tuple[NDArray[np.bool_], float]:
    """The set with the highest expected weighted F1 that the search finds, at least one translation, and its value."""
    outcomes = Outcomes(probability, weight, uncovered, seed)
    chosen = np.zeros(len(probability), bool)
    best, value, idle = chosen, -1.0, 0
    while not chosen.all() and idle < PATIENCE:
        gains = np.where(chosen, -1.0, outcomes.changed(chosen))
        first = int(np.argmax(gains))
        chosen = chosen.copy()
        chosen[first] = True
        if gains[first] > value + 1e-12:
            best, value, idle = chosen, float(gains[first]), 0
        else:
            idle += 1
    for _ in range(ROUNDS):
        values = outcomes.changed(best)
        if best.sum() == 1:
            values[best] = -1.0  # a prompt without translations would score 0
        first = int(np.argmax(values))
        if values[first] <= value + 1e-12:
            break
        best = best.copy()
        best[first] = ~best[first]
        value = float(values[first])
    return best, value


def _f1(right: Floats, weight: Floats, total: Floats, k: float) -> Floats:
    below = right * total + k * weight
    return np.asarray(2 * right * weight / np.where(below > 0, below, 1.0))


@lru_cache(maxsize=1024)  # the same for all prompts
def _column(seed: int, column: int) -> Floats:
    """(DRAWS,) numbers from 0 to 1, one in every DRAWS-th part, in the column's own order."""
    random = np.random.default_rng([seed, column])
    return np.asarray((random.permutation(DRAWS) + random.random(DRAWS)) / DRAWS)
