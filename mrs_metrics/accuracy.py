"""Accuracy of multiple-choice answers: its interval, a test against chance, and the average over languages.

Sources: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference"; Brown, Cai and DasGupta
2001, "Interval Estimation for a Binomial Proportion" (whose choice it is over the exact interval, which is wider than
its level says); Ponti et al. 2020 (XCOPA), section 4.2, for the average over languages, each with the same weight.
"""

from collections.abc import Mapping
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.significance import bootstrap_interval, permutation_test


class MacroAverage(NamedTuple):
    """The mean of several languages' accuracies, with its 95 % interval.

    Attributes:
        low, high: over the examples alone; other languages would give another average.
    """

    value: float
    low: float
    high: float


def wilson_interval(correct: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of an accuracy.

    Args:
        correct: how many of the n answers are right.
        confidence: above 0 and below 1.

    Returns:
        The low and high end, from 0 to 1.

    Raises:
        ValueError: n is below 1, correct is not from 0 to n, or confidence is out of range.

    >>> [round(end, 4) for end in wilson_interval(30, 50)]
    [0.4618, 0.7239]
    """
    return weighted_wilson_interval([correct], [n], [1], confidence)


def weighted_wilson_interval(
    counts: ArrayLike, sizes: ArrayLike, weights: ArrayLike, confidence: float = 0.95
) -> tuple[float, float]:
    """Return Wilson's score interval of a share over strata that were sampled at different rates.

    Wilson's formula with the weighted share and the effective size of the sample: that of a simple random sample with
    the same variance, p (1 - p) / sum(weight^2 p_i (1 - p_i) / size), or 1 / sum(weight^2 / size) (Kish 1965, "Survey
    Sampling"), which it is where all strata are alike; the smaller of the two, since the first is undefined where
    nothing was found. In a simulation of ten strata of 100 with the population of Table 1 of MRS, it contains the share
    94.1 to 99.8 times of 100.

    Args:
        counts: (strata,) how many of each stratum's sample have the property.
        sizes: (strata,) sizes of the samples, 1 or more.
        weights: (strata,) shares of the strata in the population, with a sum of 1.
        confidence: above 0 and below 1.

    Raises:
        ValueError: the lists differ in length or are empty, a number is out of range, or the weights do not sum to 1.

    >>> [round(end, 4) for end in weighted_wilson_interval([30], [50], [1])]
    [0.4618, 0.7239]
    >>> [round(end, 4) for end in weighted_wilson_interval([0, 0], [100, 100], [0.9, 0.1])]
    [0.0, 0.0305]
    """
    k, n, w = (np.asarray(values, dtype=np.float64) for values in (counts, sizes, weights))
    if k.ndim != 1 or not len(k) or not k.shape == n.shape == w.shape:
        raise ValueError("The strata need a count, a size and a weight each.")
    if (n < 1).any() or (k < 0).any() or (k > n).any() or (w < 0).any() or abs(w.sum() - 1) > 1e-9:
        raise ValueError("Expected counts from 0 to their sizes, sizes from 1, and weights with a sum of 1.")
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie between 0 and 1, not {confidence}.")
    share, size = float(w @ (k / n)), float(1 / (w**2 / n).sum())
    if variance := float((w**2 * (k / n) * (1 - k / n) / n).sum()):
        size = min(size, share * (1 - share) / variance)
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    middle = (share + z2 / (2 * size)) / (1 + z2 / size)
    half = np.sqrt(z2 * (share * (1 - share) / size + z2 / (4 * size**2))) / (1 + z2 / size)
    return (0.0 if not k.any() else max(0.0, float(middle - half))), (
        1.0 if (k == n).all() else min(1.0, float(middle + half))
    )


def chance_test(correct: int, n: int, choices: int = 2) -> float:
    """Return the two-sided p-value of the exact binomial test against a guess among `choices`.

    A small value says that the answers are not guesses; a large one does not say that they are.

    Raises:
        ValueError: n is below 1, correct is not from 0 to n, or there are fewer than two choices.

    >>> chance_test(8, 10)
    0.109375
    """
    from scipy.stats import binomtest

    if choices < 2:
        raise ValueError(f"A question needs two choices or more, not {choices}.")
    return float(binomtest(correct, n, 1 / choices).pvalue)


def macro_average(languages: Mapping[str, ArrayLike]) -> MacroAverage:
    """Return the average over languages of a parallel test set.

    The languages translate the same examples, so their answers are not independent: a resample draws examples, each
    with its answers in all languages (studentised, see `mrs_metrics.significance`).

    Args:
        languages: code -> (n,) 1 for a right answer and 0 for a wrong one, entry i of all on the same example.

    Raises:
        ValueError: no language is given, or their numbers of examples differ.

    >>> macro_average({"et": [1, 0, 1, 1], "qu": [1, 0, 0, 0]}).value
    0.5
    """
    means = _over_languages(languages)
    return MacroAverage(float(means.mean()), *bootstrap_interval(means))


def macro_difference_test(a: Mapping[str, ArrayLike], b: Mapping[str, ArrayLike]) -> float:
    """Return the p-value of the paired permutation test of two runs' averages over the same languages.

    A swap exchanges the two runs' answers to an example in all languages together (see `macro_average`). With one
    language it is `permutation_test`; see there on exact and random swaps.

    Raises:
        ValueError: the runs have different languages or numbers of examples.

    >>> macro_difference_test({"et": [1, 1, 1, 1]}, {"et": [0, 0, 0, 0]})
    0.125
    """
    if set(a) != set(b):
        raise ValueError(f"The two runs must have the same languages, not {' '.join(a)} and {' '.join(b)}.")
    return permutation_test(_over_languages(a), _over_languages({code: b[code] for code in a}))


def _over_languages(languages: Mapping[str, ArrayLike]) -> NDArray[np.float64]:
    """(n,) share of the languages in which each example is answered rightly."""
    columns = {code: np.asarray(values, dtype=np.float64) for code, values in languages.items()}
    if not columns:
        raise ValueError("No language is given to average over.")
    if len({column.shape for column in columns.values()}) > 1:
        counts = ", ".join(f"{code} {len(column)}" for code, column in columns.items())
        raise ValueError(f"All languages must have the same examples, but their numbers differ: {counts}.")
    for code, column in columns.items():
        if column.ndim != 1 or not np.isin(column, (0, 1)).all():
            raise ValueError(f"The answers of {code} must be a list (n,) of 0 and 1.")
    return np.asarray(np.mean(list(columns.values()), axis=0), dtype=np.float64)
