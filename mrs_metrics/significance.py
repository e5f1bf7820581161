"""Intervals of figures, tests of the difference between two systems, and ranks by significance.

Figures here are means or ratios of sums; `mrs_metrics.corpus` has the intervals and tests of others (corpus BLEU,
Dist-n, macro-MRR). A bootstrap resample draws n examples with replacement.

1. *Studentised* intervals (bootstrap-t: Efron 1979; Hall 1988, "Theoretical Comparison of Bootstrap Confidence
   Intervals"), for a mean or a ratio of sums, whose standard error is known for every resample: the quantiles are those
   of t = (figure* - figure) / error*. Each end is the wider of two: the equal-tailed interval's, which follows skewed
   scores, and the symmetric one's (by |t|), for scores many of which are alike, as in differences of two systems.
   Two rules for small samples: a resample's variance gets 1 / 4n of the sample's own, so that one without any
   spread has a finite t, and both ends stay in the range of the scores.
2. *Exact* intervals (Clopper and Pearson 1934, "The Use of Confidence or Fiducial Limits Illustrated in the Case of the
   Binomial"), for scores that are all 0 or 1 (shares, such as accuracy).

Rows that share a message, a thread or a writer are not independent. With `units`, a resample draws whole units with
all of their rows (the cluster bootstrap: Davison and Hinkley 1997, "Bootstrap Methods and Their Application", section
3.8), and the mean is the ratio of the units' sums to their sizes, with its standard error; a permutation swaps whole
units. Shares have an exact interval only if all units have the same size and the rows of each are alike, or if all
rows are alike; then its n is the effective number of units (Kish 1965, "Survey Sampling"), rounded down.

Chosen by simulation (`benchmarks/bench_intervals.py`). Scores from 0 to 1 that are all 0 have the exact interval, too,
since their mean is at most the share of scores above 0. Other equal scores, or a single one, give no interval.

Tests: Noreen 1989, "Computer-Intensive Methods for Testing Hypotheses" (approximate randomisation), with Riezler and
Maxwell 2005, "On Some Pitfalls in Automatic Evaluation and Significance Testing for MT"; Mayhew et al. 2020 (STAPLE),
section 3 and Table 3 (100,000 samples, ranks of adjacent systems at p < .05); Holm 1979 (correction for several tests).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.interval import Interval, least_share
from mrs_metrics.signature import with_unit

SAMPLES = 1000  # of the bootstrap, as in Koehn 2004
SEED = 12345
# the intervals' names in tables
STUDENTISED, EXACT = "studentised bootstrap", "Clopper-Pearson"
PERMUTATION_SAMPLES = 100_000  # as for Table 3 of STAPLE
ALPHA = 0.05  # likewise
_OWN = 0.25  # chosen by the same simulation: 1 costs .003 of the coverage of log-normal scores, 0 leaves t infinite
_ROUNDING = 2.0**-44  # differences below this share of the scores are rounding: some 250 times a double's precision
# Swaps summed at a time: few enough for the processor's cache, whatever n and samples are.
_CHUNK_SWAPS = 1 << 15
Units = Sequence[Hashable] | None
# [byte, i] is -1 where bit i of the byte is set, else 1
_SIGNS = 1.0 - 2.0 * ((np.arange(256)[:, None] >> np.arange(8)) & 1)


def bootstrap_interval(
    values: ArrayLike, confidence: float = 0.95, samples: int = SAMPLES, seed: int = SEED, units: Units = None,
    shares: bool | None = None,
) -> Interval:  # fmt: skip
    """Return the interval of the mean: exact if all values are 0 or 1, else by the studentised bootstrap.

    Args:
        values: (n,) per-example scores.
        confidence: how often such an interval contains the true mean, above 0 and below 1.
        samples: resamples of n examples drawn with replacement.
        seed: of the draws; equal seeds give equal intervals.
        units: (n,) what each value is of, such as its message; units are drawn. None: each value is its own.
        shares: whether zeros and ones are counts, with an exact interval; None: if all values are 0 or 1.

    Returns:
        The low and high end, in the unit of the values; within their range unless all are 0 or 1. Both are nan for
        other equal values or a single one.

    Raises:
        ValueError: values are not a non-empty list of finite numbers, units are more or fewer, or confidence or samples
            are out of range.

    >>> bootstrap_interval([2.0, 2.0, 2.0]).method
    'no interval: all 3 scores are equal'
    >>> tuple(round(end, 4) for end in bootstrap_interval([0] * 49 + [1]))
    (0.0005, 0.1065)
    """
    column = _column(values, "values")
    if shares is None:
        shares = bool(((column == 0) | (column == 1)).all())
    sizes, sums = unit_sums(column, units)
    return ratio_interval(sums, sizes, confidence, samples, seed, shares)


def paired_bootstrap_interval(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, samples: int = SAMPLES, seed: int = SEED, units: Units = None
) -> Interval:
    """Return the studentised bootstrap interval of mean(a - b) over the same examples; if it excludes 0, they differ.

    Args:
        a, b: (n,) scores of the two systems, entry i of both on the same example.
        confidence, samples, seed, units: as for `bootstrap_interval`.

    Raises:
        ValueError: a and b differ in length, or as for `bootstrap_interval`.

    >>> paired_bootstrap_interval([0.5, 0.75, 1.0], [0.25, 0.5, 0.75]).method
    'no interval: all 3 differences are equal'
    """
    first, second = _pair(a, b)
    found = bootstrap_interval(first - second, confidence, samples, seed, units, shares=False)
    return Interval(found, found.method.replace("scores", "differences").replace("score", "difference"))


def interval_entries(
    find: Callable[..., Interval], values: Any, scores: Any, units: Units, n: int, kept: Iterable[int] | None = None
) -> dict[str, object]:
    """Return `interval`, `interval_method` and `signature` of scores, by the units of those of n examples that they
    kept."""
    numbers, kept = unit_numbers(units, n), getattr(scores, "kept", None) if kept is None else [*kept]
    own = numbers if kept is None else numbers[kept]
    found = find(values) if units is None else find(values, units=own.tolist())
    by = ", by unit" if units is not None and found.ends else ""
    named = with_unit(scores.signature, "example" if units is None else "given")
    return {"interval": found.ends, "interval_method": found.method + by, "signature": named}


def unit_sums(values: ArrayLike, units: Units) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the number of rows of each unit, and the sum of their values, units in the order of their first row.

    Args:
        values: (n,) numbers.
        units: (n,) what each is of; None: n units of one row.

    Returns:
        Sizes and sums, (u,) each.

    Raises:
        ValueError: the two differ in length.

    >>> [part.tolist() for part in unit_sums([1.0, 2.0, 4.0], ["a", "b", "a"])]
    [[2.0, 1.0], [5.0, 2.0]]
    """
    column = np.asarray(values, dtype=np.float64)
    if units is None:
        return np.ones(len(column)), column
    places = unit_numbers(units, len(column))
    return np.bincount(places).astype(np.float64), np.bincount(places, column).astype(np.float64)


