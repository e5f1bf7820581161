"""Gradient-boosted trees as plain arrays: scikit-learn fits them, numpy predicts, and safetensors can hold them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.pooling import Floats

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
KEYS = ("feature", "threshold", "left", "right", "missing_left", "value", "roots", "base")


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of regression trees, of m nodes in all.

    Attributes:
        feature: (m,) the column that a node splits by; -1 for a leaf.
        threshold: (m,) values up to it go left.
        left, right: (m,) the nodes below, which come after their parent.
        missing_left: (m,) 1 where NaN goes left.
        value: (m,) of a leaf.
        roots: (trees,) the first node of each tree.
        base: (1,) what is added to the sum.
    """

    feature: NDArray[np.int32]
    threshold: Floats
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    missing_left: NDArray[np.uint8]
    value: Floats
    roots: NDArray[np.int32]
    base: Floats

    @classmethod
    def constant(cls, base: float) -> Trees:
        """No tree at all."""
        whole = np.empty(0, np.int32)
        real = np.empty(0)
        return cls(whole, real, whole, whole, np.empty(0, np.uint8), real, whole, np.array([base]))

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Those of a fitted HistGradientBoosting model of scikit-learn with one output and without categories."""
        trees = [predictors[0].nodes for predictors in model._predictors]
        starts = np.concatenate([[0], np.cumsum([len(nodes) for nodes in trees])])[:-1]
        nodes = np.concatenate(trees)
        offset = np.repeat(starts, [len(tree) for tree in trees])
        leaf = nodes["is_leaf"].astype(bool)
        left, right = (np.where(leaf, 0, nodes[side] + offset).astype(np.int32) for side in ("left", "right"))
        return cls(
            np.where(leaf, -1, nodes["feature_idx"]).astype(np.int32), np.where(leaf, 0.0, nodes["num_threshold"]),
            left, right, nodes["missing_go_to_left"].astype(np.uint8), np.where(leaf, nodes["value"], 0.0),
            starts.astype(np.int32), np.asarray(model._baseline_prediction, np.float64).reshape(1),
        )  # fmt: skip

    def raw(self, x: Floats) -> Floats:
        """(n,) the sum for each row of x, (n, features), with NaN where a value is missing."""
        columns = np.ascontiguousarray(x.T)
        total = np.full(len(x), self.base[0])
        for root in self.roots.tolist():
            waiting = [(root, np.arange(len(x)))]
            while waiting:
                node, rows = waiting.pop()
                column = int(self.feature[node])
                if column < 0:
                    total[rows] += self.value[node]
                    continue
                values = columns[column, rows]
                left = values <= self.threshold[node]
                if self.missing_left[node]:
                    left |= np.isnan(values)
                waiting += [(int(self.left[node]), rows[left]), (int(self.right[node]), rows[~left])]
        return total

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """For safetensors, under names that begin with the prefix."""
        return {f"{prefix}{key}": getattr(self, key) for key in KEYS}

    @classmethod
    def stored(cls, arrays: Mapping[str, NDArray[Any]], prefix: str, features: int) -> Trees:
        """Those of `arrays`.

        Raises:
            KeyError, ValueError: an array is missing, or they are no trees over so many features.
        """
        trees = cls(**{key: arrays[f"{prefix}{key}"] for key in KEYS})
        trees._require_sound(features)
        return trees

    def _require_sound(self, features: int) -> None:
        m = len(self.feature)
        kinds = {"feature": "i", "left": "i", "right": "i", "roots": "i", "missing_left": "u", "threshold": "f",
                 "value": "f", "base": "f"}  # fmt: skip
        shaped = all(
            getattr(self, key).dtype.kind == kind and getattr(self, key).ndim == 1 for key, kind in kinds.items()
        )
        if not shaped or any(len(getattr(self, key)) != m for key in KEYS[:6]) or len(self.base) != 1:
            raise ValueError("its trees have arrays of another shape")
        inner = self.feature >= 0
        own = np.arange(m)[inner]
        below = np.stack([self.left[inner], self.right[inner]])
        if (below <= own).any() or (below >= m).any() or (self.feature >= features).any():
            raise ValueError("its trees are broken")
        if ((self.roots < 0) | (self.roots >= m)).any() or not np.isfinite(self.value).all():
            raise ValueError("its trees are broken")


def fit_classifier(x: Floats, accepted: NDArray[np.bool_], weights: Floats | None, seed: int) -> Trees:
    """Trees whose sum is the log-odds of being accepted."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    share = float(np.clip(accepted.mean() if len(accepted) else 0.5, 1e-3, 1 - 1e-3))
    if len(accepted) < FEWEST or accepted.all() or not accepted.any():
        return Trees.constant(float(np.log(share / (1 - share))))
    model = HistGradientBoostingClassifier(**SETTINGS, random_state=seed)
    with _one_thread():
        return Trees.of(model.fit(x, accepted, sample_weight=weights))


def fit_shares(x: Floats, share: Floats, seed: int) -> Trees:
    """Trees whose sum is the logarithm of the mean share, fitted by the Poisson deviance: its mean is unbiased."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    if len(share) < FEWEST or not share.any():
        return Trees.constant(float(np.log(max(share.mean() if len(share) else 0.0, 1e-6))))
    model = HistGradientBoostingRegressor(loss="poisson", **SETTINGS, random_state=seed)
    with _one_thread():
        return Trees.of(model.fit(x, share))


def logistic(raw: Floats) -> Floats:
    """Probabilities from log-odds."""
    return np.asarray(0.5 * (1 + np.tanh(raw / 2)))


def _one_thread() -> AbstractContextManager[Any]:
    """Sums in one order, whatever the machine; for so few rows more threads would not be faster either."""
    from threadpoolctl import threadpool_limits

    return cast("AbstractContextManager[Any]", threadpool_limits(1, user_api="openmp"))
