"""Comparison of scored systems: whether they can be compared, their order and groups, tests, and saved scores."""

import itertools
import json
import math
import re
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from mrs_metrics import corpus, power
from mrs_metrics.interval import Interval
from mrs_metrics.significance import (
    STUDENTISED,
    bootstrap_interval,
    holm,
    paired_bootstrap_interval,
    permutation_test,
    rank_groups,
    unit_sums,
)
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.evaluation.scores.metrics import METRICS, Scored, score_system

_COMMIT = re.compile(r"\+g\w+$")  # of a clone, at the end of a signature
ALPHA = 0.05  # as in Table 3 of STAPLE (Mayhew et al. 2020)
SAMPLES = 100_000  # of the permutation test, as there
METHOD = (
    f"paired approximate permutation test, {SAMPLES:,} samples ({corpus.SAMPLES:,} if not of means); interval of the "
    f"difference: paired {STUDENTISED} (means) or {corpus.JACKKNIFE}, 95 %; detectable difference: {power.METHOD}"
)
ALONE = f"{power.METHOD}, for two independent systems whose scores vary as here"


def score_file(path: Path, language: str) -> dict[str, float]:
    """The figures of a prediction file as in a run, named as by `mrs score --json`; else an InputError."""
    numbers = score_system("mrs_rouge", path, language=language, sentences="no").numbers()
    return {name: figure for name, figure in numbers.items() if figure is not None}


def rank_systems(systems: list[Scored], name: str, correct: bool = False) -> list[str]:
    """Order systems, best first, and give each the rank of its group where the metric has per-example scores.

    Returns:
        Notes for the user. Systems that cannot be compared keep their order.
    """
    metric = METRICS[name]
    if reason := _why_not_comparable(systems):
        return [f"not ordered: {reason}"]
    if not all(len(system.values) for system in systems):
        systems.sort(key=lambda system: _figure(system, metric.main), reverse=metric.higher_is_better)
        return []
    columns, units = _common(systems)
    with metric_errors("the systems"):
        groups = rank_groups(
            {str(place): column for place, column in enumerate(columns)},
            alpha=ALPHA, samples=SAMPLES, higher_is_better=metric.higher_is_better, correct=correct,
            units=units,
        )  # fmt: skip
    for place, rank in groups.items():
        systems[int(place)].rank = rank
    notes = []
    if any(len(columns[0]) < system.n for system in systems):
        means = [math.fsum(column) / len(column) for column in columns]
        for system, mean in zip(systems, means, strict=True):
            system.common = {"n": len(columns[0]), metric.main: mean}
        named = ", ".join(f"{system.system} {mean:.4f}" for system, mean in zip(systems, means, strict=True))
        notes.append(f"ordered by the {len(columns[0]):,} examples that every system has a score for: {named}")
    systems[:] = [systems[int(place)] for place in groups]
    test = f"permutation test, p < {ALPHA:g}{' after Holm' if correct else ''}"
    return [*notes, f"* best group: adjacent systems share a group unless they differ ({test})"]


@dataclass(frozen=True)
class PairTest:
    """The test of two systems.

    Attributes:
        figure: that differs, the metric's main one or another.
        difference: mean of the first minus that of the second.
        interval: 95 % interval of the difference.
        p_holm: p after Holm's correction; None without it.
        effect_size: the difference in standard deviations of the units' paired differences; None if it is not a mean.
        cohens_h: of two shares (Cohen 1988, "Statistical Power Analysis for the Behavioral Sciences", section 6.2).
        detectable_difference, units_needed: from `mrs_metrics.power`; None where they are unknown.
    """

    a: str
    b: str
    figure: str
    difference: float
    interval: Interval
    p: float
    p_holm: float | None = None
    effect_size: float | None = None
    cohens_h: float | None = None
    detectable_difference: float | None = None
    units_needed: int | None = None

    def as_json(self) -> dict[str, object]:
        found = asdict(self) | {"interval": self.interval.ends, "interval_method": self.interval.method}
        return {key: value for key, value in found.items() if value is not None or key == "interval"}


def compare_neighbours(
    systems: list[Scored], name: str, correct: bool, target: float | None = None
) -> tuple[list[Scored], list[PairTest]]:
    """Order systems by their means over the examples that all have, and test neighbours.

    Args:
        correct: also give the p-values after Holm's correction.
        target: also give how many messages show this difference.
    """
    metric = METRICS[name]
    if reason := _why_not_comparable(systems):
        raise InputError(f"--compare: {reason}.")
    compared, tests = systems, list[PairTest]()
    with metric_errors(" and ".join(system.system for system in systems)):
        if metric.mean_over_examples:
            columns, units = _common(systems)
            compared = []
            for system, column in zip(systems, columns, strict=True):
                figures = {**system.figures, metric.main: math.fsum(column) / len(column)}
                interval = bootstrap_interval(column, units=units)
                compared.append(replace(system, n=len(column), figures=figures, interval=interval, values=column))
        compared = sorted(compared, key=lambda system: _figure(system, metric.main), reverse=metric.higher_is_better)
        for a, b in itertools.pairwise(compared):
            if metric.mean_over_examples:
                tests.append(_mean_test(a, b, metric.main, units, target))
            tests += [_corpus_test(a, b, figure) for figure in a.corpora if figure in b.corpora]
    if correct:
        corrected = holm([test.p for test in tests])
        tests = [replace(test, p_holm=p) for test, p in zip(tests, corrected, strict=True)]
    return compared, tests


