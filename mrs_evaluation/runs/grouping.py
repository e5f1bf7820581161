"""Rows of a comparison: runs that differ in nothing but their seed are one row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, takewhile
from pathlib import PurePath

from mrs_evaluation.runs.figures import Run
from mrs_evaluation.runs.same_tests import unlike

# Options of a run that change neither its weights nor its figures.
WITHOUT_WEIGHT = {
    "seed", "output_dir", "overwrite", "resume_from_checkpoint", "run_name", "report_to", "project", "logging_dir",
    "logging_strategy", "logging_steps", "logging_first_step", "log_level", "log_level_replica", "disable_tqdm",
    "save_total_limit", "push_to_hub", "hub_model_id", "hub_private_repo", "hub_strategy", "hub_always_push",
    "hub_revision", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id",
}  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One line of the tables.

    Attributes:
        runs: one, or several that differ in their seed alone.
    """

    name: str
    runs: tuple[Run, ...]

    @property
    def label(self) -> str:
        """The name, with the number of seeds where there are several."""
        return f"{self.name} ({len(self.runs)} seeds)" if len(self.runs) > 1 else self.name


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The part of each path that tells it from the others: without the folders that all begin or end with.

    >>> short_names(["out/cells/mt-42/run", "out/cells/mt-43/run"])
    {'out/cells/mt-42/run': 'mt-42', 'out/cells/mt-43/run': 'mt-43'}
    >>> short_names(["build/retriever", "org/model@v1"])
    {'build/retriever': 'build/retriever', 'org/model@v1': 'org/model@v1'}
    """
    parts = [list(PurePath(name).parts) for name in names]
    if len(parts) == 1:
        return {names[0]: parts[0][-1] if parts[0] else names[0]}
    first = _shared(parts)
    last = _shared([part[first:][::-1] for part in parts])
    kept = ["/".join(part[first : len(part) - last]) for part in parts]
    if not all(kept) or len(set(kept)) < len(kept):
        return {name: name for name in names}
    return dict(zip(names, kept, strict=True))


def _shared(parts: Sequence[Sequence[str]]) -> int:
    """How many entries all lists begin with."""
    return sum(1 for _ in takewhile(lambda entries: len(set(entries)) == 1, zip(*parts, strict=False)))


def group_runs(runs: Sequence[Run], by_run: bool) -> tuple[list[Row], list[str]]:
    """The rows in the order of their first runs, and warnings.

    Args:
        by_run: every run is a row.
    """
    if by_run:
        return [Row(run.name, (run,)) for run in runs], []
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_options(run), []).append(run)
    rows: list[tuple[Run, ...]] = []
    warnings: list[str] = []
    for group in groups.values():
        for part in _by_name(group):
            problem = _problem(part)
            rows += [(run,) for run in part] if problem else [tuple(part)]
            warnings += [problem] if problem else _changed(part)
    rows.sort(key=lambda row: runs.index(row[0]))
    return [Row(name, row) for name, row in zip(_row_names(rows), rows, strict=True)], warnings


def _options(run: Run) -> str:
    """All that the record says of how the run was made, but for the seed."""
    record = run.record
    arguments = {key: value for key, value in record.get("arguments", {}).items() if key not in WITHOUT_WEIGHT}
    keys = ("trainer", "data", "plan", "started_from")
    own = {"arguments": arguments, "scopes": [*map(list, run.task.scopes(record))]}
    return json.dumps({**{key: record.get(key) for key in keys}, **own}, sort_keys=True, default=str)


def _by_name(group: list[Run]) -> Iterator[list[Run]]:
    """A group whose seeds differ; one where a seed repeats is divided by the runs' names without the seed, since a
    record leaves out the folders above local paths."""
    if len({run.seed for run in group}) == len(group):
        yield group
        return
    parts: dict[str, list[Run]] = {}
    for run in group:
        parts.setdefault(without_seed(run.name, run.seed), []).append(run)
    yield from parts.values()


def _problem(group: list[Run]) -> str:
    """Why runs of the same options are not one row."""
    names = ", ".join(run.name for run in group)
    seeds = [run.seed for run in group]
    repeated = next((seed for seed in seeds if seeds.count(seed) > 1), None)
    if repeated is not None:
        return f"{names}: the same options and, more than once, the seed {repeated}; each is a row of its own."
    for one, other in combinations(group, 2):
        for scope in one.task.scopes(one.record):
            if unlike(one, other, scope, ""):
                return (
                    f"{names}: differ in the seed alone, and were tested on other rows of {scope[1]}; each is a row of "
                    "its own."
                )
    return ""


def _changed(group: list[Run]) -> list[str]:
    """What the record of one row's runs tells apart besides options."""
    commits = sorted({str(run.record.get("commit")) for run in group})
    names = ", ".join(run.name for run in group)
    return [f"{names}: one row of runs of different commits ({', '.join(commits)})."] if commits[1:] else []


def without_seed(name: str, seed: str) -> str:
    """A run's name without its seed.

    >>> [without_seed(name, "42") for name in ("mt-42", "seed_42/run", "42", "mt-420")]
    ['mt', 'run', '42', 'mt-420']
    """
    found = re.sub(rf"(^|[-_./])(?:seed[-_.]?)?{re.escape(seed)}(?=$|[-_./])", "", name) if seed else name
    return found.strip("-_./") or name


def _row_names(rows: Sequence[tuple[Run, ...]]) -> list[str]:
    """The name that the runs of a row share without their seeds; a row of one run keeps that run's."""
    names = []
    for row in rows:
        shared = {without_seed(run.name, run.seed) for run in row}
        names.append(row[0].name if row[1:] == () else shared.pop() if len(shared) == 1 else row[0].name)
    return [name if names.count(name) == 1 else row[0].name for name, row in zip(names, rows, strict=True)]
