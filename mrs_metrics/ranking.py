"""Ranking the real reply among candidates: ranks, MRR, precision at k, macro-MRR, and random candidate pools.

Source: Zhang et al. 2021, "A Dataset and Baselines for Multilingual Reply Suggestion", section 3.3, in three settings:

1. Mean reciprocal rank and precision at one against random replies: `pool=N` draws for each example the real reply and
   N - 1 others. Pools of 100 are the 1-of-100 setting of Henderson et al. 2019, "A Repository of Conversational
   Datasets".
2. The same over the whole response set, on the subset of examples whose reply is in the set
   (`missing_reference="skip"`).
3. Over the whole response set on all examples, where a reply that is not in the set has the reciprocal rank 0
   (`missing_reference="zero"`): the value of a system that can only choose from the set. The paper does not print it.

Macro-MRR is the mean over distinct replies of the mean reciprocal rank of each: it also rewards finding rare replies.

Ties are broken pessimistically: the real reply comes last among equal scores, so that equal scores gain nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.corpus import Corpus, Figure
from mrs_metrics.signature import signature

# Entries of a temporary array in `random_pools`; bounds its memory to some tens of MB.
_CHUNK_ENTRIES = 1 << 22
ABSENT = -1  # as a target: the real reply is not among the candidates
REPLY_ABSENT = "reply_absent"


@dataclass(frozen=True, eq=False)
class RankingScores:
    """Ranks of the n examples that were kept, one entry each; statistics stay apart from their aggregation.

    Attributes:
        ranks: (n,) from 1; 0 if the real reply is not among the candidates and counts as not found.
        reciprocal_ranks: (n,) 1 / rank, 0 without a rank.
        pool_sizes: (n,) candidates that the real reply was ranked among, itself included.
        replies: (n,) number of each example's reply, equal for equal replies, from 0; None if they were not given.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `reply_absent`.
    """

    ranks: NDArray[np.int64]
    reciprocal_ranks: NDArray[np.float64]
    pool_sizes: NDArray[np.int64]
    replies: NDArray[np.int64] | None
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    signature: str


def score_rankings(
    scores: Sequence[Sequence[float] | NDArray[np.generic]] | NDArray[np.generic],
    targets: Sequence[int] | NDArray[np.integer],
    replies: Sequence[str] | None = None,
    pool: int | None = None,
    seed: int = 0,
    missing_reference: str = "skip",
    of: str = "candidates",
    language: str | None = None,
) -> RankingScores:
    """Rank the real reply of each example among its candidates.

    Args:
        scores: for each example a score for each of its candidates, higher is better; any number of candidates. Scores
            may be negative or infinite, but not NaN.
        targets: for each example the index of the real reply among them, -1 if it is not there.
        replies: for each example the real reply (or its normalised form), for the macro-MRR.
        pool: draw pools of this many from the candidates, the real reply included; None ranks among all.
        seed: of the pools, from 0 to 2**64 - 1; see `random_pools`.
        missing_reference: `skip` leaves an example without its reply among the candidates out, `zero`
            gives it the reciprocal rank 0.
        of: what the candidates are, for the signature, such as `references` or `response_set`.

    Raises:
        ValueError: lengths differ, scores are not numbers or NaN, a target is out of range, or an option is unknown.

    >>> found = score_rankings([[-1.0, -2.0], [0.5, 0.5, 0.1]], [0, 1])
    >>> found.ranks.tolist(), found.reciprocal_ranks.tolist()
    ([1, 2], [1.0, 0.5])
    """
    if missing_reference not in ("skip", "zero"):
        raise ValueError(f"The option `missing_reference` must be 'skip' or 'zero', not {missing_reference!r}.")
    if pool is not None and pool < 1:
        raise ValueError(f"A pool must hold 1 candidate or more, not {pool}.")
    rows, columns = _checked_rows(scores, targets, replies)
    present = columns != ABSENT
    found, sizes = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    for length in np.unique(lengths[present]).tolist():
        alike = np.flatnonzero(present & (lengths == length))
        step = max(1, _CHUNK_ENTRIES // length)
        for members in (alike[start : start + step] for start in range(0, len(alike), step)):
            table, own = np.stack([rows[member] for member in members]), columns[members]
            if pool is not None:
                pools = random_pools(own, length, pool, seed)
                table, own = np.take_along_axis(table, pools, axis=1), np.zeros_like(own)
            found[members], sizes[members] = ranks(table, own), table.shape[1]
    kept = np.flatnonzero(present) if missing_reference == "skip" else np.arange(len(rows))
    found, groups = found[kept], None
    if replies is not None:
        numbers: dict[str, int] = {}
        groups = np.array([numbers.setdefault(replies[index], len(numbers)) for index in kept.tolist()], dtype=np.int64)
    return RankingScores(
        ranks=found,
        reciprocal_ranks=np.divide(1.0, found, out=np.zeros(len(found)), where=found > 0),
        pool_sizes=sizes[kept],
        replies=groups,
        kept=kept,
        skipped={REPLY_ABSENT: len(rows) - len(kept)},
        signature=ranking_signature(
            pool=None if pool is None else int(sizes.max(initial=0)) or pool,
            of=of,
            seed=seed,
            absent=None if present.all() else missing_reference,
            language=language,
        ),
    )


def aggregate(scores: RankingScores, k: int | Iterable[int] = 1) -> dict[str, float]:
    """Average the ranks over the examples.

    Args:
        k: the k, or several, of precision at k; 1 in MRS.

    Returns:
        `n` (an int), `mrr`, `p@K` for each k and, if the replies are known, `macro_mrr` and `replies` (an int), the
        number of distinct ones; 0 to 1 except for the counts. Precision at k is the share of right
        ones among the first k, so its ceiling is 1 / k; the share of examples with their reply among the first k is k
        times this value.

    Raises:
        ValueError: every example was left out, or a k is below 1.

    >>> aggregate(score_rankings([[3, 1], [1, 3]], [0, 0], replies=["Yes", "No"]), k=(1, 2))
    {'n': 2, 'mrr': 0.75, 'p@1': 0.5, 'p@2': 0.5, 'macro_mrr': 0.75, 'replies': 2}
    """
    n = len(scores.ranks)
    if n == 0:
        raise ValueError(f"No examples are left to rank; skipped: {scores.skipped}.")
    figures: dict[str, float] = {"n": n, "mrr": float(scores.reciprocal_ranks.mean())}
    for at in (k,) if isinstance(k, (int, np.integer)) else k:
        if isinstance(at, bool) or not isinstance(at, (int, np.integer)) or at < 1:
            raise ValueError(f"The k of precision at k must be 1 or more, not {at!r}.")
        figures[f"p@{at}"] = float(((scores.ranks >= 1) & (scores.ranks <= at)).mean()) / at
    if scores.replies is not None:
        means = np.bincount(scores.replies, scores.reciprocal_ranks) / np.bincount(scores.replies)
        figures["macro_mrr"] = float(means.mean())
        figures["replies"] = int(scores.replies.max()) + 1
    return figures


def macro_corpus(replies: Sequence[int], reciprocal_ranks: Sequence[float]) -> Corpus:
    """Return the macro-MRR for intervals and tests, of the number of each example's reply and its reciprocal rank."""
    return Corpus(list(zip(replies, reciprocal_ranks, strict=True)), _macro_figure)


