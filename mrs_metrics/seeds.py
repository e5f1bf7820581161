"""The interval of a mean over examples and over runs that differ in their random seed.

Two things vary: which examples were drawn for the test split, and what a training run makes of its seed. The variance
of the mean is the sum of both (a crossed design: every run answers every example), each with its own degrees of freedom
(Satterthwaite 1946, "An Approximate Distribution of Estimates of Variance Components"). The residual of one example in
one run counts in both, so the interval is rather too wide than too narrow.
"""

import numpy as np
from numpy.typing import ArrayLike

from mrs_metrics.interval import Interval
from mrs_metrics.significance import Units, paired_bootstrap_interval, unit_sums


def seeds_interval(values: ArrayLike, confidence: float = 0.95, units: Units = None) -> Interval:
    """Return the interval of the mean difference of two systems over runs and examples.

    Args:
        values: (runs, n) differences of the same examples in every run.
        confidence: above 0 and below 1.
        units: (n,) what each example is of, such as its message; units vary as a whole. None: each is its own.

    Returns:
        The low and high end; none if all differences are equal. Of one run, the studentised bootstrap interval of its
        examples: nothing is known about other seeds.

    Raises:
        ValueError: values are not a table of finite numbers with two examples (units) or more, or confidence is out of
            range.

    >>> low, high = seeds_interval([[0.0, 1.0, 0.0, 1.0], [1.0, 2.0, 1.0, 2.0]])
    >>> round(low, 2), round(high, 2)
    (-1.93, 3.93)
    """
    table = np.asarray(values, dtype=np.float64)
    enough = table.ndim == 2 and len(table) and table.shape[1] > 1 and (units is None or len(set(units)) > 1)
    if not enough or not np.isfinite(table).all():
        raise ValueError("The scores must be a table (runs, n) of finite numbers, with two examples or more.")
    runs, n = table.shape
    if runs == 1:
        return paired_bootstrap_interval(table[0], np.zeros(n), confidence, units=units)
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie between 0 and 1, not {confidence}.")
    from scipy.special import stdtrit

    mean = float(table.mean())
    _, rest = unit_sums(table.mean(axis=0) - mean, units)
    of_examples = float(np.square(rest).sum()) / n**2 * len(rest) / (len(rest) - 1)
    of_seeds = float(table.mean(axis=1).var(ddof=1)) / runs
    variance = of_examples + of_seeds
    if variance == 0:
        return Interval(method=f"no interval: all {table.size:,} differences are equal")
    freedom = variance**2 / (of_examples**2 / (len(rest) - 1) + of_seeds**2 / (runs - 1))
    width = float(stdtrit(freedom, (1 + confidence) / 2)) * variance**0.5
    return Interval((mean - width, mean + width), "crossed design of seeds and examples")
