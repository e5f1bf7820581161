"""Coverage of 95 % intervals: how often the studentised bootstrap has the true mean in it, against percentiles.

Workload: samples of 50, 200 and 1,000 scores (4,000, 1,000 and 400 samples each) of laws with a known mean: log-normal
(sigma 1), normal, 0 or 1 (p = .1 and .02), reciprocal ranks in pools of 100, and with many zeros: 70 % and beta(1, 2),
80 % and uniform, 80 % and log-normal, 95 % and beta(1, 2); differences of two systems that agree on 70 % of the
examples and differ by normal noise on the others. Then 5, 10 and 20 scores, fewer than an interval needs; the share of
a sum of Poisson tokens in another (ratio); and what the jackknife is for: corpus BLEU of synthetic counts, Dist-1 and
Dist-2 of Zipf words and macro-MRR over Zipf replies (the truth is the mean of the figures of all samples). Then units
of 1 to 6 rows with a score in common, resampled by unit and, as their rival, by row: of 50 and 200 normal units, and of
units of which .95 are 0 and others beta(1, 2); and their gaps, the difference between 10, 50 or 200 such units and 50
others. Tests at .05 of two systems that do not differ: the permutation test by unit and by row, that of BLEU, Dist-1
and macro-MRR, the test of gaps, the test of clicks in sessions, and its sequential one, with a look at every tenth
session from 30 on. Seeded; 1,000 resamples, 2,000 swaps (500 of figures that are not means).

The rival is the percentile interval of means, from as many resamples, on the first samples of each law. An interval
should cover .94 to .97 of the samples, a test reject .04 to .06 (a sequential one .06 at most); what is outside by more
than two standard errors is listed in the record, and on the page of results.

Run: python benchmarks/bench_intervals.py [--share S]  (of the samples; about 4 minutes of two idle cores at 1)
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

from mrs_metrics.bleu import BleuScores, bleu_corpus
from mrs_metrics.corpus import Corpus, jackknife_interval, swap_test, unpaired_test
from mrs_metrics.distinct import distinct_corpus
from mrs_metrics.ranking import macro_corpus
from mrs_metrics.significance import bootstrap_interval, permutation_test, ratio_interval, resampled_sums
from mrs_suggest.evaluation.clicks import Click, compare

RESULT = Path(__file__).parent / "results" / "bench_intervals.json"
SEED = 20210605
SAMPLES = {50: 4_000, 200: 1_000, 1_000: 400}
FEW = {5: 2_000, 10: 2_000, 20: 2_000}
RIVAL, RATIOS, CORPORA, UNIT_SAMPLES, CLICKS = 400, 1_000, 400, 1_000, 2_000
CORPUS_SWAPS = 500
COVERED, REJECTED = (0.94, 0.97), (0.04, 0.06)
Ends = tuple[float, float]
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def _zeros(share: float, other: Draw) -> Draw:
    return lambda generator, n: np.where(generator.random(n) < share, 0.0, other(generator, n))


_RANKS = 1.0 / np.arange(1, 101)
_CHANCES = _RANKS**1.2 / (_RANKS**1.2).sum()


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
    "reciprocal_ranks": (lambda generator, n: generator.choice(_RANKS, n, p=_CHANCES), float(_RANKS @ _CHANCES)),
}
UNITS: dict[str, tuple[Draw, float]] = {"normal": LAWS["normal"], "zeros_95_beta": LAWS["zeros_95_beta"]}
SWAPS = 2_000


def cover(law: str, n: int, samples: int, rival: int = 0) -> dict[str, float]:
    """Coverage and median width of both kinds of interval over samples of n scores of a law.

    Args:
        rival: samples, the first ones, that the percentile interval is measured on.
    """
    draw, truth = LAWS[law]
    generator = np.random.default_rng([SEED, n, list(LAWS).index(law)])
    found: dict[str, list[Ends]] = {"ours": [], "percentile": []}
    for number in range(samples):
        values = draw(generator, n)
        found["ours"].append(bootstrap_interval(values, seed=number))
        if number < rival:
            means = resampled_sums(values[:, None], seed=number)[:, 0] / n
            found["percentile"].append(_percentiles(means))
    return _summary(found, truth)


def cover_ratio(n: int, samples: int) -> dict[str, float]:
    """The same of a ratio: Poisson tokens (at least one) a text, a skewed share of which counts."""
    generator = np.random.default_rng([SEED, n, 100])
    found: dict[str, list[Ends]] = {"ours": [], "percentile": []}
    for number in range(samples):
        tokens = 1.0 + generator.poisson(6, n)
        losses = generator.lognormal(sigma=0.8, size=n) * tokens
        found["ours"].append(ratio_interval(losses, tokens, seed=number))
        sums = resampled_sums(np.stack([losses, tokens], axis=1), seed=number)
        found["percentile"].append(_percentiles(sums[:, 0] / sums[:, 1]))
    return _summary(found, float(np.exp(0.32)))


def cover_corpus(kind: str, n: int, samples: int) -> dict[str, float]:
    """Coverage of the jackknife, and rejections between two systems that do not differ."""
    generator = np.random.default_rng([SEED, n, 200 + list(CORPORA_OF).index(kind)])
    values, found, rejected = [], list[Ends](), 0
    for number in range(samples):
        a, b = CORPORA_OF[kind](generator, n), CORPORA_OF[kind](generator, n)
        values.append(a.value)
        found.append(jackknife_interval(a))
        rejected += swap_test(a, b, None, CORPUS_SWAPS, number) < 0.05
    return _summary({"ours": found}, float(np.mean(values))) | {"ours_rejected": round(rejected / samples, 4)}


def _words(generator: np.random.Generator, n: int) -> list[list[list[str]]]:
    """Three suggestions of 1 to some 10 words of a Zipf vocabulary for each message."""
    return [
        [[str(word) for word in generator.zipf(1.3, 1 + generator.poisson(4)) % 20_000] for _ in range(3)]
        for _ in range(n)
    ]


def _ranked(generator: np.random.Generator, n: int) -> Corpus:
    replies = generator.zipf(1.5, n) % 500
    return macro_corpus(replies.tolist(), generator.choice(_RANKS, n, p=_CHANCES).tolist())


def reject_clicks(n: int, samples: int, sequential: bool) -> dict[str, float]:
    """Coverage and rejections of the test of clicks in n sessions of each of two models that do not differ."""
    generator = np.random.default_rng([SEED, n, 400 + sequential])
    found, rejected = list[Ends](), 0
    for _ in range(samples):
        sessions = []
        for number in range(n):
            for model in "ab":
                chance = generator.beta(2, 4)
                clicked = (generator.random(generator.integers(1, 7)) < chance).astype(int).tolist()
                sessions.append([Click(f"{model}{number}", model, "", "en", None, 1, one, one, 0) for one in clicked])
        looks = range(30, n + 1, 10) if sequential else (n,)
        shown = [[click for one in sessions[: 2 * look] for click in one] for look in looks]
        tests = [compare(clicks, "a", "b", sequential) for clicks in shown]
        rejected += any(test["p"] < 0.05 for test in tests)
        found.append(tuple(tests[-1]["interval"]))
    record = _summary({"ours": found}, 0.0) | {"ours_rejected": round(rejected / samples, 4)}
    return {key: value for key, value in record.items() if not (sequential and key == "ours")}


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


CORPORA_OF: dict[str, Callable[[np.random.Generator, int], Corpus]] = {
    "bleu": lambda generator, n: bleu_corpus(_bleu_scores(generator, n)),
    "dist1": lambda generator, n: distinct_corpus(_words(generator, n), 1),
    "dist2": lambda generator, n: distinct_corpus(_words(generator, n), 2),
    "macro_mrr": _ranked,
}


def _percentiles(figures: NDArray[np.float64]) -> Ends:
    low, high = np.quantile(figures, [0.025, 0.975])
    return float(low), float(high)


def cover_units(law: str, n: int, samples: int) -> dict[str, float]:
    """Coverage by unit and by row of the mean of n units of 1 to 6 rows, and rejections where nothing differs."""
    generator = np.random.default_rng([SEED, n, 300 + list(UNITS).index(law)])
    found: dict[str, list[Ends]] = {"ours": [], "by_row": []}
    rejected = {"ours": 0, "by_row": 0}
    for number in range(samples):
        units = np.repeat(np.arange(n), generator.integers(1, 7, n))
        a, b = (UNITS[law][0](generator, n)[units] for _ in range(2))
        for name, given in (("ours", units.tolist()), ("by_row", None)):
            found[name].append(bootstrap_interval(a, seed=number, units=given))
            rejected[name] += permutation_test(a, b, SWAPS, number, given) < 0.05
    shares = {f"{name}_rejected": round(count / samples, 4) for name, count in rejected.items()}
    return _summary(found, UNITS[law][1]) | shares


def cover_gaps(law: str, n: int, samples: int) -> dict[str, float]:
    """Coverage and rejections of the difference between n units of 1 to 6 rows and 50 others, where nothing differs."""
    generator = np.random.default_rng([SEED, n, 500 + list(UNITS).index(law)])
    found, rejected = list[Ends](), 0
    for number in range(samples):
        mine, others = (np.repeat(np.arange(size), generator.integers(1, 7, size)) for size in (n, 50))
        a, b = UNITS[law][0](generator, n)[mine], UNITS[law][0](generator, 50)[others]
        interval, p = unpaired_test(a, b, mine.tolist(), others.tolist(), 1_000, number)
        rejected += p < 0.05
        found += [interval.ends] if interval.ends else []
    return _summary({"ours": found}, 0.0) | {"ours_rejected": round(rejected / samples, 4)}


def _summary(found: dict[str, list[Ends]], truth: float) -> dict[str, float]:
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
    if kind == "corpus":
        return kind, law, n, cover_corpus(law, n, samples)
    if kind == "clicks":
        return kind, law, n, reject_clicks(n, samples, law == "sequential")
    if kind == "gaps":
        return kind, law, n, cover_gaps(law, n, samples)
    if kind == "units":
        return kind, law, n, cover_units(law, n, samples)
    return kind, law, n, cover(law, n, samples, RIVAL if kind == "means" else 0)


def outside(record: dict[str, Any]) -> list[dict[str, Any]]:
    """What misses its aim by more than two standard errors, of samples of 50 or more."""
    found = []
    for kind in ("means", "ratio", "corpus", "units", "gaps", "clicks"):
        for law, rows in record[kind].items():
            for n, row in rows.items():
                for key, (low, high) in (("ours", COVERED), ("ours_rejected", REJECTED)):
                    low = 0.0 if law == "sequential" else low
                    errors = ((end * (1 - end) / row["samples"]) ** 0.5 for end in (low, high))
                    below, above = (2 * error for error in errors)
                    if key in row and not low - below <= row[key] <= high + above:
                        what = "interval" if key == "ours" else "test"
                        found.append({"of": kind, "law": law, "n": int(n), what: row[key]})
    return found


def main() -> None:
    """Measure all coverages and rejections, print them and write them down."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the samples; below 1, nothing is written")
    options = parser.parse_args()
    tasks = [("means", law, n, samples) for n, samples in SAMPLES.items() for law in LAWS]
    tasks += [("few", law, n, samples) for n, samples in FEW.items() for law in ("lognormal", "normal")]
    tasks += [("ratio", "", n, RATIOS) for n in (50, 200)]
    tasks += [("corpus", law, n, CORPORA) for law in CORPORA_OF for n in (50, 200)]
    tasks += [("units", law, n, UNIT_SAMPLES) for law in UNITS for n in (50, 200)]
    tasks += [("gaps", law, n, UNIT_SAMPLES) for law in UNITS for n in (10, 50, 200)]
    tasks += [("clicks", law, n, CLICKS) for law, n in (("fixed", 50), ("fixed", 200), ("sequential", 100))]
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
    record["outside"] = outside(record)
    print(f"outside: {record['outside']}")
    if options.share == 1:
        RESULT.parent.mkdir(exist_ok=True)
        RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
