"""Systems beside each other: whether they may be compared, their order and groups, their tests, and saved scores."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_core.errors import InputError
from mrs_core.metric_errors import metric_errors
from mrs_evaluation.score_tables import ScoredSystem
from mrs_evaluation.scoring import Metric

ALPHA = 0.05  # as in Table 3 of STAPLE (Mayhew et al. 2020)
SAMPLES = 100_000  # of the permutation test, as there


def name_systems(systems: Sequence[ScoredSystem], paths: Sequence[Path]) -> None:
    """Call systems by their files' names, or by the paths where two names are alike."""
    names = [path.name for path in paths]
    distinct = len(set(names)) == len(names)
    for system, path in zip(systems, paths, strict=True):
        system.system = path.name if distinct else str(path)


def why_not_comparable(systems: Sequence[ScoredSystem]) -> str:
    """Why the figures of systems cannot be compared; "" where they can."""
    first = systems[0]
    for other in systems[1:]:
        for key in first.record:
            if key.endswith("signature") and first.record[key] != other.record.get(key, first.record[key]):
                alike = " and ".join(sorted((first.record[key], other.record[key])))
                return f"the scores were not computed alike: {alike}"
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


def rank_systems(systems: list[ScoredSystem], metric: Metric, correct: bool) -> list[str]:
    """Order systems, best first, and give each the rank of its group where the metric has per-example scores.

    Args:
        correct: hold the p-values against .05 after Holm's correction.

    Returns:
        What to say of it. Systems that cannot be compared stay as they are.
    """
    from mrs_metrics.significance import rank_groups

    reason = why_not_comparable(systems)
    if reason:
        return [f"not ordered: {reason}"]
    if not all(len(system.values) for system in systems):
        systems.sort(key=lambda system: system.record[metric.main], reverse=metric.higher_is_better)
        return []
    columns = common_values(systems)
    with metric_errors("the systems"):
        groups = rank_groups(
            {str(place): column for place, column in enumerate(columns)},
            alpha=ALPHA, samples=SAMPLES, higher_is_better=metric.higher_is_better, correct=correct,
        )  # fmt: skip
    for place, rank in groups.items():
        systems[int(place)].rank = rank
    notes = []
    if any(len(columns[0]) < system.record["n"] for system in systems):
        for system, column in zip(systems, columns, strict=True):
            system.record["common"] = {"n": len(column), metric.main: _mean(column)}
        means = ", ".join(f"{system.system} {system.record['common'][metric.main]:.4f}" for system in systems)
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


def compare_neighbours(systems: list[ScoredSystem], metric: Metric, correct: bool) -> list[dict[str, Any]]:
    """Order systems by their means, whose records they get, and test every two that stand next to each other.

    Raises:
        InputError: they cannot be compared.
    """
    from mrs_metrics.significance import bootstrap_interval, holm, paired_bootstrap_interval, permutation_test

    reason = why_not_comparable(systems)
    if reason:
        raise InputError(f"--compare: {reason}.")
    columns = {id(system): column for system, column in zip(systems, common_values(systems), strict=True)}
    tests: list[dict[str, Any]] = []
    with metric_errors(" and ".join(system.system for system in systems)):
        for system in systems:
            column = columns[id(system)]
            interval = list(bootstrap_interval(column))
            system.record |= {metric.main: _mean(column), "n": len(column), "interval": interval}
        systems.sort(key=lambda system: system.record[metric.main], reverse=metric.higher_is_better)
        for first, second in itertools.pairwise(systems):
            a, b = columns[id(first)], columns[id(second)]
            tests.append(
                {
                    "a": first.system,
                    "b": second.system,
                    "difference": first.record[metric.main] - second.record[metric.main],
                    "interval": list(paired_bootstrap_interval(a, b)),
                    "p": permutation_test(a, b, samples=SAMPLES),
                }
            )
    if correct:
        for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
            test["p_holm"] = corrected
    return tests


def _mean(column: Sequence[float]) -> float:
    return math.fsum(column) / len(column)


def save_values(path: Path, name: str, system: ScoredSystem) -> None:
    """Write the per-example scores of a system, for `--compare` on another day or machine."""
    from mrs_core.files import atomic_write

    content = {"metric": name, "signature": system.record["signature"], "system": system.system}
    content["examples"] = system.digest  # no text of theirs
    values = [None if value != value else value for value in system.values]
    atomic_write(path, json.dumps({**content, "scores": values}) + "\n")


def read_values(path: Path, name: str) -> ScoredSystem:
    """A system whose signature and per-example scores `save_values` wrote; nan for an example that was skipped.

    Raises:
        InputError: the file is missing, or not of that kind or metric.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = [float("nan") if value is None else float(value) for value in content["scores"]]
        metric, signature, digest = (str(content[key]) for key in ("metric", "signature", "examples"))
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not scores that `mrs score --save-scores` wrote.") from None
    if metric != name:
        raise InputError(f"{path}: holds scores of {metric}, not of {name}; pass --metric {metric}.")
    return ScoredSystem(str(path), {"signature": signature}, values, digest=digest)
