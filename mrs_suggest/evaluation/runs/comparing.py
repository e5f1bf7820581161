"""Runs side by side: a field for each row, language and metric, means over shared languages, leads over one row."""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isclose
from typing import Any

import numpy as np
from tqdm import tqdm

from mrs_metrics.corpus import unpaired_test
from mrs_metrics.interval import Interval
from mrs_metrics.significance import holm
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import MESSAGE
from mrs_suggest.evaluation.pairing import paired_interval, scored_run
from mrs_suggest.evaluation.runs.figures import (
    COSTS,
    PERPLEXITY,
    RANKING,
    REPLY,
    ROUGE,
    WEIGHTED,
    Metric,
    Run,
    Scope,
    Task,
    in_words,
    rules_of,
    shared_task,
    without_version,
)
from mrs_suggest.evaluation.runs.grouping import (
    BY_SEED,
    OTHER_POOLS,
    OTHER_ROWS,
    UNKNOWN,
    Row,
    group_runs,
    has_predictions,
    unlike,
)

ROUNDING = 1e-9  # equal figures may differ by this: sums in another order, JSON's digits
MARKS = "abcdefghijklmnopqrstuvwxyz"
TOLD = {
    OTHER_ROWS: "tested on different rows than {reference}: {where}; not compared with it",
    UNKNOWN: "run.json does not show whether it was tested on the same rows as {reference}: {where}; not compared",
    OTHER_POOLS: "ranked in different pools than {reference} (seed, size, replies): {where}; not compared with it",
}
# (why figures are not compared, with which row) -> row -> languages, as the keys of a dictionary
Reasons = dict[tuple[str, str], dict[str, dict[str, None]]]


@dataclass(frozen=True)
class Field:
    """A figure of one row in one language.

    Attributes:
        values: seed -> figure.
        intervals: seed -> its 95 % interval over the test examples, where the run has one.
        mark: of the footnote that says why it is not compared; "" where it is.
    """

    values: dict[str, float]
    intervals: dict[str, list[float] | None] = field(default_factory=dict)
    mark: str = ""

    @property
    def mean(self) -> float:
        return float(np.mean(list(self.values.values())))

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation over the seeds; None of one."""
        return float(np.std(list(self.values.values()), ddof=1)) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Lead:
    """How much higher one row's weighted ROUGE is than another's, or in one language than in another (`over`).

    Attributes:
        difference: of the means over the seeds.
        interval: 95 %, paired over the examples; their scores are averaged over the seeds before, so that the interval
            is for these seeds.
        by_seed: seed -> the interval of the two runs with that seed; empty where both rows have one run alone.
        detectable: the smallest difference that these examples show with 80 % power; None where no score differs.
        p, p_holm: of two languages: of the unpaired test, and corrected over the languages of the row.
    """

    row: str
    over: str
    scope: Scope
    difference: float
    interval: Interval
    by_seed: dict[str, Interval] = field(default_factory=dict)
    detectable: float | None = None
    p: float = 1.0
    p_holm: float | None = None


@dataclass(frozen=True)
class RunsTable:
    """A comparison.

    Attributes:
        scopes: parts and languages that one row or more was tested in, in the order of the runs.
        fields: (name of the row, scope, key of the metric) -> figure; only what was measured.
        footnotes: mark -> why figures with it are not compared.
        warnings: sentences.
        signatures: scope -> key of a metric -> how it was computed.
        unit: what the intervals of leads resample.
        wins: how often a judge prefers a `row` to the one that leads are taken over, of `n` messages; ties are half.
        judge: its usage, and its signatures.
        gaps: differences of languages, where a language was requested.
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
    unit: str
    wins: tuple[dict[str, Any], ...] = ()
    judge: tuple[str, ...] = ()
    gaps: tuple[Lead, ...] = ()

    @property
    def parts(self) -> list[str]:
        return list(dict.fromkeys(part for part, _ in self.scopes))

    def field(self, row: Row, part: str, code: str, metric: Metric) -> Field | None:
        return self.fields.get((row.name, (part, code), metric.key))

    def languages(self, part: str, metric: Metric | None = None) -> list[str]:
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
    runs: Sequence[Run],
    metrics: Sequence[str] = (),
    over: str | None = None,
    grouping: str = BY_SEED,
    unit: str = MESSAGE,
) -> RunsTable:
    """Set runs of one task side by side.

    Args:
        metrics: keys of the figures; empty: the task's main ones.
        over: name of the run whose row the others' leads are taken over; default: the first run.
        unit: what the intervals of leads resample, a column of the data.
        grouping: `BY_SEED`, `BY_LANGUAGES` or `BY_RUN`, see `group_runs`.

    Raises:
        InputError: runs of several tasks; a figure that no run has; figures that were computed by different rules;
            predictions that are damaged.
    """
    task = shared_task(runs)
    rows, warnings = group_runs(runs, grouping)
    reference = next(row for row in rows if any(run.name == (over or runs[0].name) for run in row.runs))
    scopes = tuple(dict.fromkeys(scope for run in runs for scope in run.scopes))
    chosen, left_out = _chosen(task, runs, metrics)
    chosen, signatures, apart = _with_equal_rules(runs, chosen, scopes, bool(metrics))
    reasons: Reasons = {}
    fields = {
        (row.name, scope, metric.key): one
        for metric in chosen
        for scope in scopes
        for row, one in _fields(rows, reference, scope, metric, reasons)
    }
    leads, untold = _all_leads(rows, reference, scopes, unit)
    compared = task, tuple(rows), reference, tuple(chosen), scopes, fields, tuple(leads)
    told = _footnotes(reasons), tuple(dict.fromkeys([*warnings, *left_out, *apart, *untold]))
    return RunsTable(*compared, *told, signatures, unit)


