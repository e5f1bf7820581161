"""A classifier of accepted translations: gradient-boosted trees on the features, as rakchada's filter in the task.

Source: Chada 2020; Mayhew et al. 2020, section 4.3. The threshold on the probability is the best for macro weighted F1
on predictions for prompts that the trees were not fitted on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.filters.choice_scores import best_threshold, reaching
from mrs_suggest.staple.filters.folds import left_out
from mrs_suggest.staple.lists import Gold, Lists
from mrs_suggest.staple.pooling import Floats
from mrs_suggest.staple.rules.base import Choice, Fitting, Rule
from mrs_suggest.staple.rules.simple import finite
from mrs_suggest.staple.rules.trees import Trees, fit_classifier, logistic

OF_FILTERS = ("score", "probability")  # columns that filters write: they would leak what those were tuned on


def learned_features(fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
    """The features of a learned rule: those asked for, or all but other filters' scores and the rank."""
    if fitting.features is not None:
        return fitting.features
    chosen = tuple(name for name in features if name not in (*OF_FILTERS, "rank"))
    if not chosen:
        raise InputError("The file has no features to learn from; add them with `mrs staple combine`.")
    return chosen


@dataclass(frozen=True, eq=False)
class Classifier(Rule):
    """Those whose probability of being accepted reaches a threshold, and always the first of a prompt.

    Attributes:
        trees: log-odds of being accepted.
        names: of the features, in the trees' order.
        least: the threshold; None: the first alone.
    """

    name: ClassVar[str] = "classifier"
    score_name: ClassVar[str | None] = "probability"
    trees: Trees
    names: tuple[str, ...]
    least: float | None

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return learned_features(fitting, features)

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Classifier:
        names = learned_features(fitting, list(lists.features))

        def trees_of(some: Lists, right: Gold) -> Trees:
            weights = learner_weights(some, right) if fitting.sample_weights == "learner" else None
            return fit_classifier(some.matrix(names), right.accepted, weights, fitting.seed)

        unseen = left_out(lists, gold, trees_of, lambda trees, some: trees.raw(some.matrix(names)), fitting.seed)
        least, _ = best_threshold(lists, gold, logistic(unseen))
        return cls(trees_of(lists, gold), names, None if math.isinf(least) else least)

    @property
    def features(self) -> tuple[str, ...]:
        return self.names

    def choose(self, lists: Lists) -> Choice:
        probability = logistic(self.trees.raw(lists.matrix(self.names)))
        return Choice(reaching(lists, probability, np.inf if self.least is None else self.least), probability)

    def settings(self) -> dict[str, Any]:
        return {"least": self.least}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.trees.arrays("trees.")

    @classmethod
    def stored(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]
    ) -> Classifier:
        least = settings["least"]
        return cls(Trees.stored(arrays, "trees.", len(features)), features, None if least is None else finite(least))


def learner_weights(lists: Lists, gold: Gold) -> Floats:
    """(n,) how much each row counts: rejected ones 1, accepted ones by their weight, 1 in the mean of their prompt."""
    accepted = gold.accepted
    count = np.bincount(lists.prompt, accepted, minlength=lists.prompts)[lists.prompt]
    total = np.bincount(lists.prompt, gold.share, minlength=lists.prompts)[lists.prompt]
    return np.where(accepted & (total > 0), gold.share * count / np.where(total > 0, total, 1.0), 1.0)
