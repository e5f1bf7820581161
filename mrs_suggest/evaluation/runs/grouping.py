"""Rows of a comparison: runs that differ in nothing but their seed are one row."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations, takewhile
from pathlib import PurePath

from mrs_suggest.common.text.predictions import predictions_name
from mrs_suggest.evaluation.pairing import examples_of
from mrs_suggest.evaluation.runs.figures import RANKING, REPLY, Record, Run, Scope, without_version

OTHER_ROWS, UNKNOWN, OTHER_POOLS = "other rows", "unknown", "other pools"  # why figures are not comparable
BY_SEED, BY_LANGUAGES, BY_RUN = "seed", "languages", "run"  # what the runs of a row may differ in
# Options that choose languages: those of runs that are joined may differ.
OF_LANGUAGES = {"languages", "train", "validation"}
# Options of a run that change neither its weights nor its figures.
WITHOUT_WEIGHT = {
    "seed", "output_dir", "overwrite", "resume_from_checkpoint", "run_name", "report_to", "project", "logging_dir",
    "logging_strategy", "logging_steps", "logging_first_step", "log_level", "log_level_replica", "disable_tqdm",
    "save_total_limit", "push_to_hub", "hub_model_id", "hub_private_repo", "hub_strategy", "hub_always_push",
    "hub_revision", "trackio_space_id", "trackio_bucket_id", "trackio_static_space_id",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row:
    """One line of the tables.

    Attributes:
        runs: one, or several that differ in their seeds, perhaps also in their languages; no two have both in common.
    """

    name: str
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> list[str]:
        """Of its runs, each once."""
        return list(dict.fromkeys(run.seed for run in self.runs))

    def tested(self, scope: Scope) -> list[Run]:
        """Its runs that were tested in a part and language, one for each seed."""
        return [run for run in self.runs if scope in run.scopes]

    @property
    def label(self) -> str:
        """The name, with the number of seeds where there are several."""
        return f"{self.name} ({len(self.seeds)} seeds)" if len(self.seeds) > 1 else self.name


def short_names(names: Sequence[str]) -> dict[str, str]:
    """The end of each path that distinguishes it from the others, without the folders that all of them end with.

    >>> short_names(["out/cells/mt-42/run", "out/cells/mt-43/run"])
    {'out/cells/mt-42/run': 'mt-42', 'out/cells/mt-43/run': 'mt-43'}
    >>> short_names(["/build/a/run", "org/model@v1"])
    {'/build/a/run': 'run', 'org/model@v1': 'model@v1'}
    """
    parts = [PurePath(name).parts or (name,) for name in names]
    if len(parts) > 1:
        ends = takewhile(lambda entries: len(set(entries)) == 1, zip(*(part[::-1] for part in parts), strict=False))
        same = sum(1 for _ in ends)
        parts = [part[: len(part) - same] for part in parts] if all(len(part) > same for part in parts) else parts
    for length in range(1, max(map(len, parts)) + 1):
        kept = [str(PurePath(*part[-length:])) for part in parts]
        if len(set(kept)) == len(kept):
            return dict(zip(names, kept, strict=True))
    return {name: name for name in names}


def group_runs(runs: Sequence[Run], grouping: str = BY_SEED) -> tuple[list[Row], list[str]]:
    """The rows in the order of their first runs, and warnings.

    Args:
        grouping: `BY_SEED`: runs that differ in nothing but their seed are a row; `BY_LANGUAGES`: those that differ in
            their languages, too; `BY_RUN`: every run is a row.
    """
    if grouping == BY_RUN:
        return [Row(run.name, (run,)) for run in runs], []
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(_options(run, grouping == BY_LANGUAGES), []).append(run)
    rows: list[tuple[Run, ...]] = []
    warnings: list[str] = []
    for group in groups.values():
        for part in _by_name(group):
            problem = _problem(part)
            rows += [(run,) for run in part] if problem else [tuple(part)]
            warnings += [problem] if problem else _changed(part)
    rows.sort(key=lambda row: runs.index(row[0]))
    return [Row(name, row) for name, row in zip(_row_names(rows), rows, strict=True)], warnings


def _options(run: Run, any_language: bool) -> str:
    """Everything in the record about how the run was made, except for the seed and optionally the languages."""
    record = run.record
    left_out = WITHOUT_WEIGHT | (OF_LANGUAGES if any_language else set())
    arguments = {key: value for key, value in record.get("arguments", {}).items() if key not in left_out}
    kept = {key: record.get(key) for key in ("trainer", "started_from")} | {"arguments": arguments}
    data, plan = record.get("data", {}), record.get("plan")
    if any_language:  # hashes are of the configs that a run read
        kept |= {"data": data.get("id"), "revision": data.get("revision"), "setting": (plan or {}).get("setting")}
    else:
        kept |= {"data": data, "plan": plan, "scopes": [*map(list, run.scopes)]}
    return json.dumps(kept, sort_keys=True, default=str)


def _by_name(group: list[Run]) -> Iterator[list[Run]]:
    """A group whose seeds differ; one where a seed repeats is divided by the runs' names without the seed, since a
    record leaves out the folders above local paths."""
    if not _overlap(group):
        yield group
        return
    parts: dict[str, list[Run]] = {}
    for run in group:
        parts.setdefault(without_seed(run.name, run.seed), []).append(run)
    yield from parts.values()


def _problem(group: list[Run]) -> str:
    """Why runs of the same options are not one row."""
    names = ", ".join(run.name for run in group)
    if (repeated := _overlap(group)) is not None:
        return f"{names}: the same options and, more than once, the seed {repeated}; each is a separate row."
    for one, other in combinations(group, 2):
        for scope in _both(one, other):
            if unlike(one, other, scope, ""):
                where = f"were tested on different rows of {scope[1]}"
                return f"{names}: differ in the seed alone, and {where}; each is a separate row."
    return ""


def _both(one: Run, other: Run) -> list[Scope]:
    """The parts and languages that both runs were tested in."""
    theirs = other.scopes
    return [scope for scope in one.scopes if scope in theirs]


def _overlap(group: Sequence[Run]) -> str | None:
    """A seed of two runs that were tested in the same language; or None."""
    pairs = combinations(group, 2)
    return next((one.seed for one, other in pairs if one.seed == other.seed and _both(one, other)), None)


def _changed(group: list[Run]) -> list[str]:
    """Differences in the records of one row's runs other than options."""
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
    """The name that the runs of a row share without their seeds and, if these differ, their languages; a row of one run
    keeps that run's."""
    names = []
    for row in rows:
        shared = {without_seed(run.name, run.seed) for run in row}
        if len({tuple(run.scopes) for run in row}) > 1:
            shared = {reduce(without_seed, (run.seed, *(code for _, code in run.scopes)), run.name) for run in row}
        names.append(shared.pop() if len(row) > 1 and len(shared) == 1 else row[0].name)
    return [name if names.count(name) == 1 else row[0].name for name, row in zip(names, rows, strict=True)]


