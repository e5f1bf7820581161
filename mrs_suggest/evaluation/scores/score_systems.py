"""Comparison of scored systems: whether they can be compared, their order and groups, tests, and saved scores."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.metric_errors import metric_errors
from mrs_suggest.evaluation.scores.metric_options import make_metric
from mrs_suggest.evaluation.scores.metric_record import ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec
from mrs_suggest.evaluation.scores.score_tables import Row, ScoreTable
from mrs_suggest.evaluation.scores.scoring import ScoredSystem, score_system

ALPHA = 0.05  # as in Table 3 of STAPLE (Mayhew et al. 2020)
SAMPLES = 100_000  # of the permutation test, as there


def load_systems(
    spec: MetricSpec, given: Mapping[str, object], paths: Sequence[Path], saved: bool = False
) -> list[ScoredSystem]:
    """Score the files of systems.

    Args:
        spec: of the metric.
        given: options of the metric that are given, by name.
        paths: of the systems' files.
        saved: whether files `*.json` hold scores that `save_values` wrote; these need no options of the metric.

    Raises:
        InputError: a file is missing or broken, an option does not fit, or the metric refuses a file.
    """
    are_saved = [saved and path.suffix == ".json" for path in paths]
    if all(are_saved):
        return [read_values(path, spec.name) for path in paths]
    metric = make_metric(spec, given)
    return [
        read_values(path, spec.name) if is_saved else score_system(spec, metric, path)
        for path, is_saved in zip(paths, are_saved, strict=True)
    ]


def name_systems(systems: Sequence[ScoredSystem], paths: Sequence[Path]) -> None:
    """Call systems by their files' names, or by the paths if two names are equal."""
    names = [path.name for path in paths]
    distinct = len(set(names)) == len(names)
    for system, path in zip(systems, paths, strict=True):
        system.system = path.name if distinct else str(path)


def why_not_comparable(systems: Sequence[ScoredSystem]) -> str:
    """Why the figures of systems cannot be compared; "" where they can."""
    first = systems[0]
    for other in systems[1:]:
        for key, ours in first.record.signatures.items():
            if ours != (theirs := other.record.signatures.get(key, ours)):
                alike = " and ".join(sorted((ours, theirs)))
                return f"the scores were computed differently: {alike}"
        if first.digest != other.digest or len(first.values) != len(other.values):
            return f"{other.system} is about other examples than {first.system}{_first_difference(first, other)}"
    return ""


def _first_difference(first: ScoredSystem, other: ScoredSystem) -> str:
    if not (first.examples and other.examples):
        return ""
    for number, (a, b) in enumerate(zip(first.examples, other.examples, strict=False), start=1):
        if a != b:
            return f" (number {number:,} is the first to differ)"
    return f" (which has {len(first.examples):,}, not {len(other.examples):,})"


def rank_systems(systems: list[ScoredSystem], spec: MetricSpec, correct: bool) -> list[str]:
    """Order systems, best first, and give each the rank of its group where the metric has per-example scores.

    Args:
        correct: apply Holm's correction to the p-values.

    Returns:
        Notes for the user. Systems that cannot be compared keep their order.
    """
    from mrs_metrics.significance import rank_groups

    reason = why_not_comparable(systems)
    if reason:
        return [f"not ordered: {reason}"]
    if not all(len(system.values) for system in systems):
        systems.sort(key=lambda system: _main_figure(system, spec), reverse=spec.higher_is_better)
        return []
    columns = common_values(systems)
    with metric_errors("the systems"):
        groups = rank_groups(
            {str(place): column for place, column in enumerate(columns)},
            alpha=ALPHA, samples=SAMPLES, higher_is_better=spec.higher_is_better, correct=correct,
        )  # fmt: skip
    for place, rank in groups.items():
        systems[int(place)].rank = rank
    notes = []
    if any(len(columns[0]) < system.record.n for system in systems):
        for system, column in zip(systems, columns, strict=True):
            system.common = {"n": len(column), spec.main: _mean(column)}
        named = zip(systems, columns, strict=True)
        means = ", ".join(f"{system.system} {_mean(column):.4f}" for system, column in named)
        notes.append(f"ordered by the {len(columns[0]):,} examples that every system has a score for: {means}")
    systems[:] = [systems[int(place)] for place in groups]
    test = f"permutation test, p < {ALPHA:g}{' after Holm' if correct else ''}"
    return [*notes, f"* best group: adjacent systems share a group unless they differ ({test})"]


def common_values(systems: Sequence[ScoredSystem]) -> list[list[float]]:
    """The scores of the examples that every system has, (systems, examples).

    Raises:
        InputError: there is none.
    """
    rows = zip(*(system.values for system in systems), strict=True)
    kept = [row for row in rows if not any(map(math.isnan, row))]
    if not kept:
        raise InputError("No example has a score from every system; there is nothing to compare.")
    return [list(column) for column in zip(*kept, strict=True)]