def _mean_test(a: Scored, b: Scored, main: str, units: list[Hashable] | None, target: float | None) -> PairTest:
    first, second = np.asarray(a.values), np.asarray(b.values)
    difference = _figure(a, main) - _figure(b, main)
    interval = paired_bootstrap_interval(first, second, units=units)
    p = permutation_test(first, second, samples=SAMPLES, units=units)
    least, needed = power.detectable_difference(first - second, units, target or math.inf)
    sizes, sums = unit_sums(first - second, units)
    spread = float(np.std(sums / sizes, ddof=1)) if least else 0.0
    shares = {*first, *second} <= {0.0, 1.0}
    one, other = (2 * math.asin(math.sqrt(float(column.mean()))) if shares else 0.0 for column in (first, second))
    return PairTest(
        a.system, b.system, main, difference, interval, p, None, difference / spread if spread else None,
        one - other if shares else None, least, needed if target else None,
    )  # fmt: skip


def _corpus_test(a: Scored, b: Scored, figure: str) -> PairTest:
    """Of a figure that is not a mean, on the examples that both systems have."""
    pairs = [*zip(a.corpora[figure].rows, b.corpora[figure].rows, a.units, strict=True)]
    first, second, units = zip(*[pair for pair in pairs if None not in pair[:2]], strict=True)
    one, other = replace(a.corpora[figure], rows=first), replace(b.corpora[figure], rows=second)
    interval = corpus.jackknife_interval(one, units, other)
    return PairTest(a.system, b.system, figure, one.value - other.value, interval, corpus.swap_test(one, other, units))


def messages_needed(system: Scored, target: float) -> int:
    """How many messages show a difference between two independent systems whose scores vary as this one's do."""
    (column,), units = _common([system])
    if needed := power.detectable_difference([math.sqrt(2) * value for value in column], units, target)[1]:
        return needed
    raise InputError(f"--power: the scores of {system.system} are all alike; pass a system whose scores vary.")


def save_scores(path: Path, name: str, system: Scored) -> None:
    """Write the per-example scores of a system, for a later `--compare`."""
    values = [None if value != value else value for value in system.values]
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(system.units))}
    content = {
        "metric": name,
        "signature": system.signatures["signature"],
        "system": system.system,
        "examples": system.digest,  # a hash, not their texts
        "units": [numbers[unit] for unit in system.units],
        "scores": values,
    }
    atomic_write(path, json.dumps(content) + "\n")


def read_scores(path: Path, name: str) -> Scored:
    """A system of `save_scores`, nan for an example that was skipped; InputError for another kind of file or metric."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = [float("nan") if value is None else float(value) for value in content["scores"]]
        metric, signature, digest = (str(content[key]) for key in ("metric", "signature", "examples"))
        units = list(map(int, content["units"]))
        if len(units) not in (0, len(values)):
            raise ValueError
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not scores that `mrs score --save-scores` wrote.") from None
    if metric != name:
        raise InputError(f"{path}: scores of {metric}, not of {name}; pass --metric {metric}.")
    n = sum(value == value for value in values)
    signatures = {"signature": signature}
    return Scored(n, {}, signatures, values=values, digest=digest, units=units, system=str(path))


def _why_not_comparable(systems: Sequence[Scored]) -> str:
    """Why the figures of systems cannot be compared; "" if they can."""
    first = systems[0]
    for other in systems[1:]:
        for key, ours in first.signatures.items():
            theirs = other.signatures.get(key, ours)
            if _COMMIT.sub("", ours) != _COMMIT.sub("", theirs):
                alike = " and ".join(sorted((ours, theirs)))
                return f"the scores were computed differently: {alike}"
        if first.digest != other.digest or len(first.values) != len(other.values):
            where = ""
            if len(first.examples) and len(other.examples):
                pairs = enumerate(zip(first.examples, other.examples, strict=False), start=1)
                number = next((number for number, (a, b) in pairs if a != b), None)
                where = f" (which has {len(first.examples):,}, not {len(other.examples):,})"
                where = where if number is None else f" (number {number:,} is the first to differ)"
            return f"{other.system} has other examples than {first.system}{where}"
    return ""


def _common(systems: Sequence[Scored]) -> tuple[list[list[float]], list[Hashable] | None]:
    """The scores of the examples that every system has, (systems, examples), and the examples' units."""
    rows = list(zip(*(system.values for system in systems), strict=True))
    kept = [place for place, row in enumerate(rows) if not any(map(math.isnan, row))]
    if not kept:
        raise InputError("No example has a score from every system; there is nothing to compare.")
    units = next((system.units for system in systems if system.units), None)
    columns = [list(column) for column in zip(*(rows[place] for place in kept), strict=True)]
    return columns, None if units is None else [units[place] for place in kept]


def _figure(system: Scored, name: str) -> float:
    figure = system.figures[name]
    return math.nan if figure is None else figure
