"""An interval, and the exact one of a share."""

import math
from collections.abc import Iterable
from typing import Self

import numpy as np


class Interval(tuple[float, float]):
    """The low and high end of an interval; both are nan if it cannot be computed.

    Attributes:
        method: how it was computed, or why not, such as "no interval: all 12 scores are equal".
    """

    method: str

    def __new__(cls, ends: Iterable[float] = (math.nan, math.nan), method: str = "") -> Self:
        made = super().__new__(cls, map(float, ends))
        made.method = method
        return made

    @property
    def ends(self) -> list[float] | None:
        """Both ends for JSON; None if they could not be computed."""
        return None if math.isnan(self[0]) else list(self)


def least_share(ones: int, n: int, confidence: float) -> float:
    """The share at which as many ones of n, or more, have a probability of (1 - confidence) / 2; 0 where ones is 0."""
    logs = np.cumsum(np.log(np.maximum(np.arange(n + 1), 1)))  # of factorials
    counts = np.arange(ones, n + 1)
    ways = logs[n] - logs[counts] - logs[n - counts]
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        chance = np.exp(ways + counts * math.log(middle) + (n - counts) * math.log1p(-middle)).sum()
        low, high = (low, middle) if chance > (1 - confidence) / 2 else (middle, high)
    return low