def _chosen(task: Task, runs: Sequence[Run], keys: Sequence[str]) -> tuple[list[Metric], list[str]]:
    """The metrics to show, and those requested that the runs lack."""
    known = dict.fromkeys(
        key for run in runs for found in run.scopes.values() for key, value in found.items() if isinstance(value, float)
    )
    if not keys:
        main = task.main or [metric.key for metric in task.metrics]
        known = {key: None for key in known if key not in COSTS or any("answered" in run.record for run in runs)}
        return [task.metric(key) for key in main if key in known], []
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
    """The metrics that all runs computed by the same rules, their signatures, and which ones are left out."""
    kept, warnings = [], []
    signatures: dict[Scope, dict[str, str]] = {scope: {} for scope in scopes}
    for metric in metrics:
        found = {  # scope -> name of a run -> how it computed the figure
            scope: {
                run.name: str(run.signatures[scope].get(metric.signature, ""))
                for run in runs
                if run.scopes.get(scope, {}).get(metric.key) is not None
            }
            for scope in scopes
        }
        told = next(filter(None, (_differing(of, scope) for scope, of in found.items())), "")
        if told and metric.signature != RANKING:
            if asked or metric.signature in (ROUGE, "", PERPLEXITY.signature):
                raise InputError(f"{metric.title}: {told}; test one of them again by the other's rules.")
            warnings.append(f"{metric.title}: left out, {told}.")
            continue
        kept.append(metric)
        warnings += [line for scope, of in found.items() for line in _fewer(of, scope)]
        for scope, of in found.items():
            if any(of.values()):
                signatures[scope][metric.key] = next(filter(None, of.values()))
    return kept, signatures, warnings


def _differing(found: dict[str, str], scope: Scope) -> str:
    """Two runs with other rules, in words, or ""."""
    for (one, first), (other, second) in combinations(found.items(), 2):
        if first and second and rules_of(first)[0] != rules_of(second)[0]:
            both = f"({first} against {second})"
            return f"{one} and {other} computed it by different rules in {in_words(scope)} {both}"
    return ""


def _fewer(found: dict[str, str], scope: Scope) -> list[str]:
    """Which runs gave no message as many suggestions as others: their best of fewer is compared."""
    given = {name: most for name, signature in found.items() if (most := rules_of(signature)[1])}
    most = max(given.values(), default=0)
    return [
        f"{name}: at most {own} of {most} suggestions a message in {in_words(scope)}."
        for name, own in given.items()
        if own < most
    ]


def _fields(
    rows: Sequence[Row], over: Row, scope: Scope, metric: Metric, reasons: Reasons
) -> Iterator[tuple[Row, Field]]:
    """The figures of a language: those that cannot be compared with the reference's are marked. The reference is the
    row that leads are taken over, or the first that has the figure."""
    having = {row: found for row in rows if (found := _field(row, scope, metric))}
    reference = over if over in having else next(iter(having), over)
    for row, found in having.items():
        first = reference.tested(scope)[0]
        reason = next(filter(None, (unlike(run, first, scope, metric.signature) for run in row.tested(scope))), "")
        if reason:
            reasons.setdefault((reason, reference.name), {}).setdefault(row.name, {})[in_words(scope)] = None
            found = replace(found, mark=MARKS[list(reasons).index((reason, reference.name)) % len(MARKS)])
        yield row, found


def _footnotes(reasons: Reasons) -> dict[str, str]:
    """Mark -> why figures with it are not compared."""
    found = {}
    for mark, ((reason, reference), rows) in zip(MARKS, reasons.items(), strict=False):
        where = "; ".join(f"{name} ({', '.join(codes)})" for name, codes in rows.items())
        found[mark] = TOLD[reason].format(reference=reference, where=where)
    return found


def _field(row: Row, scope: Scope, metric: Metric) -> Field | None:
    """A figure of the runs of a row; None if one lacks it."""
    values, intervals = {}, {}
    for run in row.tested(scope):
        figures = run.scopes[scope]
        if figures.get(metric.key) is None:
            return None
        values[run.seed] = float(figures[metric.key])
        if metric.interval in figures:
            intervals[run.seed] = figures[metric.interval]
    return Field(values, intervals) if values else None


# --- Leads: paired differences of weighted ROUGE over the same examples, language by language


