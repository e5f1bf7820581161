"""Ranking the real reply among candidates: ranks, MRR, precision at k, and random candidate pools.

Source: Zhang et al. 2021, "A Dataset and Baselines for Multilingual Reply Suggestion", section 3.3: mean reciprocal
rank and precision at one against random replies, and macro-MRR. Pools of 100, the target and 99 random others, are the
1-of-100 setting of Henderson et al. 2019, "A Repository of Conversational Datasets".
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Entries of a temporary array in `random_pools`; bounds its memory to some tens of MB.
_CHUNK_ENTRIES = 1 << 22


def ranks(scores: ArrayLike, target: ArrayLike = 0) -> NDArray[np.int64]:
    """Return the rank of each row's target, 1 for the best.

    Ties are broken pessimistically: the target comes last among equal scores, so a model that scores everything alike
    gains nothing.

    Args:
        scores: (n, pool) higher is better.
        target: column of the target: one for all rows, or (n,) one for each.

    Returns:
        (n,) ranks from 1 to pool.

    Raises:
        ValueError: the scores are not two-dimensional or hold NaN, or a target is not a column of them.

    >>> ranks([[0.9, 0.1, 0.2], [0.5, 0.5, 0.7]]).tolist()
    [1, 3]
    """
    table = np.asarray(scores)
    if table.ndim != 2:
        raise ValueError(f"The scores to rank must form a table (n, pool), not an array of shape {table.shape}.")
    if np.isnan(table).any():
        raise ValueError("The scores to rank contain NaN, which has no rank.")
    columns = np.asarray(target)
    if not np.issubdtype(columns.dtype, np.integer) or columns.shape not in ((), (len(table),)):
        raise ValueError(f"The target must be one column or one for each of the {len(table)} rows, as integers.")
    if len(table) and not ((columns >= 0) & (columns < table.shape[1])).all():
        raise ValueError(f"A target column lies outside the {table.shape[1]} columns of the scores.")
    own = table[np.arange(len(table)), columns]
    return np.asarray(np.count_nonzero(table >= own[:, None], axis=1), dtype=np.int64)


def reciprocal_ranks(ranks: ArrayLike) -> NDArray[np.float64]:
    """Return 1 / rank for each rank.

    Raises:
        ValueError: there is no rank, or one is below 1.

    >>> reciprocal_ranks([1, 4]).tolist()
    [1.0, 0.25]
    """
    return 1.0 / _checked_ranks(ranks)


def mean_reciprocal_rank(ranks: ArrayLike, groups: ArrayLike | None = None) -> float:
    """Return the mean of the reciprocal ranks, above 0 to 1.

    Args:
        ranks: (n,) ranks from 1.
        groups: (n,) optional label of each rank. Then each label's mean counts once, whatever its frequency; with the
            reply as label this is MRS's macro-MRR, which rewards a system for serving rare replies too.

    Raises:
        ValueError: there is no rank, one is below 1, or the groups differ from them in length.

    >>> mean_reciprocal_rank([1, 1, 2], groups=["yes", "yes", "no"])
    0.75
    """
    values = reciprocal_ranks(ranks)
    if groups is None:
        return float(values.mean())
    labels = np.asarray(groups)
    if labels.shape != values.shape:
        raise ValueError(f"There must be one group for each of the {len(values)} ranks, not shape {labels.shape}.")
    _, group = np.unique(labels, return_inverse=True)
    return float((np.bincount(group, weights=values) / np.bincount(group)).mean())


def precision_at_k(ranks: ArrayLike, k: int = 1) -> float:
    """Return the mean precision of the first k candidates where each pool holds one right reply.

    Precision at k is the share of right ones among the first k, so its ceiling is 1 / k; the share of examples with
    their target among the first k is k times this value. At k = 1, which MRS reports, the two are one.

    Raises:
        ValueError: k is below 1, there is no rank, or one is below 1.

    >>> precision_at_k([1, 2, 9, 1])
    0.5
    """
    if k < 1:
        raise ValueError(f"The k of precision at k must be 1 or more, not {k}.")
    return float((_checked_ranks(ranks) <= k).mean()) / k


def random_pools(
    targets: Sequence[int] | NDArray[np.integer], n_candidates: int, size: int = 100, seed: int = 0
) -> NDArray[np.int64]:
    """Draw for each target a pool of candidates: itself and distinct random others.

    A pool depends on the seed, its target, `n_candidates` and `size` alone: neither the order nor the batching of the
    targets, nor the release of numpy, changes it. Equal targets get equal pools.

    Args:
        targets: (n,) id of each example's own candidate.
        n_candidates: candidates in all, with ids from 0.
        size: candidates in a pool, the target included.
        seed: any integer from 0 to 2**64 - 1.

    Returns:
        (n, min(size, n_candidates)) candidate ids, the target's in column 0.

    Raises:
        ValueError: an id lies outside the candidates, or size, n_candidates or seed are out of range.

    >>> random_pools([3, 0], n_candidates=5, size=9, seed=1)[:, 0].tolist()
    [3, 0]
    """
    own = np.asarray(targets, dtype=np.int64) if len(targets) else np.zeros(0, dtype=np.int64)
    if n_candidates < 1 or size < 1 or not 0 <= seed < 2**64:
        raise ValueError(
            f"A pool needs n_candidates and size of 1 or more and a seed from 0 to 2**64 - 1, "
            f"not {n_candidates}, {size} and {seed}."
        )
    if own.ndim != 1 or not ((own >= 0) & (own < n_candidates)).all():
        raise ValueError(f"The targets must be candidate ids from 0 to {n_candidates - 1}, one for each example.")
    others = min(size, n_candidates) - 1
    pools = np.empty((len(own), others + 1), dtype=np.int64)
    pools[:, 0] = own
    rows = max(1, _CHUNK_ENTRIES // max(1, others))
    for start in range(0, len(own), rows):
        _draw_others(pools[start : start + rows], n_candidates - 1, seed)
    return pools


def _draw_others(pools: NDArray[np.int64], n_others: int, seed: int) -> None:
    """Fill the columns after the first with distinct ids other than the first column's.

    Floyd's algorithm (Bentley and Floyd 1987, "A Sample of Brilliance") draws k of n without replacement in k steps,
    here for all rows at once: in step j a number t from 0 to j is drawn, and j itself taken where t was drawn before.
    """
    own, drawn = pools[:, 0], pools[:, 1:]
    state = _mix(own.astype(np.uint64) + _mix(np.array([seed], dtype=np.uint64)))
    for column in range(drawn.shape[1]):
        last = n_others - drawn.shape[1] + column
        # The bias of the remainder is below n / 2**64.
        number = (_mix(state + np.uint64(column)) % np.uint64(last + 1)).astype(np.int64)
        seen = (drawn[:, :column] == number[:, None]).any(axis=1)
        drawn[:, column] = np.where(seen, last, number)
    # Numbers count the candidates without the target; ids from the target on are one higher.
    drawn += drawn >= own[:, None]


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers: the output function of SplitMix64 (Steele et al. 2014), modulo 2**64."""
    mixed: NDArray[np.uint64] = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _checked_ranks(ranks: ArrayLike) -> NDArray[np.float64]:
    values = np.asarray(ranks, dtype=np.float64)
    if values.ndim != 1 or not len(values):
        raise ValueError(f"At least one rank is needed, in a list (n,), not shape {values.shape}.")
    if not (values >= 1).all():
        raise ValueError("Ranks count from 1, but one of them is below 1.")
    return values
