"""Leads of rows over one of them: paired differences of weighted ROUGE over the same examples, language by language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tqdm import tqdm

from mrs_suggest.evaluation.pairing import Interval, examples_of, paired_interval, scored_run
from mrs_suggest.evaluation.runs.figures import REPLY, WEIGHTED, Run, Scope, without_version
from mrs_suggest.evaluation.runs.grouping import Row
from mrs_suggest.evaluation.runs.same_tests import has_predictions, unlike
from mrs_suggest.evaluation.scores.metrics import repeated_messages

ROUNDING = 1e-9  # a file's mean and its record's: the same sums in the same order, but for JSON's digits


@dataclass(frozen=True)
class Lead:
    """How much higher one row's weighted ROUGE is than another's.

    Attributes:
        row, over: names of the rows.
        difference: of the means over the seeds.
        interval: 95 %, paired over the examples; their scores are averaged over the seeds before, so that the interval
            is for these seeds.
        by_seed: seed -> the interval of the two runs with that seed; empty where both rows have one run alone.
    """

    row: str
    over: str
    scope: Scope
    difference: float
    interval: Interval
    by_seed: dict[str, Interval] = field(default_factory=dict)

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes 0."""
        return self.interval[0] > 0 or self.interval[1] < 0


def all_leads(rows: Sequence[Row], over: Row, scopes: Sequence[Scope]) -> tuple[list[Lead], list[str]]:
    """The leads of all other rows, and why there are none where they could be.

    Raises:
        InputError: a file of predictions is damaged.
    """
    others = [row for row in rows if row is not over]
    if over.runs[0].task.name != REPLY or not others:
        return [], []
    pairs = [(row, scope) for row in others for scope in scopes if row.tested(scope) and over.tested(scope)]
    pairs = [(row, scope) for row, scope in pairs if not unlike(row.tested(scope)[0], over.tested(scope)[0], scope, "")]
    wanted = {(one.name, scope) for row, scope in pairs for one in (row, over)}
    usable, warnings = _usable([over, *others], wanted)
    pairs = [(row, scope) for row, scope in pairs if {(row.name, scope), (over.name, scope)} <= usable]
    warnings += _repeats(over, {scope for _, scope in pairs})
    with tqdm(pairs, desc="leads", unit=" rows", disable=None, leave=False) as bar:
        return [_lead(row, over, scope) for row, scope in bar], warnings


def _repeats(row: Row, scopes: set[Scope]) -> list[str]:
    """The warning that examples of a row's test share messages, as all rows with leads over it were tested on them."""
    folders = {scope: folder for scope in scopes if (folder := row.tested(scope)[0].folder)}
    examples = [examples_of(folder, language) for (_, language), folder in folders.items()]
    distinct = sum(len({message for message, _ in own}) for own in examples)
    return repeated_messages(sum(map(len, examples)), distinct)


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
    noted = str(run.record["metrics"]["signatures"][scope[1]].get("mrs_rouge", ""))
    if noted and without_version(noted) != without_version(scored.signature):
        return f"{run.name}: its suggestions are scored by other rules here ({scored.signature}) than then ({noted})"
    mean = float(scored.weighted.mean())
    if abs(mean - run.scopes[scope][WEIGHTED]) > ROUNDING:
        return f"{run.name}: run.json and the scores of its suggestions differ, so the files are not of one run"
    return ""


def _lead(row: Row, over: Row, scope: Scope) -> Lead:
    mine, theirs = ({run.seed: run.folder for run in one.tested(scope) if run.folder} for one in (row, over))
    interval = paired_interval(list(mine.values()), list(theirs.values()), [scope[1]])
    assert interval is not None
    own, other = (float(np.mean([run.scopes[scope][WEIGHTED] for run in one.tested(scope)])) for one in (row, over))
    both = [seed for seed in mine if seed in theirs] if len(mine) + len(theirs) > 2 else []
    by_seed = {seed: paired_interval([mine[seed]], [theirs[seed]], [scope[1]]) or [] for seed in both}
    return Lead(row.name, over.name, scope, own - other, interval, by_seed)
