"""MRS from monthly dumps: the stages in order, resumable at every shard (Zhang et al. 2021, section 2)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrs_datasets.builders.passes import PASSES, FolderPass, apply_passes, done_again, identity_of
from mrs_datasets.builders.pipeline.stages import Engine, name_and_bytes, timed
from mrs_datasets.builders.pipeline.work_folder import WorkFolder, remove_finished, remove_leftovers, work_place
from mrs_datasets.builders.pipeline.workers import Workers
from mrs_datasets.builders.reddit.pipeline import Build, Pipeline, Stage, run_stages
from mrs_datasets.builders.reddit.plan import BuildPlan
from mrs_datasets.builders.reddit.read import dump_sha256
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.shard_stages import (
    DUPLICATES,
    FROM_PAIRS,
    MONTHS,
    PAIRS,
    duplicates_shards,
    finish_duplicates,
    finish_months,
    finish_pairs,
    month_shards,
    pair_shards,
    require_complete,
)
from mrs_datasets.builders.reddit.shards.write_stage import write_data_set
from mrs_datasets.prepared.prepare import MARKER
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, is_unfinished, require_free, require_writable, size

WRITTEN = "after-write"  # in the work folder: the data set before the passes
# Settings of the stages; all others belong to the months. The last stage is done in one go.
WORK = 3  # version of the work folder's layout and of the rules: increment it if either changes
OF_THE_PAIRS = "pairs"  # the part of a work folder's identity on which months do not depend
OF_PAIRS = ("english_months", "min_language_score", "clean")
OF_WRITING = ("profile", "min_examples", "min_reply_count", "max_responses", "responses_from", "split_by", "buckets")


def stages_of(settings: Settings) -> list[Stage]:
    """The stages of a build with these settings, in order."""
    stages = [
        Stage(MONTHS, finish_months, month_shards, "B", scale=True),
        Stage(PAIRS, finish_pairs, pair_shards, " buckets"),
    ]
    if settings.clean:
        stages.append(Stage(DUPLICATES, finish_duplicates, duplicates_shards, " pairs", scale=True))
    return [*stages, Stage("write", write_data_set)]


def build(
    plan: BuildPlan,
    out: Location,
    settings: Settings,
    language_model: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    strict: bool = False,
    say: Callable[[str], None] = print,
    engine: Engine | None = None,
    stages: Callable[[Settings], list[Stage]] = stages_of,
    passes: Sequence[FolderPass] = (),
    cache: Path | None = None,
) -> dict[str, Any]:
    """Write the prepared folder `out` and return its report.

    The work is in `.NAME.build` beside `out` until the data set is complete; a build that was interrupted at any moment
    continues with `resume`, and ends with the same Parquet files as an uninterrupted one.

    Args:
        out: a local folder, or a remote one with a scratch folder (`mrs_suggest.common.io.storage.location`).
        strict: stop after reading if a dump could not be read completely; else what could be read is used.
        engine: processes the shards, instead of the plan's number of processes; the files are the same.
        stages: composes the stages from the settings; others must write the same files.
        passes: over the data set once it is split and has its response sets, such as a filter of toxic pairs; they run
            in this process. The files that the last one writes are the data set.
        cache: keeps the passes' answers for later builds; None: they are removed with the work.

    Raises:
        InputError: an unreadable dump, a wrong language model, a full disk, a killed worker, or nothing left to write;
            finished work stays for `resume`.
    """
    settings = replace(settings, buckets=plan.buckets)
    out = _checked_out(out, plan, engine)
    pipeline = Pipeline(plan, settings, name_and_bytes(language_model))
    place = work_place(out)
    if resume and (report := _whole_already(out, pipeline, passes)):
        if strict:
            require_complete({dump["name"]: dump["lossy"] for dump in report["pipeline"]["dumps"] if dump["lossy"]})
        remove_finished(place)
        remove_leftovers(out, "partial", "old")
        return report
    require_free(out, overwrite, MARKER)
    identity = {**_identity(plan, settings, pipeline), **identity_of(passes)}
    work = WorkFolder(place, identity, resume, overwrite, {OF_THE_PAIRS: FROM_PAIRS, **done_again(passes)})
    if not isinstance(out, Path):
        out = replace(out, scratch=work.scratch)
    if work.changed:
        say(f"--resume: other {work.changed}; what depends on it is done again, the rest stays")
    written: Location = work.scratch / WRITTEN if passes else out
    running = Build(plan, settings, language_model, written, overwrite or bool(passes), work, pipeline, say, strict)
    seconds = run_stages(stages(settings), running, engine)
    report = running.report
    if passes:
        with timed(seconds, "passes"):
            data = open_prepared(str(written))
            report = dict(apply_passes(data, passes, out, work, cache, overwrite))
    work.remove()
    remove_leftovers(out, "partial", "old")
    say(f"seconds: {', '.join(f'{stage} {spent:,.0f}' for stage, spent in seconds.items())}")
    return report


def build_months(
    plan: BuildPlan,
    out: Location,
    settings: Settings,
    language_model: Path,
    *,
    strict: bool = False,
    say: Callable[[str], None] = print,
    engine: Engine | None = None,
) -> Location:
    """Do the stage `months` of the plan's dumps alone; return the work folder.

    Once all dumps were done, `build(..., resume=True)` with all of them goes on from there.
    Several processes may do so at a time, on several machines with a disk in common or a remote `out`, each with dumps
    of its own and the same settings and buckets.

    Raises:
        InputError: as `build`, also if `strict`; the work was begun with other settings, or another process is reading
            a dump.
    """
    settings = replace(settings, buckets=plan.buckets)
    out = _checked_out(out, plan, engine)
    pipeline = Pipeline(plan, settings, name_and_bytes(language_model))
    require_free(out, False, MARKER)
    identity, mine = _identity(plan, settings, pipeline), {OF_THE_PAIRS: FROM_PAIRS, PASSES: ()}
    work = WorkFolder(work_place(out), identity, True, False, mine, shared=True)
    running = Build(plan, settings, language_model, out, False, work, pipeline, say, strict)
    (months,) = (stage for stage in stages_of(settings) if stage.name == MONTHS)
    with ExitStack() as held:
        held.callback(work.leave)
        folder = work.stage(MONTHS)
        for shard in month_shards(running):
            if lock := work.hold(MONTHS, shard.name):
                held.enter_context(lock)
        used = engine if engine is not None else held.enter_context(Workers(plan.workers))
        months.run(running, used)
    return folder.parent


def _checked_out(out: Location, plan: BuildPlan, engine: Engine | None) -> Location:
    """The real path of the data set's folder: work is beside the folder itself, not beside a link to it.

    Raises:
        InputError: a remote folder cannot be written, has no scratch folder, or is not visible to the workers.
    """
    if isinstance(out, Path):
        places: tuple[Location, ...] = plan.files
        out = Path(os.path.realpath(out))
    else:
        places = (out, *plan.files)
        require_writable(out)
        if out.scratch is None:
            raise InputError(f"--out {out}: a remote folder needs a local one for temporary files; pass --scratch.")
    hidden = [path for path in places if not isinstance(path, Path) and "memory" in path.protocols]
    if hidden and engine is None and plan.workers > 1:
        raise InputError(f"{hidden[0]}: is only in this process's memory; pass --workers 1.")
    return out


def _identity(plan: BuildPlan, settings: Settings, pipeline: Pipeline) -> dict[str, object]:
    """What a build's work depends on: the months, each with its own name, and their pairs."""
    values = settings.as_dict()
    of_months = {name: value for name, value in values.items() if name not in (*OF_PAIRS, *OF_WRITING)}
    of_pairs = {
        **{name: values[name] for name in OF_PAIRS},
        "dumps": [name_and_bytes(path) for path in plan.files],
        "language model": list(pipeline.language_model.values()),
    }
    return {"format of the work": WORK, "settings": of_months, "buckets": plan.buckets, OF_THE_PAIRS: of_pairs}