@dataclass(frozen=True)
class PairTest:
    """The test of two systems.

    Attributes:
        a: name of the first.
        b: name of the second.
        difference: mean of the first minus that of the second.
        interval: 95 % interval of the difference.
        p: of the permutation test.
        p_holm: p after Holm's correction; None without it.
    """

    a: str
    b: str
    difference: float
    interval: tuple[float, float]
    p: float
    p_holm: float | None = None

    def row(self) -> Row:
        """Its row of a table."""
        figures = {"difference": self.difference, "p": self.p, "p_holm": self.p_holm}
        return Row(f"{self.a} - {self.b}", figures, self.interval)

    def as_json(self) -> dict[str, object]:
        """The test as `mrs score --compare --json` prints it."""
        found: dict[str, object] = {"a": self.a, "b": self.b, "difference": self.difference}
        found |= {"interval": list(self.interval), "p": self.p}
        return found if self.p_holm is None else {**found, "p_holm": self.p_holm}


@dataclass(frozen=True)
class Comparison:
    """Systems in their order, with the figures of the examples that all have, and the tests of neighbours."""

    systems: Sequence[ScoredSystem]
    tests: Sequence[PairTest]
    spec: MetricSpec

    @property
    def signature(self) -> str:
        """How the scores were computed."""
        return self.systems[0].record.signatures["signature"]

    @property
    def method(self) -> str:
        """How the systems were tested."""
        from mrs_metrics.resampling import STUDENTISED

        return (
            f"paired approximate permutation test, {SAMPLES:,} samples; interval of the difference: paired "
            f"{STUDENTISED}, 95 %"
        )

    def tables(self) -> list[ScoreTable]:
        """A table of the systems and one of the tests."""
        shown = [column for column in self.spec.columns if column.key in ("n", self.spec.main)]
        columns = [Column("difference", "difference"), Column("p", "p", 5)]
        columns += [Column("p_holm", "p (Holm)", 5)] if any(test.p_holm is not None for test in self.tests) else []
        return [
            ScoreTable([system.row() for system in self.systems], shown, self.spec.main),
            ScoreTable([test.row() for test in self.tests], columns, "difference"),
        ]

    def as_json(self) -> dict[str, object]:
        """The comparison as `mrs score --compare --json` prints it."""
        keys = (self.spec.main, "n", "interval")
        records = [(system.system, system.record.as_json()) for system in self.systems]
        figures = [{"system": name, **{key: record[key] for key in keys}} for name, record in records]
        tests = [test.as_json() for test in self.tests]
        return {"systems": figures, "tests": tests, "signature": self.signature, "test": self.method}


def compare_neighbours(systems: list[ScoredSystem], spec: MetricSpec, correct: bool) -> Comparison:
    """Order systems by their means over the examples that all have, and test neighbours.

    Args:
        correct: also give the p-values after Holm's correction.

    Raises:
        InputError: they cannot be compared.
    """
    from mrs_metrics.significance import bootstrap_interval, holm, paired_bootstrap_interval, permutation_test

    reason = why_not_comparable(systems)
    if reason:
        raise InputError(f"--compare: {reason}.")
    columns = common_values(systems)
    compared: list[ScoredSystem] = []
    tests: list[PairTest] = []
    with metric_errors(" and ".join(system.system for system in systems)):
        for system, column in zip(systems, columns, strict=True):
            signatures = system.record.signatures
            record = ScoreRecord(len(column), {spec.main: _mean(column)}, signatures, bootstrap_interval(column))
            compared.append(replace(system, record=record, values=column))
        compared.sort(key=lambda system: _main_figure(system, spec), reverse=spec.higher_is_better)
        for first, second in itertools.pairwise(compared):
            difference = _main_figure(first, spec) - _main_figure(second, spec)
            interval = paired_bootstrap_interval(first.values, second.values)
            p = permutation_test(first.values, second.values, samples=SAMPLES)
            tests.append(PairTest(first.system, second.system, difference, interval, p))
    if correct:
        corrected = holm([test.p for test in tests])
        tests = [replace(test, p_holm=p) for test, p in zip(tests, corrected, strict=True)]
    return Comparison(compared, tests, spec)


def _main_figure(system: ScoredSystem, spec: MetricSpec) -> float:
    figure = system.record.figures[spec.main]
    return math.nan if figure is None else figure


def _mean(column: Sequence[float]) -> float:
    return math.fsum(column) / len(column)


def save_values(path: Path, name: str, system: ScoredSystem) -> None:
    """Write the per-example scores of a system, for a later `--compare`."""
    from mrs_suggest.common.io.files import atomic_write

    content = {"metric": name, "signature": system.record.signatures["signature"], "system": system.system}
    content["examples"] = system.digest  # a hash, not their texts
    counts = {"messages": system.messages}
    values = [None if value != value else value for value in system.values]
    atomic_write(path, json.dumps({**content, **counts, "scores": values}) + "\n")


def read_values(path: Path, name: str) -> ScoredSystem:
    """A system whose signature and per-example scores `save_values` wrote; nan for an example that was skipped.

    Raises:
        InputError: the file is missing, or not of that kind or metric.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = [float("nan") if value is None else float(value) for value in content["scores"]]
        metric, signature, digest = (str(content[key]) for key in ("metric", "signature", "examples"))
        messages = int(content["messages"])
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not scores that `mrs score --save-scores` wrote.") from None
    if metric != name:
        raise InputError(f"{path}: holds scores of {metric}, not of {name}; pass --metric {metric}.")
    record = ScoreRecord(sum(value == value for value in values), {}, {"signature": signature})
    return ScoredSystem(str(path), record, values, digest=digest, messages=messages)
