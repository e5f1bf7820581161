"""MRS from monthly dumps: the stages in order, resumable at every shard (Zhang et al. 2021, section 2)."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from mrs_datasets.builders.passes import PASSES, WRITING, FolderPass, apply_passes, done_again, identity_of, same_passes
from mrs_datasets.builders.pipeline.stages import Engine, Workers, name_and_bytes, timed
from mrs_datasets.builders.pipeline.work_folder import WorkFolder, remove_finished, remove_leftovers, work_place
from mrs_datasets.builders.reddit import duplicates, months, pairs, write
from mrs_datasets.builders.reddit.plan import FROM_PAIRS, Build, BuildPlan, Funnel, Settings
from mrs_datasets.builders.reddit.read import dump_sha256
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.report import REPORT
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, is_unfinished, require_free, require_writable, size

WORK = 8  # version of the work folder's layout and of the rules: increment it if either changes
WRITTEN = "after-write"  # in the work folder: the data set before the passes
# Parts of a work folder's identity on which months do not depend, and the settings in them.
OF_PAIRS, OF_WRITING = "pairs", "writing"
SETTINGS_OF = {
    OF_PAIRS: ("english_months", "min_language_score", "clean", "context"),
    OF_WRITING: ("min_examples", "min_reply_count", "max_responses", "responses_from", "split_by"),
}


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
    passes: Sequence[FolderPass] = (),
    cache: Path | None = None,
) -> dict[str, Any]:
    """Write the prepared folder `out` and return its report.

    The work is in `.NAME.build` next to `out` until the data set is complete; a build that was interrupted at any
    moment continues with `resume`, and ends with the same Parquet files as an uninterrupted one.

    Args:
        out: a local folder, or a remote one with a scratch folder (`mrs_suggest.common.io.storage.location`).
        strict: stop after reading if a dump could not be read completely; else what could be read is used.
        engine: processes the shards, and stays open; None: as many processes as planned. The files are the same.
        passes: run in this process over the data set that the stages wrote; the last one writes `out`.
        cache: keeps the passes' answers for later builds; None: they are removed with the work.

    Raises:
        InputError: an unreadable dump, a wrong language model, a full disk, a killed worker, or nothing left to write;
            the sentence says where finished work is kept for `resume`.
    """
    settings, out = replace(settings, buckets=plan.buckets), _checked_out(out, plan, engine)
    if engine is not None:  # its processes may have working directories that differ from this one's
        files = tuple(path.absolute() if isinstance(path, Path) else path for path in plan.files)
        plan, language_model = replace(plan, files=files), language_model.absolute()
    model = name_and_bytes(language_model)
    if resume and (report := _whole_already(out, plan, settings, model, passes)):
        if strict:
            months.refuse_lossy(report["pipeline"]["dumps"])
        remove_finished(out)
        return report
    require_free(out, overwrite, REPORT)
    identity, changeable = _identity(plan, settings, language_model, passes)
    work = WorkFolder(work_place(out), identity, resume, overwrite, changeable)
    if not isinstance(out, Path):
        out = replace(out, scratch=work.scratch)
    if work.changed:
        say(f"resuming with different {work.changed}: dependent stages are rebuilt, the rest is reused")
    about = {"language_model": model, "profile": settings.profile, "departures": settings.departures()}
    running = Build(plan, settings, language_model, work, Funnel(about), say, strict)
    place: Location = work.scratch / WRITTEN if passes else out
    seconds: dict[str, float] = {}
    with work.kept_after_errors():
        with nullcontext(engine) if engine is not None else Workers(plan.workers) as used:
            with timed(seconds, months.STAGE):
                partitions = months.read_months(running, used)
            with timed(seconds, pairs.STAGE):
                buckets, outcomes = pairs.make_pairs(running, partitions, used)
            codes: Mapping[str, tuple[Location, int]] = {}
            if settings.clean:
                with timed(seconds, duplicates.STAGE):
                    codes = duplicates.find_duplicates(running, buckets, outcomes, used)
            with timed(seconds, write.STAGE):
                report = write.write_data_set(running, buckets, outcomes, codes, used, place, overwrite or bool(passes))
        if passes:
            with timed(seconds, PASSES):
                report = dict(apply_passes(open_prepared(str(place)), passes, out, work, cache, overwrite))
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
) -> Location:
    """Do the stage `months` of the plan's dumps alone; return the work folder.

    A `build(..., resume=True)` of all dumps then continues with the pairs. Several processes may read different dumps
    at a time, on several machines with a shared disk or a remote `out`, with the same settings and buckets.

    Raises:
        InputError: as `build`, also if `strict`; the work was begun with other settings, or another process is reading
            a dump.
    """
    settings, out = replace(settings, buckets=plan.buckets), _checked_out(out, plan, None)
    require_free(out, False, REPORT)
    identity, changeable = _identity(plan, settings, language_model, ())
    work = WorkFolder(work_place(out), identity, True, False, changeable, shared=True)
    running = Build(plan, settings, language_model, work, Funnel({}), say, strict)
    with ExitStack() as held:
        held.callback(work.leave)
        for shard in months.month_shards(running):
            if lock := work.hold(months.STAGE, shard.name):
                held.enter_context(lock)
        months.read_months(running, held.enter_context(Workers(plan.workers)))
    return work.folder


def _checked_out(out: Location, plan: BuildPlan, engine: Engine | None) -> Location:
    """The real path of the data set's folder: work is next to the folder itself, not next to a link to it.

    Raises:
        InputError: a remote folder cannot be written, has no scratch folder, or is not visible to the workers.
    """
    places: tuple[Location, ...] = plan.files
    if isinstance(out, Path):
        out = Path(os.path.realpath(out))
    else:
        places = (out, *plan.files)
        require_writable(out)
        if out.scratch is None:
            raise InputError(f"--out {out}: a remote folder needs a local one for temporary files; pass --scratch.")
    hidden = [path for path in places if not isinstance(path, Path) and "memory" in path.protocols]
    if hidden and engine is None and plan.workers > 1:
        raise InputError(f"{hidden[0]}: exists only in this process's memory; pass --workers 1.")
    return out


def _identity(
    plan: BuildPlan, settings: Settings, language_model: Path, passes: Sequence[FolderPass]
) -> tuple[dict[str, object], dict[str, Sequence[str]]]:
    """The inputs and settings that a build's work depends on, and the parts that a resumed build may change, each with
    the stages that are then rebuilt. (Each month also depends on its own name and size.)"""
    values = settings.as_dict()
    parts: dict[str, dict[str, Any]] = {
        part: {name: values.pop(name) for name in names if name in values} for part, names in SETTINGS_OF.items()
    }
    parts[OF_PAIRS]["dumps"] = [name_and_bytes(path) for path in plan.files]
    parts[OF_PAIRS]["language model"] = list(name_and_bytes(language_model).values())
    del values["profile"], values["buckets"]
    identity = {"format of the work": WORK, "settings": values, "buckets": plan.buckets, **parts}
    changeable = {OF_PAIRS: FROM_PAIRS, OF_WRITING: [write.STAGE]}
    if passes:
        return {**identity, **identity_of(passes)}, {**changeable, **done_again(passes)}
    return {**identity, PASSES: [], WRITING: []}, {**changeable, PASSES: (), WRITING: ()}


def _whole_already(
    out: Location, plan: BuildPlan, settings: Settings, model: Mapping[str, Any], passes: Sequence[FolderPass]
) -> dict[str, Any] | None:
    """The report at `out`, if it is of this very build, which was then interrupted after its last step.

    The dumps are read again for their hashes: nothing else is left to compare them with.
    """
    if is_unfinished(out):
        return None
    try:
        report: dict[str, Any] = json.loads((out / REPORT).read_text(encoding="utf-8"))
        there = report["pipeline"]
        buckets = report["settings"]["buckets"]  # they determine files, and a resumed build keeps them
        same = (
            report["version"] == __version__
            and report["settings"] == {**settings.as_dict(), "buckets": buckets}
            and there["language_model"] == model
            and [(dump["name"], dump["bytes"]) for dump in there["dumps"]]
            == [(path.name, size(path)) for path in plan.files]
            and same_passes(report.get(PASSES, []), passes)
            and [dump["sha256"] for dump in there["dumps"]] == [dump_sha256(path) for path in plan.files]
        )
        return report if same else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
