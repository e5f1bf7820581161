"""Runs side by side: a field for each row, language and metric, means over shared languages, leads over one row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import isclose

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.pairing import Interval
from mrs_suggest.evaluation.runs.figures import RANKING, ROUGE, Metric, Run, Scope, Task, require_one_task, rules_of
from mrs_suggest.evaluation.runs.grouping import BY_SEED, Row, group_runs
from mrs_suggest.evaluation.runs.leads import Lead, all_leads
from mrs_suggest.evaluation.runs.same_tests import OTHER_POOLS, OTHER_ROWS, UNKNOWN, unlike

ROUNDING = 1e-9  # equal figures may differ by this share
MARKS = "abcdefghijklmnopqrstuvwxyz"
TOLD = {
    OTHER_ROWS: "tested on other rows than {reference}: {where}; not compared with it",
    UNKNOWN: "run.json does not show whether it was tested on the same rows as {reference}: {where}; not compared",
    OTHER_POOLS: "ranked in other pools than {reference} (seed, size, replies): {where}; not compared with it",
}


@dataclass(frozen=True)
class Field:
    """A figure of one row in one language.

    Attributes:
        values: seed -> figure.
        intervals: seed -> its 95 % interval over the test examples, where the run has one.
        mark: of the footnote that says why it is not compared; "" where it is.
    """

    values: dict[str, float]
    intervals: dict[str, Interval] = field(default_factory=dict)
    mark: str = ""

    @property
    def mean(self) -> float:
        """Over the seeds."""
        return float(np.mean(list(self.values.values())))

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the seeds; None of one."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class RunsTable:
    """A comparison.

    Attributes:
        over: the row that leads are taken over.
        scopes: parts and languages that one row or more was tested in, in the order of the runs.
        fields: (name of the row, scope, key of the metric) -> figure; only what was measured.
        footnotes: mark -> why figures with it are not compared.
        warnings: sentences.
        signatures: scope -> key of a metric -> how it was computed.
    """

    task: Task
    rows: tuple[Row, ...]
    over: Row
    metrics: tuple[Metric, ...]
    scopes: tuple[Scope, ...]
    fields: dict[tuple[str, Scope, str], Field]
    leads: tuple[Lead, ...]
    footnotes: dict[str, str]
    warnings: tuple[str, ...]
    signatures: dict[Scope, dict[str, str]]

    @property
    def parts(self) -> list[str]:
        """The parts, each a separate table."""
        return list(dict.fromkeys(part for part, _ in self.scopes))

    def field(self, row: Row, part: str, code: str, metric: Metric) -> Field | None:
        """A figure of a row, or None."""
        return self.fields.get((row.name, (part, code), metric.key))

    def languages(self, part: str, metric: Metric | None = None) -> list[str]:
        """Those of a part that one row or more has a figure for."""
        codes = [code for own, code in self.scopes if own == part]
        return [code for code in codes if not metric or any(self.field(row, part, code, metric) for row in self.rows)]

    def shared(self, part: str, metric: Metric) -> list[str]:
        """The languages that all rows with such a figure were tested in; fewer than two have no mean, and perplexities
        of several languages none at all."""
        codes = self.languages(part, metric)
        found = [{code for code in codes if self.field(row, part, code, metric)} for row in self.rows]
        return [code for code in codes if metric.averaged and all(code in own for own in found if own)]

    def mean(self, row: Row, part: str, metric: Metric) -> Field | None:
        """A row's mean over the shared languages, seed by seed; None if it cannot be compared."""
        codes = self.shared(part, metric)
        fields = [self.field(row, part, code, metric) for code in codes]
        if len(codes) < 2 or any(one is None or one.mark for one in fields):
            return None
        values = [one.values for one in fields if one is not None]
        seeds = [seed for seed in values[0] if all(seed in own for own in values)]
        return Field({seed: float(np.mean([own[seed] for own in values])) for seed in seeds}) if seeds else None

    def best(self, part: str, metric: Metric, code: str | None) -> set[str]:
        """The names of the rows with the best figure of a language (None: mean over the shared ones); empty where
        fewer than two can be compared, or neither end of the metric is better."""
        found = {}
        for row in self.rows:
            one = self.field(row, part, code, metric) if code else self.mean(row, part, metric)
            if one is not None and not one.mark:
                found[row.name] = metric.better * one.mean
        if not metric.better or len(found) < 2:
            return set()
        return {name for name, value in found.items() if isclose(value, max(found.values()), rel_tol=ROUNDING)}


def compare_runs(
    runs: Sequence[Run], metrics: Sequence[str] = (), over: str | None = None, grouping: str = BY_SEED
) -> RunsTable:
    """Set runs of one task side by side.

    Args:
        metrics: keys of the figures; empty: the task's main ones.
        over: name of the run whose row the others' leads are taken over; default: the first run.
        grouping: `BY_SEED`, `BY_LANGUAGES` or `BY_RUN`, see `group_runs`.

    Raises:
        InputError: runs of several tasks; a figure that no run has; figures that were computed by different rules;
            predictions that are damaged.
    """
    task = require_one_task(list(runs))
    rows, warnings = group_runs(runs, grouping)
    reference = next(row for row in rows if any(run.name == (over or runs[0].name) for run in row.runs))
    scopes = tuple(dict.fromkeys(scope for run in runs for scope in run.scopes))
    chosen, left_out = _chosen(task, runs, metrics)
    chosen, signatures, apart = _with_equal_rules(runs, chosen, scopes, bool(metrics))
    notes = _Footnotes()
    fields = {
        (row.name, scope, metric.key): one
        for metric in chosen
        for scope in scopes
        for row, one in _fields(rows, reference, scope, metric, notes)
    }
    leads, untold = all_leads(rows, reference, scopes)
    return RunsTable(
        task,
        tuple(rows),
        reference,
        tuple(chosen),
        scopes,
        fields,
        tuple(leads),
        notes.texts(),
        tuple(dict.fromkeys([*warnings, *left_out, *apart, *untold])),
        signatures,
    )


