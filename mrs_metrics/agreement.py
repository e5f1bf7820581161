"""Agreement of people who judged the same items: Cohen's and Fleiss' kappa, and Krippendorff's alpha.

Cohen 1960, "A Coefficient of Agreement for Nominal Scales" (two annotators), and Fleiss 1971, "Measuring Nominal Scale
Agreement among Many Raters", by statsmodels; Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability".
"""

from importlib import import_module
from types import ModuleType

import numpy as np
from numpy.typing import ArrayLike


def cohens_kappa(first: ArrayLike, second: ArrayLike, categories: int) -> float | None:
    """Return Cohen's kappa of two annotators; None if all their judgements are the same, so that it is undefined.

    Args:
        first, second: (n,) the category that each of the two chose for every item, from 0.

    Raises:
        ValueError: the lists differ in length, are empty, or hold something else than categories.
        ImportError: statsmodels is not installed.

    >>> round(cohens_kappa([0, 0, 1, 1], [0, 0, 1, 0], 2), 3)
    0.5
    """
    a, b = np.asarray(first), np.asarray(second)
    if a.ndim != 1 or a.shape != b.shape or not len(a) or not np.isin((a, b), np.arange(categories)).all():
        raise ValueError(f"Kappa needs two equally long lists of categories from 0 to {categories - 1}.")
    raters = _inter_rater()
    if len(np.unique((a, b))) < 2:
        return None
    table = np.zeros((categories, categories), dtype=np.int64)
    np.add.at(table, (a, b), 1)
    return float(raters.cohens_kappa(table, return_results=False))


def fleiss_kappa(counts: ArrayLike) -> float | None:
    """Return Fleiss' kappa; None if all judgements are the same, so that it is undefined.

    Args:
        counts: (items, categories) how many annotators chose each category; every item has as many judgements.

    Raises:
        ValueError: the counts are not such a table, or an item has fewer than two judgements.
        ImportError: statsmodels is not installed.

    >>> round(fleiss_kappa([[3, 0], [0, 3], [2, 1]]), 3)
    0.55
    """
    table = np.asarray(counts)
    if table.ndim != 2 or not len(table) or (sums := table.sum(axis=1)).min() != sums.max() or sums.min() < 2:
        raise ValueError(
            "Fleiss' kappa needs a table (items, categories) with as many judgements, 2 or more, per item."
        )
    raters = _inter_rater()
    return float(raters.fleiss_kappa(table)) if (table.sum(axis=0) > 0).sum() > 1 else None


def krippendorff_alpha(grades: ArrayLike, ordinal: bool = False) -> float | None:
    """Return Krippendorff's alpha; None if no item has two grades or all grades are the same, so that it is undefined.

    Args:
        grades: (items, annotators) numbers, nan where an annotator gave none.
        ordinal: weigh a disagreement by the grades between the two; otherwise all disagreements are alike.

    Raises:
        ValueError: the grades are not such a table.
    """
    table = np.asarray(grades, dtype=np.float64)
    if table.ndim != 2 or np.isinf(table).any():
        raise ValueError("Krippendorff's alpha needs a table (items, annotators) of numbers, nan for missing grades.")
    counts = (table[:, :, None] == np.unique(table[~np.isnan(table)])).sum(axis=1)  # (items, values)
    counts = counts[counts.sum(axis=1) > 1]
    totals = counts.sum(axis=0)
    if np.count_nonzero(totals) < 2:
        return None
    ranks = totals.cumsum() - totals / 2
    distances = (ranks[:, None] - ranks) ** 2 if ordinal else 1.0 - np.eye(len(totals))
    coincidences = (counts / (counts.sum(axis=1, keepdims=True) - 1)).T @ counts
    return float(1 - (totals.sum() - 1) * (coincidences * distances).sum() / (totals @ distances @ totals))


def _inter_rater() -> ModuleType:
    try:
        return import_module("statsmodels.stats.inter_rater")
    except ImportError as error:
        raise ImportError(
            "Agreement (kappa) needs the package statsmodels, which is not installed: run pip install statsmodels."
        ) from error
