"""The smallest difference between two systems that given examples detect, and how many examples a difference needs.

A test at a two-sided level of .05 finds a difference 80 times of 100 if it has ((z_.975 + z_.8) * sd / difference)**2
examples; sd is that of the paired difference (Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences").
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.significance import Units, unit_sums

METHOD = "80 % power, two-sided alpha .05"
FACTOR = NormalDist().inv_cdf(0.975) + NormalDist().inv_cdf(0.8)


def detectable_difference(
    differences: ArrayLike, units: Units = None, target: float = math.inf
) -> tuple[float, int] | tuple[None, None]:
    """Return the smallest difference that the examples show, and how many units show `target`; None if no unit differs.

    Args:
        differences: (n,) score of one system minus that of the other.
        units: (n,) what each is of, such as its message, which counts once (standard error of a ratio: Cochran 1977,
            "Sampling Techniques", section 2.11). None: each is its own.
        target: a difference above 0.
    """
    sizes, sums = unit_sums(differences, units)
    ratio, error = ratio_error(sums, sizes)
    if np.abs(sums - ratio * sizes).max() <= 1e-12 * np.abs(sums).max():
        return None, None
    return FACTOR * error, units_needed(error * math.sqrt(len(sizes)), target)


def units_needed(deviation: float, difference: float) -> int:
    """Return how many units show a difference, from the standard deviation of the paired difference."""
    return max(2, math.ceil((FACTOR * deviation / difference) ** 2))


def ratio_error(sums: NDArray[np.float64], sizes: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ratio of the sums of units to their sizes, (u,) each, and its standard error (Cochran, as above); that
    of a single unit, which cannot be known, is 0."""
    ratio = float(sums.sum() / sizes.sum())
    rest = float(np.square(sums - ratio * sizes).sum()) / max(1, len(sizes) - 1)
    return ratio, math.sqrt(len(sizes) * rest) / float(sizes.sum())