def _whole_already(out: Location, pipeline: Pipeline, passes: Sequence[FolderPass]) -> dict[str, Any] | None:
    """The report at `out`, if it is of this very build, which was then interrupted after its last step.

    The dumps are read again for their hashes: nothing else is left to compare them with.
    """
    if is_unfinished(out):
        return None
    try:
        report: dict[str, Any] = json.loads((out / MARKER).read_text(encoding="utf-8"))
        buckets = report["settings"]["buckets"]  # they determine files, and a resumed build keeps them
        now = {**pipeline.as_dict(), "settings": {**pipeline.settings.as_dict(), "buckets": buckets}}
        there = {**report["pipeline"], "settings": report["settings"]}
        same = all(there[key] == now[key] for key in ("language_model", "settings"))
        dumps = [(dump["name"], dump["bytes"]) for dump in there["dumps"]]
        same = same and dumps == [(path.name, size(path)) for path in pipeline.plan.files]
        done = [(entry["name"], entry["about"]["identity"]) for entry in report.get("passes", ())]
        same = same and done == [(each.name, json.loads(json.dumps(each.identity()))) for each in passes]
        same = same and report["version"] == __version__
        hashes = [dump["sha256"] for dump in there["dumps"]]
        return report if same and hashes == [dump_sha256(path) for path in pipeline.plan.files] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