def _all_leads(rows: Sequence[Row], over: Row, scopes: Sequence[Scope], unit: str) -> tuple[list[Lead], list[str]]:
    """The leads of all other rows, and why some are missing; InputError if a file of predictions is damaged."""
    others = [row for row in rows if row is not over]
    if over.runs[0].task.name != REPLY or not others:
        return [], []
    pairs = [(row, scope) for row in others for scope in scopes if row.tested(scope) and over.tested(scope)]
    pairs = [(row, scope) for row, scope in pairs if not unlike(row.tested(scope)[0], over.tested(scope)[0], scope, "")]
    wanted = {(one.name, scope) for row, scope in pairs for one in (row, over)}
    usable, warnings = _usable([over, *others], wanted)
    pairs = [(row, scope) for row, scope in pairs if {(row.name, scope), (over.name, scope)} <= usable]
    with tqdm(pairs, desc="leads", unit=" rows", disable=None, leave=False) as bar:
        return [_lead(row, over, scope, unit) for row, scope in bar], warnings


def _usable(rows: Sequence[Row], wanted: set[tuple[str, Scope]]) -> tuple[set[tuple[str, Scope]], list[str]]:
    """(row, scope) whose suggestions are there and score what the records say; and what is wrong with the others."""
    usable: set[tuple[str, Scope]] = set()
    problems: dict[str, list[str]] = {}
    for row in rows:
        for scope in dict.fromkeys(scope for name, scope in sorted(wanted) if name == row.name):
            found = [problem for run in row.tested(scope) if (problem := _problem(run, scope))]
            usable |= set() if found else {(row.name, scope)}
            for problem in found:
                problems.setdefault(problem, []).append(scope[1])
    return usable, [f"{problem} ({' '.join(codes)}); no lead there." for problem, codes in problems.items()]


def _problem(run: Run, scope: Scope) -> str:
    if not has_predictions(run, scope):
        return f"{run.name}: " + ("the record alone is there" if run.folder is None else "suggestions are missing")
    assert run.folder is not None
    scored = scored_run(run.folder, scope[1])
    noted = str(run.signatures[scope].get(ROUGE, ""))
    if noted and without_version(noted) != without_version(scored.signature):
        return f"{run.name}: its suggestions are scored by other rules here ({scored.signature}) than then ({noted})"
    mean = float(scored.weighted.mean())
    if abs(mean - run.scopes[scope][WEIGHTED]) > ROUNDING:
        return f"{run.name}: run.json and the scores of its suggestions differ, so the files are not of one run"
    return ""


def _lead(row: Row, over: Row, scope: Scope, unit: str) -> Lead:
    mine, theirs = ({run.seed: run.folder for run in one.tested(scope) if run.folder} for one in (row, over))
    paired = paired_interval(list(mine.values()), list(theirs.values()), [scope[1]], unit)
    assert paired is not None
    own, other = (float(np.mean([run.scopes[scope][WEIGHTED] for run in one.tested(scope)])) for one in (row, over))
    both = [seed for seed in mine if seed in theirs] if len(mine) + len(theirs) > 2 else []
    pairs = {seed: paired_interval([mine[seed]], [theirs[seed]], [scope[1]], unit) for seed in both}
    by_seed = {seed: one[0] if one else Interval() for seed, one in pairs.items()}
    return Lead(row.name, over.name, scope, own - other, paired[0], by_seed, paired[1])


def with_gaps(table: RunsTable, code: str) -> RunsTable:
    """The comparison with the gap of every language to one of them; InputError if no row has suggestions in both."""
    wanted = {(row.name, scope) for row in table.rows for scope in table.scopes if row.tested(scope)}
    usable, warnings = _usable(table.rows, wanted) if table.task.name == REPLY else (set[tuple[str, Scope]](), [])
    gaps: list[Lead] = []
    for row in table.rows:
        scored = {scope: _averaged(row, scope, table.unit) for scope in table.scopes if (row.name, scope) in usable}
        found = []
        for scope, (own, units) in scored.items():
            if scope[1] != code and (other := scored.get((scope[0], code))):
                interval, p = unpaired_test(own, other[0], units, other[1])
                found.append(Lead(row.name, code, scope, float(own.mean() - other[0].mean()), interval, p=p))
        corrected = holm([gap.p for gap in found])
        gaps += [replace(gap, p_holm=p) for gap, p in zip(found, corrected, strict=True)]
    if not gaps:
        raise InputError(
            f"--gaps {code}: no run has suggestions in {code} and another language; pass the folder of one."
        )
    return replace(table, gaps=tuple(gaps), warnings=tuple(dict.fromkeys((*table.warnings, *warnings))))


def _averaged(row: Row, scope: Scope, unit: str) -> tuple[np.ndarray, list[Hashable]]:
    """The scores of a row's examples in a language, averaged over its runs, and their units."""
    runs = [scored_run(run.folder, scope[1], unit) for run in row.tested(scope) if run.folder]
    return np.mean([run.weighted for run in runs], axis=0), runs[0].units
