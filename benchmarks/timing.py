"""What the benchmarks time calls with."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(call: Callable[[], object], times: int) -> float:
    """The best of three rounds, a call."""
    rounds = []
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(times):
            call()
        rounds.append((time.perf_counter() - start) / times)
    return min(rounds)