# --- Whether two runs were tested on the same rows of a language, and ranked in the same pools


def unlike(one: Run, other: Run, scope: Scope, metric_signature: str) -> str:
    """Why a figure of two runs cannot be compared; "" if it can.

    Args:
        scope: part and language that both were tested in.
        metric_signature: the metric's name in signatures; rankings must have the same pools, too.
    """
    problem = _other_rows(one, other, scope)
    return problem or ("" if metric_signature != RANKING or _same_pools(one, other, scope) else OTHER_POOLS)


def _other_rows(one: Run, other: Run, scope: Scope) -> str:
    """By the rows themselves where both runs keep them, else by the records."""
    if one is other:
        return ""
    if has_predictions(one, scope) and has_predictions(other, scope):
        assert one.folder
        assert other.folder
        return "" if examples_of(one.folder, scope[1]) == examples_of(other.folder, scope[1]) else OTHER_ROWS
    mine, theirs = (run.scopes[scope] for run in (one, other))
    if any(mine.get(key) != theirs.get(key) for key in ("n", "ceiling")):
        return OTHER_ROWS
    pools = [run.record["metrics"].get("pools", {}).get(scope[1]) for run in (one, other)]
    if pools[0] and pools[0] == pools[1]:  # a hash of the references, too
        return ""
    hashes = [run.record.get("data", {}).get("test_hash") for run in (one, other)]
    if all(hashes) and list(one.scopes) == list(other.scopes):
        return "" if hashes[0] == hashes[1] else OTHER_ROWS
    tested = [_data(run.record) for run in (one, other)]
    return "" if tested[0] is not None and tested[0] == tested[1] else UNKNOWN


def has_predictions(run: Run, scope: Scope) -> bool:
    return run.folder is not None and run.task.name == REPLY and (run.folder / predictions_name(scope[1])).is_file()


def _data(record: Record) -> tuple[object, ...] | None:
    """What names the tested data: a revision or a hash of the contents, and the limit on what was taken of it."""
    data = record.get("data", {})
    data = data.get("test", data)  # of a run that was trained on other data
    name = data.get("revision") or data.get("content_hash")
    return (name, record.get("arguments", {}).get("max_test_examples")) if name else None


def _same_pools(one: Run, other: Run, scope: Scope) -> bool:
    """By the hashes of the pools and the rules of the ranking."""
    signatures = [run.signatures[scope].get(RANKING, "") for run in (one, other)]
    if without_version(signatures[0]) != without_version(signatures[1]):
        return False
    pools = [run.record["metrics"].get("pools", {}).get(scope[1]) for run in (one, other)]
    return bool(pools[0] == pools[1])
