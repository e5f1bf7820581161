"""Gradient-boosted trees as plain arrays: scikit-learn fits them, NumPy predicts, and safetensors stores them.

`Classifier` filters by them, as rakchada's system did in the task (Chada 2020; Mayhew et al. 2020, section 4.3).
"""

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.filters.choice_scores import best_threshold, reaching
from mrs_suggest.staple.lists import Labels, Lists, left_out
from mrs_suggest.staple.pooling import Floats
from mrs_suggest.staple.rules.base import Choice, Fitting, Learned

# Ours: small trees that are stopped early, as there are some hundred prompts; all are scikit-learn's arguments.
SETTINGS = {
    "max_iter": 100,
    "learning_rate": 0.08,
    "max_leaf_nodes": 12,
    "min_samples_leaf": 20,
    "l2_regularization": 1.0,
    "early_stopping": False,
}
FEWEST = 2 * 20  # rows that a tree needs for one split
# A sum of regression trees with m nodes in all. feature: (m,) column that a node splits by, -1 for a leaf; threshold:
# (m,) values up to it go left; left, right: (m,) the nodes below; missing_left: (m,) 1 if NaN goes left; value: (m,) of
# a leaf; roots: (trees,) the first node of each tree; base: (1,) what is added to the sum.
Trees = Mapping[str, NDArray[Any]]
NODES = {
    "feature": np.int32, "threshold": np.float64, "left": np.int32, "right": np.int32, "missing_left": np.uint8,
    "value": np.float64, "roots": np.int32,
}  # fmt: skip


def constant(base: float) -> Trees:
    """No tree at all."""
    return {**{key: np.empty(0, kind) for key, kind in NODES.items()}, "base": np.array([base])}


def trees_of(model: Any) -> Trees:
    """The trees of a fitted HistGradientBoosting model of scikit-learn with one output and without categories."""
    trees = [predictors[0].nodes for predictors in model._predictors]
    starts = np.concatenate([[0], np.cumsum([len(nodes) for nodes in trees])])[:-1]
    nodes = np.concatenate(trees)
    offset = np.repeat(starts, [len(tree) for tree in trees])
    leaf = nodes["is_leaf"].astype(bool)
    found = {
        "feature": np.where(leaf, -1, nodes["feature_idx"]), "threshold": np.where(leaf, 0.0, nodes["num_threshold"]),
        "left": np.where(leaf, 0, nodes["left"] + offset), "right": np.where(leaf, 0, nodes["right"] + offset),
        "missing_left": nodes["missing_go_to_left"], "value": np.where(leaf, nodes["value"], 0.0), "roots": starts,
    }  # fmt: skip
    base = np.asarray(model._baseline_prediction, np.float64).reshape(1)
    return {**{key: found[key].astype(kind) for key, kind in NODES.items()}, "base": base}


def tree_sums(trees: Trees, x: Floats) -> Floats:
    """(n,) the sum for each row of x, (n, features), with NaN where a value is missing."""
    columns = np.ascontiguousarray(x.T)
    total = np.full(len(x), trees["base"][0])
    for root in trees["roots"].tolist():
        waiting = [(root, np.arange(len(x)))]
        while waiting:
            node, rows = waiting.pop()
            column = int(trees["feature"][node])
            if column < 0:
                total[rows] += trees["value"][node]
                continue
            values = columns[column, rows]
            left = values <= trees["threshold"][node]
            if trees["missing_left"][node]:
                left |= np.isnan(values)
            waiting += [(int(trees["left"][node]), rows[left]), (int(trees["right"][node]), rows[~left])]
    return total


def fit_classifier(x: Floats, accepted: NDArray[np.bool_], seed: int) -> Trees:
    """Trees whose sum is the log-odds of being accepted."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    share = float(np.clip(accepted.mean() if len(accepted) else 0.5, 1e-3, 1 - 1e-3))
    if len(accepted) < FEWEST or accepted.all() or not accepted.any():
        return constant(float(np.log(share / (1 - share))))
    model = HistGradientBoostingClassifier(**SETTINGS, random_state=seed)
    with _one_thread():
        return trees_of(model.fit(x, accepted))


def fit_shares(x: Floats, share: Floats, seed: int) -> Trees:
    """Trees whose sum is the logarithm of the mean share, fitted by the Poisson deviance: its mean is unbiased."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    if len(share) < FEWEST or not share.any():
        return constant(float(np.log(max(share.mean() if len(share) else 0.0, 1e-6))))
    model = HistGradientBoostingRegressor(loss="poisson", **SETTINGS, random_state=seed)
    with _one_thread():
        return trees_of(model.fit(x, share))


def logistic(raw: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(raw / 2)))


def _one_thread() -> AbstractContextManager[Any]:
    """Sums in one order, whatever the machine; for so few rows more threads would not be faster either."""
    from threadpoolctl import threadpool_limits

    return cast("AbstractContextManager[Any]", threadpool_limits(1, user_api="openmp"))


@dataclass(frozen=True, eq=False)
class Classifier(Learned):
    """Translations whose probability of being accepted reaches a threshold, and always the first of a prompt.

    The threshold is the best for macro weighted F1 on predictions for prompts that the trees were not fitted on.

    Attributes:
        trees: log-odds of being accepted.
        least: the threshold; None: the first alone.
    """

    name: ClassVar[str] = "classifier"
    trees: Trees
    least: float | None

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> Self:
        names = cls.needs(fitting, list(lists.features))

        def trees_of(some: Lists, right: Labels) -> Trees:
            return fit_classifier(some.matrix(names), right.accepted, fitting.seed)

        unseen = left_out(lists, gold, trees_of, lambda trees, some: tree_sums(trees, some.matrix(names)), fitting.seed)
        least, _ = best_threshold(lists, gold, logistic(unseen))
        return cls(names, trees_of(lists, gold), None if math.isinf(least) else least)

    def choose(self, lists: Lists) -> Choice:
        probability = logistic(tree_sums(self.trees, lists.matrix(self.names)))
        return Choice(reaching(lists, probability, np.inf if self.least is None else self.least), probability)
