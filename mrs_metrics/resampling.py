"""Bootstrap of figures that are no mean over examples: corpus BLEU, perplexity, a share among all suggestions.

Such a figure is a function of sums over the examples (matches, tokens, losses). A resample draws n examples with
replacement and takes the same sums again.

Source: Koehn 2004, "Statistical Significance Tests for Machine Translation Evaluation" (section 3, BLEU); Efron and
Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13 (percentile interval). For a mean over examples,
`mrs_metrics.significance.bootstrap_interval` draws the same examples and gives the same interval.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

SAMPLES = 1000  # as in Koehn 2004
SEED = 12345


def resampled_sums(columns: ArrayLike, samples: int = SAMPLES, seed: int = SEED) -> NDArray[np.float64]:
    """Return the sums of each column over resamples of the rows; memory grows with the rows, not with the samples.

    Args:
        columns: (n, k) statistics, one row an example.
        samples: resamples of n rows, drawn with replacement.
        seed: of the draws; equal seeds give equal resamples.

    Returns:
        (samples, k) sums.

    Raises:
        ValueError: the columns are no table (n, k) of finite numbers with a row, or samples is below 1.

    >>> resampled_sums([[1, 10], [1, 10]], samples=2).tolist()
    [[2.0, 20.0], [2.0, 20.0]]
    """
    table = np.asarray(columns, dtype=np.float64)
    if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
        raise ValueError("The statistics to resample must be a table (n, k) of finite numbers with at least one row.")
    if samples < 1:
        raise ValueError(f"At least one bootstrap sample is needed, not {samples}.")
    generator = np.random.default_rng(seed)
    n = len(table)
    sums = np.empty((samples, table.shape[1]))
    for row in sums:
        row[:] = np.bincount(generator.integers(n, size=n), minlength=n) @ table
    return sums


def percentile_interval(figures: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Return the low and high end of the middle part of the resampled figures.

    Args:
        figures: (samples,) the figure of each resample.
        confidence: the part that lies between the ends, above 0 and below 1.

    Raises:
        ValueError: the confidence is out of range.

    >>> percentile_interval([1.0, 2.0, 3.0], confidence=0.5)
    (1.5, 2.5)
    """
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie between 0 and 1, not {confidence}.")
    tail = (1 - confidence) / 2
    low, high = np.quantile(np.asarray(figures, dtype=np.float64), [tail, 1 - tail])
    return float(low), float(high)


def ratio_interval(
    parts: ArrayLike, wholes: ArrayLike, confidence: float = 0.95, samples: int = SAMPLES, seed: int = SEED
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of sum(parts) / sum(wholes), resampling examples.

    Args:
        parts, wholes: (n,) of each example; every whole is above 0.
        confidence, samples, seed: as for `percentile_interval` and `resampled_sums`.

    Raises:
        ValueError: the two differ in length, a whole is not above 0, or as for the two functions.

    >>> ratio_interval([1, 2], [2, 4])
    (0.5, 0.5)
    """
    above, below = np.asarray(parts, dtype=np.float64), np.asarray(wholes, dtype=np.float64)
    if above.ndim != 1 or above.shape != below.shape or not (below > 0).all():
        raise ValueError("The parts and wholes of a ratio must be lists of the same length, the wholes above 0.")
    sums = resampled_sums(np.stack([above, below], axis=1), samples, seed)
    return percentile_interval(sums[:, 0] / sums[:, 1], confidence)
