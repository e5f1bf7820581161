"""Coverage of 95 % intervals: how often the studentised bootstrap has the true mean in it, against percentiles.

Workload: samples of 50, 200 and 1,000 scores (10,000, 4,000 and 2,000 samples each) of laws with a known mean:
log-normal (sigma 1), normal, 0 or 1 (p = .1 and .02), and with many zeros: 70 % and beta(1, 2), 80 % and uniform, 80 %
and log-normal, 95 % and beta(1, 2); differences of two systems that agree on 70 % of the examples and differ by normal
noise on the others. Then 5, 10 and 20 scores, fewer than an interval needs; the share of a sum of Poisson tokens in
another (ratio); and corpus BLEU of synthetic counts (percentiles, on 300 samples; the truth is the BLEU of 100,000
examples). Then units of 1 to 6 rows with a score in common, resampled by unit and, as their rival, by row: of 50 and
200 normal units, and of units of which .95 are 0 and others beta(1, 2); and how often the permutation test by unit and
by row finds a difference at .05 between two systems that have none. Seeded; 1,000 resamples, 2,000 swaps.

The rival is the percentile interval of means, from as many resamples, on the first 1,000 samples of each law. The
standard error of a coverage of .95 is .002 at 10,000 samples, .0035 at 4,000, .005 at 2,000 and .007 at 1,000.

Run: python benchmarks/bench_intervals.py [--share S]  (of the samples; about 5 minutes of two cores at 1)
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.bleu import BleuScores, bleu_interval
from mrs_metrics.significance import (
    bootstrap_interval,
    percentile_interval,
    permutation_test,
    ratio_interval,
    resampled_sums,
)

RESULT = Path(__file__).parent / "results" / "bench_intervals.json"
SEED = 20210605
SAMPLES = {50: 10_000, 200: 4_000, 1_000: 2_000}
FEW = {5: 2_000, 10: 2_000, 20: 2_000}
RIVAL, RATIOS, BLEUS, BLEU_EXAMPLES = 1_000, 1_000, 300, 100_000
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _zeros(share: float, other: Draw) -> Draw:
    return lambda generator, n: np.where(generator.random(n) < share, 0.0, other(generator, n))


def _lognormal(generator: np.random.Generator, n: int) -> NDArray[np.float64]:
    return generator.lognormal(size=n)


LAWS: dict[str, tuple[Draw, float]] = {
    "lognormal": (_lognormal, float(np.exp(0.5))),
    "zeros_70_beta": (_zeros(0.7, lambda generator, n: generator.beta(1, 2, n)), 0.1),
    "zeros_80_uniform": (_zeros(0.8, lambda generator, n: generator.random(n)), 0.1),
    "zeros_80_lognormal": (_zeros(0.8, _lognormal), float(0.2 * np.exp(0.5))),
    "differences": (_zeros(0.7, lambda generator, n: generator.normal(size=n)), 0.0),
    "zero_or_one": (lambda generator, n: (generator.random(n) < 0.1).astype(float), 0.1),
    "normal": (lambda generator, n: generator.normal(size=n), 0.0),
    "share_02": (lambda generator, n: (generator.random(n) < 0.02).astype(float), 0.02),
    "zeros_95_beta": (_zeros(0.95, lambda generator, n: generator.beta(1, 2, n)), 0.05 / 3),
}
UNITS: dict[str, tuple[Draw, float]] = {
    "normal": LAWS["normal"],
    "zeros_95_beta": LAWS["zeros_95_beta"],
}
SWAPS = 2_000
SKEWED = ("lognormal", "zeros_70_beta", "zeros_80_uniform", "zeros_80_lognormal", "share_02", "zeros_95_beta")


def cover(law: str, n: int, samples: int, rival: int = 0) -> dict[str, float]:
    """Coverage and median width of both kinds of interval over samples of n scores of a law.

    Args:
        rival: samples, the first ones, that the percentile interval is measured on.
    """
    draw, truth = LAWS[law]
    generator = np.random.default_rng([SEED, n, list(LAWS).index(law)])
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "percentile": []}
    for number in range(samples):
        values = draw(generator, n)
        found["ours"].append(bootstrap_interval(values, seed=number))
        if number < rival:
            means = resampled_sums(values[:, None], seed=number)[:, 0] / n
            found["percentile"].append(percentile_interval(means))
    return _summary(found, truth)


def cover_ratio(n: int, samples: int) -> dict[str, float]:
    """The same of a ratio: Poisson tokens (at least one) a text, a skewed share of which counts."""
    generator = np.random.default_rng([SEED, n, 100])
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "percentile": []}
    for number in range(samples):
        tokens = 1.0 + generator.poisson(6, n)
        losses = generator.lognormal(sigma=0.8, size=n) * tokens
        found["ours"].append(ratio_interval(losses, tokens, seed=number))
        sums = resampled_sums(np.stack([losses, tokens], axis=1), seed=number)
        found["percentile"].append(percentile_interval(sums[:, 0] / sums[:, 1]))
    return _summary(found, float(np.exp(0.32)))


def cover_bleu(n: int, samples: int) -> dict[str, float]:
    """Coverage of the percentile interval of corpus BLEU."""
    truth = bleu_interval(_bleu_scores(np.random.default_rng(SEED), BLEU_EXAMPLES), samples=1, confidence=0.5)[0]
    generator = np.random.default_rng([SEED, n, 200])
    found = [bleu_interval(_bleu_scores(generator, n), seed=number) for number in range(samples)]
    return _summary({"percentile": found}, truth)


def _bleu_scores(generator: np.random.Generator, n: int) -> BleuScores:
    """Counts of replies: 2 to some 20 tokens, half of them with next to no word of the reference."""
    words = 2 + generator.poisson(6, n)
    like = np.where(generator.random(n) < 0.5, 0.05, generator.beta(2, 2, n))
    totals = np.maximum(words[:, None] - np.arange(4), 0)
    matched = [generator.binomial(totals[:, 0], like)]
    for order in range(1, 4):
        matched.append(np.minimum(generator.binomial(matched[-1], np.sqrt(like)), totals[:, order]))
    statistics = np.column_stack([words, 2 + generator.poisson(6, n), *matched, totals])
    return BleuScores(np.zeros(n), statistics, np.zeros(n, int), np.arange(n), {}, 0, "synthetic")


def cover_units(law: str, n: int, samples: int) -> dict[str, float]:
    """Coverage by unit and by row of the mean of n units of 1 to 6 rows, and rejections where nothing differs."""
    generator = np.random.default_rng([SEED, n, 300 + list(UNITS).index(law)])
    found: dict[str, list[tuple[float, float]]] = {"ours": [], "by_row": []}
    rejected = {"ours": 0, "by_row": 0}
    for number in range(samples):
        units = np.repeat(np.arange(n), generator.integers(1, 7, n))
        a, b = (UNITS[law][0](generator, n)[units] for _ in range(2))
        for name, given in (("ours", units.tolist()), ("by_row", None)):
            found[name].append(bootstrap_interval(a, seed=number, units=given))
            rejected[name] += permutation_test(a, b, SWAPS, number, given) < 0.05
    shares = {f"{name}_rejected": round(count / samples, 4) for name, count in rejected.items()}
    return _summary(found, UNITS[law][1]) | shares


def _summary(found: dict[str, list[tuple[float, float]]], truth: float) -> dict[str, float]:
    record: dict[str, float] = {"samples": max(map(len, found.values()))}
    for kind, intervals in found.items():
        if intervals:
            low, high = np.array(intervals).T
            record[kind] = round(float(((low <= truth) & (truth <= high)).mean()), 4)
            record[f"{kind}_width"] = round(float(np.nanmedian(high - low)), 4)
    return record


def _run(task: tuple[str, str, int, int]) -> tuple[str, str, int, dict[str, float]]:
    kind, law, n, samples = task
    if kind == "ratio":
        return kind, law, n, cover_ratio(n, samples)
    if kind == "bleu":
        return kind, law, n, cover_bleu(n, samples)
    if kind == "units":
        return kind, law, n, cover_units(law, n, samples)
    return kind, law, n, cover(law, n, samples, RIVAL if kind == "means" else 0)


def main() -> None:
    """Measure all coverages, print them and write them down; AssertionError if a skewed law has below .94."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the samples; below 1, nothing is written")
    options = parser.parse_args()
    tasks = [("means", law, n, samples) for n, samples in SAMPLES.items() for law in LAWS]
    tasks += [("few", law, n, samples) for n, samples in FEW.items() for law in ("lognormal", "normal")]
    tasks += [(kind, "", n, count) for kind, count in (("ratio", RATIOS), ("bleu", BLEUS)) for n in (50, 200)]
    tasks += [("units", law, n, 1_000) for law in UNITS for n in (50, 200)]
    tasks = [(kind, law, n, max(1, round(options.share * samples))) for kind, law, n, samples in tasks]
    started = time.perf_counter()
    record: dict[str, Any] = {
        "name": "bench_intervals",
        "workload": " ".join((__doc__ or "").split("Workload: ")[1].split("\n\n")[0].split()),
    }
    print(record["workload"])
    with ProcessPoolExecutor(2) as pool:
        for kind, law, n, figures in pool.map(_run, tasks):
            record.setdefault(kind, {}).setdefault(law or "all", {})[str(n)] = figures
            shown = ", ".join(f"{name} {value:.4f}" for name, value in figures.items() if name != "samples")
            print(f"{kind} {law}, n = {n:,}: {shown}", flush=True)
    record["seconds"] = round(time.perf_counter() - started, 1)
    record["versions"] = {"python": platform.python_version(), "numpy": metadata.version("numpy")}
    if options.share == 1:
        rows = [(law, n, row) for law in SKEWED for n, row in record["means"][law].items()]
        rows += [("units", n, row) for n, row in record["units"]["zeros_95_beta"].items()]
        low = [(law, n) for law, n, row in rows if row["ours"] < 0.94]
        if low:
            raise AssertionError(f"The coverage is below .94: {low}.")
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
