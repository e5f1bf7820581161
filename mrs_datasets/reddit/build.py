"""MRS from monthly dumps: the stages in order, resumable at every shard (Zhang et al. 2021, section 2)."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mrs_core import __version__
from mrs_core.errors import InputError
from mrs_core.files import require_replaceable, whole_folder, write_whole
from mrs_core.languages import LANGUAGES
from mrs_datasets.prepare import MARKER
from mrs_datasets.readers import Chunks
from mrs_datasets.reddit.duplicates import (
    EXACT,
    KEPT_CODE,
    NEAR,
    duplicates_shard,
    read_codes,
    signature_file,
)
from mrs_datasets.reddit.language import KEPT, Outcomes, languages_with
from mrs_datasets.reddit.markup import mask
from mrs_datasets.reddit.pair_files import read_pairs
from mrs_datasets.reddit.plan import Plan, work_place
from mrs_datasets.reddit.report_page import funnel_page
from mrs_datasets.reddit.settings import Settings
from mrs_datasets.reddit.shards import month_shard, pair_shard
from mrs_datasets.reddit.split import KEYS, assign_splits
from mrs_datasets.reddit.stages import Shard, run_stage, timed
from mrs_datasets.reddit.survey import COLUMNS, survey
from mrs_datasets.reddit.work_folder import MARKER as WORK_MARKER
from mrs_datasets.reddit.work_folder import WorkFolder, remove_leftovers, remove_work, writing
from mrs_datasets.reddit.workers import Workers
from mrs_datasets.report import Report
from mrs_datasets.schema import MRS, PAIR_SCHEMA, SPLITS, responses_config
from mrs_datasets.writer import write_prepared

MONTHS, PAIRS, DUPLICATES = "months", "pairs", "duplicates"  # stages of shards, and their folders
PAGE = "report.html"
RARE = "language with too few pairs"
LACKING = "language without a split or a response set"
# Settings of the stages; what is in neither is of the months. The last stage is done in one go.
WORK = 2  # what lies in the work folder, and the rules that made it: one more where either changes
OF_PAIRS = ("english_months", "min_language_score", "clean")
OF_WRITING = ("profile", "min_examples", "min_reply_count", "max_responses", "responses_from", "split_by", "buckets")


@dataclass
class Pipeline:
    """What the stages did, for `report.json`: counts that add up, and seconds, which do not repeat."""

    plan: Plan
    settings: Settings
    language_model: dict[str, Any]
    stages: list[dict[str, Any]] = field(default_factory=list)
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    leakage: dict[str, dict[str, int]] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejects: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, came: int, dropped: Mapping[str, int]) -> int:
        """Note a stage; what stays is what came less what was dropped."""
        dropped = {reason: count for reason, count in dropped.items() if count}
        self.stages.append({"stage": stage, "in": came, "out": came - sum(dropped.values()), "dropped": dropped})
        return came - sum(dropped.values())

    def count(self, outcomes: Mapping[tuple[str, str], int]) -> None:
        """Add what became of pairs to the languages' funnels."""
        for (language, outcome), pairs in sorted(outcomes.items()):
            row = self.languages.setdefault(language, {})
            row[outcome] = row.get(outcome, 0) + pairs

    def leave_out(self, language: str, reason: str) -> None:
        """Move what was kept of a language, in its funnel and in the last stage."""
        row, stage = self.languages[language], self.stages[-1]
        pairs = row.pop(KEPT)
        row[reason] = row.get(reason, 0) + pairs
        stage["dropped"][reason] = stage["dropped"].get(reason, 0) + pairs
        stage["out"] -= pairs

    def as_dict(self) -> dict[str, Any]:
        return {
            "dumps": [_name_and_bytes(path) for path in self.plan.files],
            "language_model": self.language_model,
            "profile": self.settings.profile,
            "departures": self.settings.departures(),
            "stages": self.stages,
            "languages": self.languages,
            "leakage": self.leakage,
            "repairs": self.repairs,
            "warnings": self.warnings,
            **({"rejects": self.rejects} if self.rejects else {}),
        }


