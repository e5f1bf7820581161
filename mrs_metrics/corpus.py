"""Intervals and tests of corpus BLEU, Dist-n and macro-MRR, no means over examples; of means on different examples.

1. *Jackknife* intervals: Student's t, with the standard error from the figures without one unit each, which is not too
   small on average (Efron and Stein 1981, "The Jackknife Estimate of Variance"). A bootstrap would not do for Dist-n:
   its resamples repeat examples, and so have fewer distinct n-grams. More than `GROUPS` units form as many groups,
   drawn from the sorted units (or rows, without units), so that the order of the examples does not matter.
2. *Permutation* tests swap whole units between two systems and compute both figures again (Riezler and Maxwell 2005,
   "On Some Pitfalls in Automatic Evaluation and Significance Testing for MT").
3. The *unpaired* test resamples both sides (studentised bootstrap: Davison and Hinkley 1997, section 4.4).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.significance import SEED, STUDENTISED, Units, ratio_resamples, t_quantiles, unit_numbers, unit_sums

GROUPS = 200
SAMPLES = 10_000  # of a test: the standard error of p is .002 at .05
JACKKNIFE = "jackknife"
FEWEST_UNITS = 10  # on a side of a test on different examples: with 5 of skewed scores it rejects 14 % at .05
_ROUNDING = 1e-9  # figures closer than this are equal
Figure = Callable[[NDArray[np.float64]], float]


@dataclass(frozen=True, eq=False)
class Corpus:
    """What a figure of all examples is computed from.

    Attributes:
        rows: (n,) statistics of each example; a swap of equal rows changes nothing.
        figure: such rows -> a function from how often each of them counts, (n,), to the figure.
        most, least: the highest and the lowest figure.
    """

    rows: Sequence[Any]
    figure: Callable[[Sequence[Any]], Figure]
    most: float = 1.0
    least: float = 0.0

    @property
    def value(self) -> float:
        """The figure of all rows."""
        return self.figure(self.rows)(np.ones(len(self.rows)))


def ratio_figure(rows: Sequence[tuple[float, float]]) -> Figure:
    """The sum of the first numbers over that of the second ones, which are counts."""
    parts, wholes = np.array(rows, dtype=np.float64).T
    return lambda weights: float(weights @ parts / max(1, weights @ wholes))


def jackknife_interval(corpus: Corpus, units: Units = None, other: Corpus | None = None) -> Interval:
    """Return the 95 % interval of a figure, or of its difference from another system's on the same examples.

    Args:
        units: (n,) what each example is of, such as its message. None: each is its own.

    >>> jackknife_interval(Corpus([(1, 2), (1, 2)], ratio_figure)).method
    'no interval: the figure is the same whichever unit is left out'
    """
    places = unit_numbers(units, len(corpus.rows))
    if (k := int(places.max(initial=-1)) + 1) > GROUPS:
        rows = zip(corpus.rows, (other or corpus).rows, strict=True)
        names = list(map(repr, rows if units is None else dict.fromkeys(units)))
        groups = np.empty(k, dtype=np.int64)
        groups[sorted(range(k), key=names.__getitem__)] = np.random.default_rng(SEED).permutation(k) % GROUPS
        places, k = groups[places], GROUPS
    if k < 2:
        return Interval(method="no interval: there is a single unit")
    figures = [one.figure(one.rows) for one in (corpus, other) if one]
    weights = ((places != place).astype(np.float64) for place in range(-1, k))  # first without none
    whole, *without = (figures[0](one) - sum(figure(one) for figure in figures[1:]) for one in weights)
    error = float(np.std(without)) * (k - 1) ** 0.5
    if not error > _ROUNDING:
        return Interval(method="no interval: the figure is the same whichever unit is left out")
    reach, (least, most) = error * student_quantile(k - 1), (corpus.least, corpus.most)
    if other:
        least, most = least - most, most - least
    return Interval((max(least, whole - reach), min(most, whole + reach)), JACKKNIFE)


def student_quantile(freedom: int) -> float:
    """Return Student's .975 quantile, to .01 from three degrees of freedom on (Abramowitz and Stegun 1964, 26.7.5).

    >>> [round(student_quantile(freedom), 2) for freedom in (1, 2, 3, 10, 100)]
    [12.71, 4.3, 3.18, 2.23, 1.98]
    """
    if freedom < 3:
        return (12.7062, 4.3027)[freedom - 1]
    z = NormalDist().inv_cdf(0.975)
    terms = (
        z, (z**3 + z) / 4, (5 * z**5 + 16 * z**3 + 3 * z) / 96, (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )  # fmt: skip
    return sum(term * float(freedom) ** -power for power, term in enumerate(terms))


def swap_test(a: Corpus, b: Corpus, units: Units = None, samples: int = SAMPLES, seed: int = SEED) -> float:
    """Return the two-sided p-value of the paired permutation test of two systems' figures, row i of the same example.

    Units and p, exact where few units differ, are those of `mrs_metrics.significance.permutation_test`.

    >>> swap_test(Corpus([(1, 1)] * 3, ratio_figure), Corpus([(0, 1)] * 3, ratio_figure))  # 2 of the 8 swaps
    0.25
    """
    places = unit_numbers(units, len(a.rows))
    differing = sorted({place for place, x, y in zip(places.tolist(), a.rows, b.rows, strict=True) if x != y})
    both, swapped, m = a.figure([*a.rows, *b.rows]), np.zeros(int(places.max(initial=-1)) + 1), len(differing)

    def difference(swaps: NDArray[np.integer]) -> float:
        swapped[differing] = swaps
        mine = swapped[places]
        return abs(both(np.concatenate([1 - mine, mine])) - both(np.concatenate([mine, 1 - mine])))

    least = difference(np.zeros(m, dtype=np.int64)) - _ROUNDING
    if m < 63 and 1 << m <= samples:
        return sum(difference(number >> np.arange(m) & 1) >= least for number in range(1 << m)) / (1 << m)
    generator = np.random.default_rng(seed)
    return (1 + sum(difference(generator.integers(2, size=m)) >= least for _ in range(samples))) / (1 + samples)


def unpaired_test(
    a: ArrayLike, b: ArrayLike, units: Units = None, other_units: Units = None, samples: int = SAMPLES, seed: int = SEED
) -> tuple[Interval, float]:
    """Return the 95 % interval of mean(a) - mean(b) on different examples, and the two-sided p-value.

    With t the difference over its standard error, and t* that of a resample around the difference, p = (1 + #(|t*| >=
    |t|)) / (1 + samples); 1 if neither side varies, or one has fewer than `FEWEST_UNITS`. `units` are of a, the others
    of b.

    >>> unpaired_test([0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0])[1]
    1.0
    """
    (sizes, sums), (other_sizes, other_sums) = unit_sums(a, units), unit_sums(b, other_units)
    one, error, shift, errors = ratio_resamples(sums, sizes, samples, seed)
    two, other_error, other_shift, other_errors = ratio_resamples(other_sums, other_sizes, samples, seed + 1)
    difference, both = one - two, float(np.hypot(error, other_error))
    if not both > _ROUNDING or min(len(sizes), len(other_sizes)) < FEWEST_UNITS:
        return Interval(method=f"no interval: equal scores, or fewer than {FEWEST_UNITS} units on a side"), 1.0
    t = (shift - other_shift) / np.hypot(errors, other_errors)
    most, least = t_quantiles(t, 0.95)
    p = (1 + int((np.abs(t) >= abs(difference) / both).sum())) / (1 + samples)
    return Interval((difference - both * most, difference - both * least), STUDENTISED), p