def _chosen(task: Task, runs: Sequence[Run], keys: Sequence[str]) -> tuple[list[Metric], list[str]]:
    """The metrics to show, and what the runs lack of those asked for."""
    known = dict.fromkeys(
        key for run in runs for found in run.scopes.values() for key, value in found.items() if isinstance(value, float)
    )
    if not keys:
        return [task.metric(key) for key in task.main if key in known], []
    for key in keys:
        if key not in known:
            raise InputError(f"--metrics {key}: no run has it; they have {' '.join(known)}.")
    chosen = [task.metric(key) for key in dict.fromkeys(keys)]
    lacking = {
        metric.title: [run.name for run in runs if not any(metric.key in f for f in run.scopes.values())]
        for metric in chosen
    }
    return chosen, [f"{', '.join(names)}: without {title}." for title, names in lacking.items() if names]


def _with_equal_rules(
    runs: Sequence[Run], metrics: list[Metric], scopes: Sequence[Scope], asked: bool
) -> tuple[list[Metric], dict[Scope, dict[str, str]], list[str]]:
    """The metrics that all runs computed by the same rules, their signatures, and which ones are left out.

    Raises:
        InputError: the rules of one differ that was asked for, or is the main one.
    """
    kept, warnings = [], []
    signatures: dict[Scope, dict[str, str]] = {scope: {} for scope in scopes}
    for metric in metrics:
        found = {scope: _signatures(runs, scope, metric) for scope in scopes}
        told = next(filter(None, (_differing(of, scope) for scope, of in found.items())), "")
        if told and metric.signature != RANKING:
            if asked or metric.signature in (ROUGE, ""):
                raise InputError(f"{metric.title}: {told}; test one of them again by the other's rules.")
            warnings.append(f"{metric.title}: left out, {told}.")
            continue
        kept.append(metric)
        warnings += [line for scope, of in found.items() for line in _fewer(of, scope)]
        for scope, of in found.items():
            if any(of.values()):
                signatures[scope][metric.key] = next(filter(None, of.values()))
    return kept, signatures, warnings


def _signatures(runs: Sequence[Run], scope: Scope, metric: Metric) -> dict[str, str]:
    """Name of a run -> how it computed a figure."""
    own = [run for run in runs if run.scopes.get(scope, {}).get(metric.key) is not None]
    return {run.name: run.task.signature(run.record, scope, metric) for run in own}


def _differing(found: dict[str, str], scope: Scope) -> str:
    """Two runs with other rules, in words, or ""."""
    for (one, first), (other, second) in combinations(found.items(), 2):
        if first and second and rules_of(first)[0] != rules_of(second)[0]:
            where = " ".join(filter(None, scope))
            return f"{one} and {other} computed it by different rules in {where} ({first} against {second})"
    return ""


def _fewer(found: dict[str, str], scope: Scope) -> list[str]:
    """Which runs gave no message as many suggestions as others: their best of fewer is compared."""
    given = {name: most for name, signature in found.items() if (most := rules_of(signature)[1])}
    most = max(given.values(), default=0)
    where = " ".join(filter(None, scope))
    return [
        f"{name}: at most {own} of {most} suggestions a message in {where}."
        for name, own in given.items()
        if own < most
    ]


class _Footnotes:
    """Marks of figures that are not compared, one for each reason and reference."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], dict[str, list[str]]] = {}  # (reason, reference) -> row -> languages

    def mark(self, reason: str, row: Row, reference: Row, scope: Scope) -> str:
        """The mark of one figure."""
        key = reason, reference.name
        codes = self._found.setdefault(key, {}).setdefault(row.name, [])
        name = " ".join(filter(None, scope))
        codes += [name] if name not in codes else []
        return MARKS[list(self._found).index(key) % len(MARKS)]

    def texts(self) -> dict[str, str]:
        """Mark -> sentence."""
        found = {}
        for mark, ((reason, reference), rows) in zip(MARKS, self._found.items(), strict=False):
            where = "; ".join(f"{name} ({', '.join(codes)})" for name, codes in rows.items())
            found[mark] = TOLD[reason].format(reference=reference, where=where)
        return found


def _fields(
    rows: Sequence[Row], over: Row, scope: Scope, metric: Metric, notes: _Footnotes
) -> Iterator[tuple[Row, Field]]:
    """The figures of a language: those that cannot be compared with the reference's are marked. The reference is the
    row that leads are taken over, or the first that has the figure."""
    found = {row.name: _field(row, scope, metric) for row in rows}
    having = [row for row in rows if found[row.name] is not None]
    if not having:
        return
    reference = over if over in having else having[0]
    for row in having:
        own = found[row.name]
        assert own is not None
        first = reference.tested(scope)[0]
        reasons = (unlike(run, first, scope, metric.signature) for run in row.tested(scope))
        reason = next(filter(None, reasons), "")
        mark = notes.mark(reason, row, reference, scope) if reason else ""
        yield row, Field(own.values, own.intervals, mark)


def _field(row: Row, scope: Scope, metric: Metric) -> Field | None:
    """A figure of the runs of a row; None where one lacks it."""
    values, intervals = {}, {}
    for run in row.tested(scope):
        figures = run.scopes.get(scope, {})
        if figures.get(metric.key) is None:
            return None
        values[run.seed] = float(figures[metric.key])
        if metric.interval in figures:
            intervals[run.seed] = list(figures[metric.interval])
    return Field(values, intervals) if values else None
