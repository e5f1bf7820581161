"""nDCG of web pages ranked for a query, as XGLUE's official script takes it from scikit-learn.

Sources: Järvelin and Kekäläinen 2002, "Cumulated Gain-Based Evaluation of IR Techniques"; McSherry and Najork 2008,
"Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores"; `ndcg_score` of
scikit-learn with its defaults. The XGLUE paper says no more than "nDCG".

The gain of a page is its label, 0 to 4, itself (not 2^label - 1); the discount at rank r is 1 / log2(r + 1); all pages
count. Pages with equal predictions share the mean of their gains, which equals the mean over all orders of the tie:
if predictions are labels, most pages are tied. A query whose pages are all irrelevant scores 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike


def ndcg(predicted: ArrayLike, gains: ArrayLike) -> float:
    """Return the nDCG of the pages of one query, 0 to 1.

    Args:
        predicted: (n,) finite numbers, higher means more relevant.
        gains: (n,) labels, 0 or more.

    >>> ndcg([0.9, 0.1, 0.5], [3, 2, 0])
    0.9385574520455129
    >>> ndcg([1, 1], [4, 0]) == (1 + ndcg([0, 1], [4, 0])) / 2
    True
    """
    gains = np.asarray(gains, dtype=np.float64)
    discount = 1 / np.log2(np.arange(len(gains)) + 2)
    ideal = np.sort(gains)[::-1] @ discount
    if not ideal:
        return 0.0
    _, tie = np.unique(-np.asarray(predicted, dtype=np.float64), return_inverse=True)
    shared = np.bincount(tie, weights=gains) / np.bincount(tie)
    return min(float(shared[np.sort(tie)] @ discount / ideal), 1.0)  # rounding may pass 1


def query_starts(queries: Sequence[str]) -> list[int]:
    """Return the index of the first page of each query; pages of one query are consecutive.

    A query that occurs again after another one is a new query. An empty query includes the pages after it, whatever
    their query, as in the official script.

    >>> query_starts(["a", "a", "b", "a"])
    [0, 2, 3]
    """
    return [i for i in range(len(queries)) if i == 0 or (queries[i] != queries[i - 1] and queries[i - 1] != "")]
