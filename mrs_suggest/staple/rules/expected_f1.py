"""The set of each prompt with the highest expected weighted F1, from calibrated probabilities and estimated weights.

Three things are estimated, all on predictions for prompts that were left out of the fit: the probability of each
translation to be accepted (trees, then isotonic regression, Zadrozny and Elkan 2002, or Platt's logistic one, 1999);
its share in the prompt's weight if it is accepted (trees by the Poisson deviance, scaled so that the mean is right);
and the share that no hypothesis covers, by linear regression on the share that the probabilities expect to be covered.
`mrs_suggest.staple.filters.expected_choice` says how the set is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.filters.expected_choice import choose_set
from mrs_suggest.staple.lists import Gold, Lists, left_out
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
        scale: factor of the shares.
        uncovered: intercept and slope of the uncovered share over the expected covered one.
        seed: of draws.
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
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> ExpectedF1:
        names = cls.needs(fitting, list(lists.features))

        def both(some: Lists, right: Gold) -> tuple[Trees, Trees]:
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


def calibration(raw: Floats, accepted: NDArray[np.bool_], enough: int = ENOUGH) -> tuple[Floats, Floats]:
    """Points between which calibrated probabilities are linear in the log-odds.

    Args:
        raw: (n,) log-odds of rows that were not in the fit.
        enough: rows from which isotonic regression is used; below, Platt's logistic one.
    """
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    if accepted.all() or not accepted.any() or raw.min() == raw.max():
        return raw[:1].copy(), np.clip(accepted[:1] * 0.0 + accepted.mean(), CERTAIN, 1 - CERTAIN)
    if len(raw) >= enough:
        fitted = IsotonicRegression(y_min=CERTAIN, y_max=1 - CERTAIN, out_of_bounds="clip").fit(raw, accepted)
        return fitted.X_thresholds_.astype(np.float64), fitted.y_thresholds_.astype(np.float64)
    levels = np.linspace(raw.min(), raw.max(), 201)
    model = LogisticRegression(C=1e6).fit(raw[:, None], accepted)
    line = logistic(levels * model.coef_[0, 0] + model.intercept_[0])
    return levels, np.clip(line, CERTAIN, 1 - CERTAIN)


def _share(raw: Floats) -> Floats:
    return np.exp(np.clip(raw, -30.0, 0.0))


def _uncovered(lists: Lists, gold: Gold, expected: Floats) -> tuple[float, float]:
    """Intercept and slope of the uncovered share over the expected covered one; the mean alone for few prompts."""
    covered = np.bincount(lists.prompt, expected, minlength=lists.prompts)
    missing = np.clip(1 - np.bincount(lists.prompt, gold.share, minlength=lists.prompts), 0.0, 1.0)
    if lists.prompts < 30 or np.ptp(covered) < 1e-9:
        return float(missing.mean()), 0.0
    slope, intercept = np.polyfit(covered, missing, 1)
    return (float(intercept), float(slope)) if slope < 0 else (float(missing.mean()), 0.0)