def unit_numbers(units: Units, n: int) -> NDArray[np.int64]:
    """Return the number of each example's unit, (n,), in the order of their first rows; ValueError for another n."""
    if units is None:
        return np.arange(n)
    if len(units) != n:
        raise ValueError(f"Each of the {n} examples needs its unit, but {len(units)} are given.")
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(units))}
    return np.array([numbers[unit] for unit in units], dtype=np.int64)


def ratio_interval(
    parts: ArrayLike, wholes: ArrayLike, confidence: float = 0.95, samples: int = SAMPLES, seed: int = SEED,
    shares: bool = False,
) -> Interval:  # fmt: skip
    """Return the studentised bootstrap interval of sum(parts) / sum(wholes), resampling examples.

    The standard error is that of the ratio estimator (Cochran 1977, "Sampling Techniques", section 2.11): the root of
    the sum of (part - ratio * whole)**2, over the sum of the wholes.

    Args:
        parts, wholes: (n,) of each example; every whole is above 0.
        confidence, samples, seed: as for `bootstrap_interval`.
        shares: whether parts and wholes are counts, so that the ratio is a share, which can have an exact interval.

    Raises:
        ValueError: the two differ in length, a whole is not above 0, or an option is out of range.

    >>> ratio_interval([1, 2], [2, 4]).method
    'no interval: all 2 scores are equal'
    """
    above, below = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    if above.ndim != 1 or not len(above) or above.shape != below.shape or not (below > 0).all():
        raise ValueError("Parts and wholes of a ratio must be as many, with at least one row, the wholes above 0.")
    _check_options(confidence, samples)
    if found := _unsampled(above, below, confidence, shares):
        return found
    ratio, error, shift, errors = ratio_resamples(above, below, samples, seed)
    most, least = t_quantiles(shift / errors, confidence)
    ratios = above / below
    return Interval((max(ratio - error * most, ratios.min()), min(ratio - error * least, ratios.max())), STUDENTISED)


