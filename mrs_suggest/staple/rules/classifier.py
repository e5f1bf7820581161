"""A classifier of accepted translations: gradient-boosted trees on the features, as rakchada's filter in the task.

Source: Chada 2020; Mayhew et al. 2020, section 4.3. The threshold on the probability is the best for macro weighted F1
on predictions for prompts that the trees were not fitted on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mrs_suggest.staple.filters.choice_scores import best_threshold, reaching
from mrs_suggest.staple.lists import Gold, Lists, left_out
from mrs_suggest.staple.rules.base import Choice, Fitting, Learned
from mrs_suggest.staple.rules.trees import Trees, fit_classifier, logistic, tree_sums


@dataclass(frozen=True, eq=False)
class Classifier(Learned):
    """Translations whose probability of being accepted reaches a threshold, and always the first of a prompt.

    Attributes:
        trees: log-odds of being accepted.
        least: the threshold; None: the first alone.
    """

    name: ClassVar[str] = "classifier"
    trees: Trees
    least: float | None

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> Classifier:
        names = cls.needs(fitting, list(lists.features))

        def trees_of(some: Lists, right: Gold) -> Trees:
            return fit_classifier(some.matrix(names), right.accepted, fitting.seed)

        unseen = left_out(lists, gold, trees_of, lambda trees, some: tree_sums(trees, some.matrix(names)), fitting.seed)
        least, _ = best_threshold(lists, gold, logistic(unseen))
        return cls(names, trees_of(lists, gold), None if math.isinf(least) else least)

    def choose(self, lists: Lists) -> Choice:
        probability = logistic(tree_sums(self.trees, lists.matrix(self.names)))
        return Choice(reaching(lists, probability, np.inf if self.least is None else self.least), probability)
