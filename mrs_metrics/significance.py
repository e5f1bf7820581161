"""Bootstrap intervals of a mean and of the difference between two systems.

Source: Efron and Tibshirani 1993, "An Introduction to the Bootstrap", chapter 13 (percentile interval); Koehn 2004,
"Statistical Significance Tests for Machine Translation Evaluation" (paired, over the same examples). A metric whose
figure is a mean over examples, such as weighted ROUGE, gets its interval from its per-example scores.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Draws held at a time; bounds the memory to some 70 MB, whatever n and samples are (one resample at least).
_CHUNK_DRAWS = 1 << 22


def bootstrap_interval(
    values: ArrayLike, confidence: float = 0.95, samples: int = 1000, seed: int = 12345
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean.

    Args:
        values: (n,) per-example scores.
        confidence: share of the resampled means that the interval covers, above 0 and below 1.
        samples: resamples of n examples drawn with replacement; 1000 as in Koehn 2004.
        seed: of the draws; equal seeds give equal intervals.

    Returns:
        The low and high end, in the unit of the values.

    Raises:
        ValueError: values are not a non-empty list of finite numbers, or confidence or samples are out of range.

    >>> bootstrap_interval([2.0, 2.0, 2.0])
    (2.0, 2.0)
    """
    column = _column(values, "values")
    if not 0 < confidence < 1:
        raise ValueError(f"The confidence must lie between 0 and 1, not {confidence}.")
    if samples < 1:
        raise ValueError(f"At least one bootstrap sample is needed, not {samples}.")
    tail = (1 - confidence) / 2
    low, high = np.quantile(_resampled_means(column, samples, seed), [tail, 1 - tail])
    return float(low), float(high)


def paired_bootstrap_interval(
    a: ArrayLike, b: ArrayLike, confidence: float = 0.95, samples: int = 1000, seed: int = 12345
) -> tuple[float, float]:
    """Return the bootstrap interval of mean(a - b) over the same examples; without 0 in it, the systems differ.

    Args:
        a, b: (n,) scores of the two systems, entry i of both on the same example.
        confidence, samples, seed: as for `bootstrap_interval`.

    Raises:
        ValueError: a and b differ in length, or as for `bootstrap_interval`.

    >>> paired_bootstrap_interval([0.5, 0.75, 1.0], [0.25, 0.5, 0.75])
    (0.25, 0.25)
    """
    first, second = _column(a, "scores of the first system"), _column(b, "scores of the second system")
    if len(first) != len(second):
        raise ValueError(
            f"Paired systems must have scores of the same examples, but there are {len(first)} and {len(second)}."
        )
    return bootstrap_interval(first - second, confidence, samples, seed)


def _resampled_means(values: NDArray[np.float64], samples: int, seed: int) -> NDArray[np.float64]:
    generator = np.random.default_rng(seed)
    means = np.empty(samples)
    step = max(1, _CHUNK_DRAWS // len(values))
    for start in range(0, samples, step):
        chunk = means[start : start + step]
        draws = generator.integers(len(values), size=(len(chunk), len(values)))
        chunk[:] = values[draws].mean(axis=1)
    return means


def _column(values: ArrayLike, name: str) -> NDArray[np.float64]:
    column = np.asarray(values, dtype=np.float64)
    if column.ndim != 1 or not len(column) or not np.isfinite(column).all():
        raise ValueError(f"The {name} must be a non-empty list (n,) of finite numbers.")
    return column