def ratio_resamples(
    above: NDArray[np.float64], below: NDArray[np.float64], samples: int, seed: int
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Return sum(above) / sum(below), its standard error, and of resamples the distance from it and the errors."""
    ratio = float(above.sum() / below.sum())
    rest = above - ratio * below
    unit = float(np.abs(rest).max()) or 1.0  # so that no squares underflow or overflow
    rest /= unit
    sums = resampled_sums(np.stack([rest, below, rest**2, rest * below, below**2], axis=1), samples, seed)
    shift = sums[:, 0] / sums[:, 1]  # residuals of a resample are those around its own ratio
    squares = sums[:, 2] - 2 * shift * sums[:, 3] + shift**2 * sums[:, 4]
    error = float(np.sqrt((rest**2).sum()) / below.sum())
    errors = np.sqrt(np.maximum(squares, 0) / sums[:, 1] ** 2 + _OWN * error**2 / len(rest))
    return ratio, unit * error, unit * shift, unit * errors


def t_quantiles(t: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """Return the upper and lower quantile of t, each the wider of the equal-tailed and the symmetric one."""
    tail = (1 - confidence) / 2
    # (samples + 1) * tail values are outside: exact for exchangeable values; numpy's default is too narrow
    least, most = np.quantile(t, [tail, 1 - tail], method="weibull")
    either = np.quantile(np.abs(t), confidence, method="weibull")
    return float(max(most, either)), float(min(least, -either))


def resampled_sums(columns: ArrayLike, samples: int = SAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """Return the sums of each column over resamples of the rows.

    Args:
        columns: (n, k) statistics, one row per unit.
        samples, seed: as for `bootstrap_interval`.

    Returns:
        (samples, k) sums.

    Raises:
        ValueError: the columns are not a table (n, k) of finite numbers with at least one row, or samples is below 1.

    >>> resampled_sums([[1, 10], [1, 10]], samples=2).tolist()
    [[2.0, 20.0], [2.0, 20.0]]
    """
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError("The statistics to resample must be a table (n, k) of finite numbers with at least one row.")
    _check_options(0.5, samples)
    generator = np.random.default_rng(seed)
    n = len(table)
    sums = np.empty((samples, table.shape[1]))
    step = max(1, _CHUNK_SWAPS // n)
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        drawn = generator.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
        sums[start : start + rows] = np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n) @ table
    return sums


def permutation_test(
    a: ArrayLike, b: ArrayLike, samples: int = PERMUTATION_SAMPLES, seed: int = SEED, units: Units = None
) -> float:
    """Return the two-sided p-value of the paired permutation (randomisation) test of mean(a - b).

    If the systems were equivalent, either score of an example could be the other system's: each sample swaps the two
    scores of every example with probability 1/2. With d the difference of the means and d* that of a sample, p = (1 +
    #(|d*| >= |d|)) / (1 + samples) (Noreen 1989: the observed scores count as one of the samples, so p is never 0). If
    the m examples with two different scores have 2**m <= samples swaps, all are enumerated, and p is their exact share.
    Scores without any difference give 1.

    Discrete scores (0 or 1, sixths) tie often, and rounding must not decide a tie: |d*| >= |d| holds up to 2**-44 of
    the mean of |a| + |b|.

    Args:
        a, b: (n,) scores of the two systems, entry i of both on the same example.
        samples: random swaps; the standard error of p is sqrt(p (1 - p) / samples), .0007 at p = .05.
        seed: of the swaps; equal seeds give equal p-values.
        units: (n,) what each score is of, such as its message; all scores of a unit are swapped together.

    Raises:
        ValueError: a, b and units differ in length, the scores are empty, not finite or too large to be summed, or
            samples is below 1.

    >>> permutation_test([1.0, 1.0, 1.0], [0.0, 0.0, 0.0])  # 2 of the 8 swaps
    0.25
    """
    first, second = (unit_sums(column, units)[1] for column in _pair(a, b))
    if samples < 1:
        raise ValueError(f"At least one sample of the permutation test is needed, not {samples}.")
    with np.errstate(over="ignore"):
        sizes = np.abs(first) + np.abs(second)
        tolerance = _ROUNDING * float(sizes.sum())
    if not np.isfinite(tolerance):
        raise ValueError("The scores are too large to be summed; divide them by a constant first.")
    differences = first - second
    differences = differences[np.abs(differences) > _ROUNDING * sizes]  # a swap of equal scores changes nothing
    least = abs(float(differences.sum())) - tolerance
    m = len(differences)
    exact = m < 63 and 1 << m <= samples
    total = 1 << m if exact else samples
    generator = np.random.default_rng(seed)
    reached = 0
    for start in range(0, total, _CHUNK_SWAPS):
        rows = min(_CHUNK_SWAPS, total - start)
        swaps: Iterable[NDArray[np.uint64]]
        if exact:
            swaps = [np.arange(start, start + rows, dtype=np.uint64)]
        else:
            swaps = (generator.integers(2**64, size=rows, dtype=np.uint64) for _ in range(0, m, 64))
        reached += int((np.abs(_swapped_sums(differences, swaps, rows)) >= least).sum())
    return reached / total if exact else (1 + reached) / (1 + total)


def rank_groups(
    systems: Mapping[str, ArrayLike],
    alpha: float = ALPHA,
    samples: int = PERMUTATION_SAMPLES,
    seed: int = SEED,
    higher_is_better: bool = True,
    correct: bool = False,
    units: Units = None,
) -> dict[str, int]:
    """Rank systems as in Table 3 of STAPLE: from the best on, a new rank starts where two neighbours differ.

    Neighbours are adjacent when ordered by their means; they differ if their permutation test gives p < alpha. Two
    systems of one group may still differ if others are between them. Ranks number the groups (1, 1, 2, as in the table,
    not 1, 1, 3).

    Args:
        systems: name -> (n,) scores of the same n examples.
        alpha: above 0 and below 1.
        samples, seed, units: as for `permutation_test`.
        higher_is_better: false for a loss.
        correct: apply Holm's correction to the p-values of all neighbours; section 3 does not.

    Returns:
        name -> rank from 1, best system first, equal means in the order given; ranks have no gaps.

    Raises:
        ValueError: no system is given, alpha is out of range, or as for `permutation_test`.

    >>> rank_groups({"low": [0.0] * 9, "high": [1.0] * 9, "top": [1.0] * 9})
    {'high': 1, 'top': 1, 'low': 2}
    """
    if not systems:
        raise ValueError("No systems are given to rank.")
    if not 0 < alpha < 1:
        raise ValueError(f"The level alpha must lie between 0 and 1, not {alpha}.")
    columns = {name: _column(values, f"scores of {name}") for name, values in systems.items()}
    if len({len(column) for column in columns.values()}) > 1:
        counts = ", ".join(f"{name} {len(column)}" for name, column in columns.items())
        raise ValueError(f"All systems must have scores of the same examples, but their numbers differ: {counts}.")
    sign = -1 if higher_is_better else 1
    order = sorted(columns, key=lambda name: sign * columns[name].mean())
    p_values = [permutation_test(columns[x], columns[y], samples, seed, units) for x, y in pairwise(order)]
    ranks = [1]
    for p in holm(p_values) if correct else p_values:
        ranks.append(ranks[-1] + (p < alpha))
    return dict(zip(order, ranks, strict=True))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values corrected for multiple tests: each at least as large as before, at most 1.

    The smallest of k is multiplied by k, the next by k - 1, and so on, keeping their order (Holm 1979). At a corrected
    p < alpha, the chance of any false difference among all k tests is below alpha.

    Raises:
        ValueError: one is not between 0 and 1.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values must lie between 0 and 1, not {list(p_values)}.")
    corrected = [0.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda i: p_values[i])):
        largest = max(largest, min(1.0, (len(p_values) - place) * p_values[index]))
        corrected[index] = largest
    return corrected


def _swapped_sums(
    differences: NDArray[np.float64], swaps: Iterable[NDArray[np.uint64]], rows: int
) -> NDArray[np.float64]:
    """The (rows,) sums of the differences, each difference with the sign that its bit gives it.

    Args:
        swaps: for every 64 differences, (rows,) words whose set bits (lowest first) flip the sign.

    Eight differences share a table of their 256 sums, so that a row costs one look-up for eight examples.
    """
    sums = np.zeros(rows)
    for start, words in zip(range(0, len(differences), 64), swaps, strict=False):
        octets = words.astype("<u8", copy=False).view(np.uint8).reshape(rows, 8)
        for column, begin in enumerate(range(start, min(start + 64, len(differences)), 8)):
            block = differences[begin : begin + 8]
            sums += (_SIGNS[:, : len(block)] @ block).take(octets[:, column])
    return sums


def _unsampled(
    parts: NDArray[np.float64], wholes: NDArray[np.float64], confidence: float, shares: bool
) -> Interval | None:
    """The exact interval of sum(parts) / sum(wholes), or an empty one; None where resampling has to find it."""
    ratios = parts / wholes
    equal = bool((np.abs(ratios - ratios[0]) <= _ROUNDING * np.abs(ratios).max()).all())
    if shares and set(ratios.tolist()) <= {0.0, 1.0} and (equal or len(set(wholes.tolist())) == 1):
        n = int(wholes.sum() ** 2 / np.square(wholes).sum())
        ones = n * int(ratios[0]) if equal else int(ratios.sum())
        return Interval((least_share(ones, n, confidence), 1 - least_share(n - ones, n, confidence)), EXACT)
    if equal:
        counted = f"all {len(parts):,} scores are equal" if len(parts) > 1 else "there is a single score"
        return Interval(method=f"no interval: {counted}")
    return None


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    first, second = _column(a, "scores of the first system"), _column(b, "scores of the second system")
    if len(first) != len(second):
        raise ValueError(
            f"Paired systems must have scores of the same examples, but there are {len(first)} and {len(second)}."
        )
    return first, second


def _column(values: ArrayLike, name: str) -> NDArray[np.float64]:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not len(column) or not np.isfinite(column).all():
        raise ValueError(f"The {name} must be a non-empty list (n,) of finite numbers.")
    return column


def _check_options(confidence: float, samples: int = 1) -> None:
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie between 0 and 1, not {confidence}.")
    if samples < 1:
        raise ValueError(f"At least one bootstrap sample is needed, not {samples}.")
