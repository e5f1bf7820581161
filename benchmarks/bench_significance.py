"""Paired permutation test: `mrs_metrics.significance.permutation_test` against `scipy.stats.permutation_test`.

Workload: 100,000 samples over the scores of two systems on 500 examples, once of continuous scores (uniform, the
second system's with normal noise of .15) and once of scores of 0 and 1 that differ in about every second example and
tie often. Seeded.

The rival is called with `permutation_type="samples"` and a vectorized difference of means, in each of two batch sizes;
the faster counts. Both run in one process, best of three rounds. Before a time is reported, the two p-values must
agree within five standard errors of their difference.

Run: python benchmarks/bench_significance.py [--samples N] [--examples N]
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import resource
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mrs_metrics.significance import permutation_test

RESULT = Path(__file__).parent / "results" / "bench_significance.json"
SEED = 20210605
SAMPLES, EXAMPLES = 100_000, 500
ROUNDS = 3
BATCHES = (1_000, 10_000)
Scores = tuple[NDArray[np.float64], NDArray[np.float64]]


def make_workloads(examples: int) -> dict[str, Scores]:
    """The scores of two systems, as the module's docstring describes them."""
    generator = np.random.default_rng(SEED)
    a = generator.random(examples)
    hits = generator.random((2, examples)) < np.array([[0.55], [0.5]])
    return {
        "continuous": (a, a - 0.008 + generator.normal(0, 0.15, examples)),
        "zero_or_one": (hits[0].astype(float), hits[1].astype(float)),
    }


def difference(x: NDArray[np.float64], y: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """The rival's statistic."""
    return np.mean(x - y, axis=axis)


def best(call: Callable[[], float]) -> tuple[float, float]:
    """Seconds of the fastest of `ROUNDS` calls, and what it returned."""
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - start)
    return min(seconds), value


def race(scores: Scores, samples: int) -> dict[str, Any]:
    """Time both on one workload; AssertionError where their p-values disagree."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    ours, p = best(lambda: permutation_test(*scores, samples=samples, seed=SEED))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    rivals, rival_p = {}, math.nan
    for batch in BATCHES:
        rivals[batch], rival_p = best(
            lambda: stats.permutation_test(
                scores, difference, permutation_type="samples", vectorized=True, n_resamples=samples,
                batch=batch, rng=np.random.default_rng(SEED),  # noqa: B023
            ).pvalue
        )  # fmt: skip
    error = math.sqrt(2 * p * (1 - p) / samples)
    if abs(p - rival_p) > 5 * error:
        raise AssertionError(f"The p-values disagree: {p} against {rival_p}, standard error {error}.")
    rival = min(rivals.values())
    return {
        "seconds": {"ours": round(ours, 4), "rival": round(rival, 3)},
        "rival_batch": min(rivals, key=lambda batch: rivals[batch]),
        "ratio": round(rival / ours, 1),
        "p": {"ours": p, "rival": float(rival_p), "standard_error_of_difference": error},
        "peak_memory_grown_mb": round(grown / 1024, 1),
    }


def main() -> None:
    """Race both on the two workloads; print and write the ratios."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--examples", type=int, default=EXAMPLES)
    options = parser.parse_args()
    record = {
        "name": "bench_significance",
        "workload": " ".join((__doc__ or "").split("Workload: ")[1].split("\n\n")[0].split()),
        "samples": options.samples,
        "examples": options.examples,
        **{name: race(scores, options.samples) for name, scores in make_workloads(options.examples).items()},
        "versions": {
            "python": platform.python_version(),
            **{package: metadata.version(package) for package in ("numpy", "scipy")},
        },
    }
    print(record["workload"])
    for name in make_workloads(options.examples):
        result = record[name]
        ours, rival = result["seconds"]["ours"], result["seconds"]["rival"]
        p, rival_p = result["p"]["ours"], result["p"]["rival"]
        print(
            f"{name}: ours {ours:.3f} s, rival {rival:.2f} s, {result['ratio']} times as fast; "
            f"p {p:.4f} and {rival_p:.4f}; peak memory grown by {result['peak_memory_grown_mb']} MB"
        )
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