def _macro_figure(rows: Sequence[tuple[int, float]]) -> Figure:
    _, replies = np.unique([reply for reply, _ in rows], return_inverse=True)
    found = np.array([rank for _, rank in rows])

    def figure(weights: NDArray[np.float64]) -> float:
        counts = np.bincount(replies, weights)
        own = counts > 0
        return float((np.bincount(replies, weights * found)[own] / counts[own]).mean())

    return figure


def ranking_signature(
    pool: int | None = None,
    of: str = "candidates",
    seed: int | None = None,
    absent: str | None = None,
    language: str | None = None,
) -> str:
    """Return the signature of a ranking; see `score_rankings` for the fields.

    Args:
        pool: candidates in a pool; None: all, without a seed.
        absent: `skip` or `zero`; None where every reply was among its candidates.

    >>> ranking_signature(pool=100, of="references", seed=42, language="en").rsplit("|", 1)[0]
    'response_ranking|pool:100|of:references|seed:42|ties:pessimistic|lang:en'
    """
    return signature(
        "response_ranking", pool="all" if pool is None else pool, of=of, seed=None if pool is None else seed,
        ties="pessimistic", absent=absent, lang=language,
    )  # fmt: skip


def ranks(scores: ArrayLike, target: ArrayLike = 0) -> NDArray[np.int64]:
    """Return the rank of each row's target, 1 for the best.

    Ties are broken pessimistically: the target comes last among equal scores, so that equal scores for
    all candidates gain nothing.

    Args:
        scores: (n, pool) higher is better.
        target: column of the target: one for all rows, or (n,) one for each.

    Returns:
        (n,) ranks from 1 to pool.

    Raises:
        ValueError: the scores are not two-dimensional or hold NaN, or a target is not one of their columns.

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
        raise ValueError(f"A target column is outside the {table.shape[1]} columns of the scores.")
    own = table[np.arange(len(table)), columns]
    return np.asarray(np.count_nonzero(table >= own[:, None], axis=1), dtype=np.int64)


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
        ValueError: an id is outside the candidates, or size, n_candidates or seed are out of range.

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
    here for all rows together: in step j a number t from 0 to j is drawn, and j itself taken where t was drawn before.
    """
    own, drawn = pools[:, 0], pools[:, 1:]
    state = _mix(own.astype(np.uint64) + _mix(np.array([seed], dtype=np.uint64)))
    for column in range(drawn.shape[1]):
        last = n_others - drawn.shape[1] + column
        # The bias of the remainder is below n / 2**64.
        number = (_mix(state + np.uint64(column)) % np.uint64(last + 1)).astype(np.int64)
        seen = (drawn[:, :column] == number[:, None]).any(axis=1)
        drawn[:, column] = np.where(seen, last, number)
    # The numbers skip the target; ids from the target on are one higher.
    drawn += drawn >= own[:, None]


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit integers: the output function of SplitMix64 (Steele et al. 2014), modulo 2**64."""
    mixed: NDArray[np.uint64] = (values + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _checked_rows(
    scores: Sequence[Sequence[float] | NDArray[np.generic]] | NDArray[np.generic],
    targets: Sequence[int] | NDArray[np.integer],
    replies: Sequence[str] | None,
) -> tuple[list[NDArray[np.generic]], NDArray[np.int64]]:
    """The scores of each example and its target."""
    if len(scores) != len(targets) or (replies is not None and len(replies) != len(targets)):
        counted = f" and {len(replies)} replies" if replies is not None else ""
        raise ValueError(
            f"There must be scores and a target for each example, but there are {len(scores)} lists of scores, "
            f"{len(targets)} targets{counted}."
        )
    for index, reply in enumerate(() if replies is None else replies):
        if not isinstance(reply, str):
            raise ValueError(f"The reply of example {index} must be a text, not {type(reply).__name__}.")
    rows = []
    for index, (entries, target) in enumerate(zip(scores, targets, strict=True)):
        try:
            row = np.asarray(entries)
        except (ValueError, TypeError):
            row = np.asarray(None)
        if row.ndim != 1 or (row.dtype.kind not in "iuf" and len(row)):
            raise ValueError(f"The scores of example {index} must be a list of numbers, not {entries!r:.80}.")
        if np.isnan(row).any():
            raise ValueError(f"The scores of example {index} contain NaN, which has no rank.")
        if isinstance(target, bool) or not isinstance(target, (int, np.integer)) or not ABSENT <= target < len(row):
            raise ValueError(
                f"The target of example {index} must be the index of one of its {len(row)} candidates, or -1 if the "
                f"reply is not among them, not {target!r}."
            )
        rows.append(row)
    return rows, np.asarray(targets, dtype=np.int64).reshape(len(rows))