def build(
    plan: Plan,
    out: Path,
    settings: Settings,
    language_model: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Write the prepared folder `out` and return its report.

    The work lies in `.NAME.build` beside `out` until the data set is whole; a build that was cut off at any moment goes
    on with `resume`, and ends with the same Parquet files as one that was not.

    Raises:
        InputError: an unreadable dump, a wrong language model, a full disk, a killed worker, or nothing left to write;
            what was finished stays for `resume`.
    """
    settings = replace(settings, buckets=plan.buckets)
    out = Path(os.path.realpath(out))  # work lies beside the folder itself, not beside a link to it
    pipeline = Pipeline(plan, settings, _name_and_bytes(language_model))
    place = work_place(out)
    if resume and (report := _whole_already(out, pipeline)):
        if place.is_dir() and ((place / WORK_MARKER).is_file() or not any(place.iterdir())):
            remove_work(place)
        remove_leftovers(out, "partial", "old")
        return report
    require_replaceable(out, overwrite, MARKER)
    work = WorkFolder(place, _identity(plan, settings, pipeline), resume, overwrite, {"pairs": (PAIRS, DUPLICATES)})
    if work.changed:
        say(f"--resume: other {work.changed}; months that are done stay, pairs are made again")
    seconds: dict[str, float] = {}
    with Workers(plan.workers) as workers:
        with timed(seconds, "months"):
            months = _months(work, plan, settings, workers, pipeline)
        for warning in pipeline.warnings:
            say(f"warning: {warning}")
        with timed(seconds, "pairs"):
            found = _pairs(work, plan, settings, language_model, months, workers, pipeline)
        if settings.clean:
            with timed(seconds, "duplicates"):
                _duplicates(work, plan, settings, found, workers, pipeline)
    chosen = _chosen_languages(found, settings, pipeline)
    with timed(seconds, "write"):
        report = _write(work, out, settings, chosen, plan, pipeline, overwrite, say)
    work.remove()
    remove_leftovers(out, "partial", "old")
    say(f"seconds: {', '.join(f'{stage} {spent:,.0f}' for stage, spent in seconds.items())}")
    return report


def _identity(plan: Plan, settings: Settings, pipeline: Pipeline) -> dict[str, Any]:
    """What the work of a build comes from: the months, each of which has a name of its own, and the pairs of them."""
    values = settings.as_dict()
    of_months = {name: value for name, value in values.items() if name not in (*OF_PAIRS, *OF_WRITING)}
    of_pairs = {
        **{name: values[name] for name in OF_PAIRS},
        "dumps": [_name_and_bytes(path) for path in plan.files],
        "language model": list(pipeline.language_model.values()),
    }
    return {"format of the work": WORK, "settings": of_months, "buckets": plan.buckets, "pairs": of_pairs}


def _name_and_bytes(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size}


def _whole_already(out: Path, pipeline: Pipeline) -> dict[str, Any] | None:
    """The report at `out`, where it is of this very build, which was then cut off after its last step."""
    try:
        report: dict[str, Any] = json.loads((out / MARKER).read_text(encoding="utf-8"))
        buckets = report["settings"]["buckets"]  # they make files, and a resumed build keeps them
        now = {**pipeline.as_dict(), "settings": {**pipeline.settings.as_dict(), "buckets": buckets}}
        there = {**report["pipeline"], "settings": report["settings"]}
        same = all(there[key] == now[key] for key in ("dumps", "language_model", "settings"))
        return report if same and report["version"] == __version__ else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


# --- Months: read, filter, partition --------------------------------------------------------------------------------


def _months(work: WorkFolder, plan: Plan, settings: Settings, workers: Workers, pipeline: Pipeline) -> list[Path]:
    folder = work.stage(MONTHS)
    names = [f"{path.name}.{path.stat().st_size}" for path in plan.files]  # fetched again, it is another shard
    targets = [folder / f"{name}.arrow" for name in names]
    shards = [
        Shard(name, path.stat().st_size, target, partial(month_shard, path, target, settings, plan.buckets))
        for name, path, target in zip(names, plan.files, targets, strict=True)
    ]
    counts = run_stage(work, MONTHS, shards, workers, "B", scale=True)
    lines = pipeline.add("read", sum(c["lines"] for c in counts), _summed(c["rejected"] for c in counts))
    comments = sum(c["comments"] for c in counts)
    if lines != comments:
        raise AssertionError(f"{lines} comments were read, {comments} came to the filter")
    pipeline.add("filter", comments, _summed(c["dropped"] for c in counts))
    for path, found in zip(plan.files, counts, strict=True):
        pipeline.warnings += [
            f"{path.name}: frame {frame + 1} is not what was packed (its checksum tells); nothing of it was used."
            for frame in found["altered"]
        ]
        pipeline.warnings += [
            f"{name}: {reason}; what comes before was used." for name, reason in found["truncated"].items()
        ]
        for reason, samples in found["samples"].items():
            kept = pipeline.rejects.setdefault(reason, [])
            kept += map(mask, samples[: settings.keep_rejects - len(kept)])
    return targets


# --- Pairs: join, language, clean -----------------------------------------------------------------------------------


def _pairs(
    work: WorkFolder,
    plan: Plan,
    settings: Settings,
    model: Path,
    months: list[Path],
    workers: Workers,
    pipeline: Pipeline,
) -> Outcomes:
    work.stage(PAIRS)
    shards = [
        Shard(
            target.stem,
            1,
            target,
            partial(pair_shard, months, number, target, settings, model),
            signature_file(target) if settings.clean else None,
        )
        for number, target in enumerate(_pair_files(work, plan.buckets))
    ]
    counts = run_stage(work, PAIRS, shards, workers, " buckets")
    pipeline.add("join", sum(c["comments"] for c in counts), _summed(c["dropped"] for c in counts))
    outcomes: Outcomes = Counter()
    for found in counts:
        for language, outcome, count in found["outcomes"]:
            outcomes[language, outcome] += count
    pipeline.repairs = dict(sorted(_summed(c["repairs"] for c in counts).items()))
    dropped: Counter[str] = Counter()
    for (_, outcome), count in sorted(outcomes.items()):
        dropped[outcome] += count
    del dropped[KEPT]
    pipeline.add("language" + (" and cleaning" if settings.clean else ""), outcomes.total(), dropped)
    return outcomes


def _pair_files(work: WorkFolder, buckets: int) -> list[Path]:
    return [work.folder / PAIRS / f"bucket-{number:05d}.arrow" for number in range(buckets)]


def _kept(outcomes: Outcomes) -> int:
    return sum(count for (_, outcome), count in outcomes.items() if outcome == KEPT)


# --- Languages: duplicates, and which have enough -------------------------------------------------------------------


def _duplicates(
    work: WorkFolder, plan: Plan, settings: Settings, outcomes: Outcomes, workers: Workers, pipeline: Pipeline
) -> None:
    """Find the duplicates of every language that may stay, and move them in the outcomes."""
    folder = work.stage(DUPLICATES)
    buckets = _pair_files(work, plan.buckets)
    languages = languages_with(outcomes, settings.min_examples)
    shards = [
        Shard(language, outcomes[language, KEPT], target, partial(duplicates_shard, buckets, language, target))
        for language in languages
        for target in [folder / f"{language}.npy"]
    ]
    counts = run_stage(work, DUPLICATES, shards, workers, " pairs", scale=True)
    pipeline.add(DUPLICATES, _kept(outcomes), _summed(counts))
    for language, found in zip(languages, counts, strict=True):
        for reason in (EXACT, NEAR):
            outcomes[language, reason] += found[reason]
            outcomes[language, KEPT] -= found[reason]


def _chosen_languages(outcomes: Outcomes, settings: Settings, pipeline: Pipeline) -> list[str]:
    """The languages with enough pairs, in the order of MRS; the pairs of the others are dropped."""
    chosen = [code for code in LANGUAGES if code in languages_with(outcomes, settings.min_examples)]
    came = _kept(outcomes)
    for language in {language for language, outcome in outcomes if outcome == KEPT} - set(chosen):
        outcomes[language, RARE] += outcomes.pop((language, KEPT))
    pipeline.add("enough pairs", came, {RARE: came - _kept(outcomes)})
    pipeline.count({key: count for key, count in outcomes.items() if count})
    if not chosen:
        most = {language: count for (language, outcome), count in outcomes.items() if outcome == RARE}
        found = ", ".join(f"{code} {count:,}" for code, count in sorted(most.items(), key=lambda item: -item[1])[:5])
        raise InputError(
            f"no language has {settings.min_examples:,} pairs ({found or 'none has any'}); lower --min-examples or "
            "pass more months."
        )
    return chosen


# --- Write: split, response sets, Parquet ---------------------------------------------------------------------------


def _write(
    work: WorkFolder,
    out: Path,
    settings: Settings,
    languages: list[str],
    plan: Plan,
    pipeline: Pipeline,
    overwrite: bool,
    say: Callable[[str], None],
) -> dict[str, Any]:
    report = Report("reddit", settings.as_dict())
    remove_leftovers(out, "partial")  # what was replaced stays until there is something in its place
    with whole_folder(out, overwrite, MARKER) as folder, writing(out):
        report.extra["pipeline"] = pipeline.as_dict  # complete once the chunks are written
        chunks = _chunks(work, settings, languages, plan.buckets, pipeline, report, say)
        result = write_prepared(folder, chunks, report, MRS, "the dumps")
        write_whole(folder / PAGE, funnel_page(result))
    return result


def _chunks(
    work: WorkFolder,
    settings: Settings,
    languages: list[str],
    buckets: int,
    pipeline: Pipeline,
    report: Report,
    say: Callable[[str], None],
) -> Chunks:
    """Splits and response set of every language that has all of them; the others are left out and told of.

    Raises:
        InputError: no language has them.
    """
    lacking: list[str] = []
    for language in languages:
        pairs = partial(_kept_pairs, work, settings, language, buckets, dict(pipeline.languages[language]))
        found = survey(pairs(COLUMNS), settings, work.folder / "replies")
        if lack := found.lack(settings):
            lacking.append(f"{language}: {lack}")
            pipeline.leave_out(language, LACKING)
            pipeline.warnings.append(f"{language} was left out: {lack}.")
            say(f"warning: {pipeline.warnings[-1]}")
            continue
        pipeline.leakage[language] = dict(found.leakage)
        for table in pairs(("message", "reply", KEYS[settings.split_by])):
            for split, part in _splits(table, settings.split_by):
                yield language, split, part
        yield responses_config(language), "train", found.responses
    if len(lacking) == len(languages):
        raise InputError(f"{lacking[0]}.")
    report.notes += pipeline.warnings


def _kept_pairs(
    work: WorkFolder,
    settings: Settings,
    language: str,
    buckets: int,
    outcomes: Mapping[str, int],
    columns: Sequence[str],
) -> Iterator[pa.Table]:
    """The pairs of a language that stay, bucket after bucket."""
    kept: pa.BooleanArray | None = None
    if settings.clean:
        pairs = sum(outcomes.get(outcome, 0) for outcome in (KEPT, EXACT, NEAR))
        kept = pa.array(read_codes(work.folder / DUPLICATES / f"{language}.npy", pairs) == KEPT_CODE)
    done = 0
    for path in _pair_files(work, buckets):
        table, _ = read_pairs(path, language, columns)
        done += table.num_rows
        yield table if kept is None else table.filter(kept[done - table.num_rows : done])


def _splits(pairs: pa.Table, by: str) -> Iterator[tuple[str, pa.Table]]:
    split = assign_splits(pairs, by)
    for name in SPLITS:
        part = split.filter(pc.equal(split["split"], name))
        if part.num_rows:
            yield name, part.select(["message", "reply"]).cast(PAIR_SCHEMA)


def _summed(counts: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in counts:
        total.update(part)
    return total
