"""The stages of a build that are divided into shards: months, pairs, and duplicates (Zhang et al. 2021, section 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import cast

from mrs_datasets.builders.pipeline.stages import Shard, summed
from mrs_datasets.builders.pipeline.work_folder import RESUME, WorkFolder
from mrs_datasets.builders.reddit.cleaning.duplicates import EXACT, NEAR, duplicates_shard, signature_file
from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes, languages_with
from mrs_datasets.builders.reddit.cleaning.markup import mask
from mrs_datasets.builders.reddit.pipeline import Build, Counts
from mrs_datasets.builders.reddit.read import dump_sha256
from mrs_datasets.builders.reddit.shards.shards import MonthCounts, PairCounts, month_shard, pair_shard
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, remove, size, stamp

MONTHS, PAIRS, DUPLICATES = "months", "pairs", "duplicates"  # their names and folders
FROM_PAIRS = (PAIRS, DUPLICATES)  # stages that are done again if the inputs of the pairs differ

# --- Months: read, filter, partition --------------------------------------------------------------------------------


def month_shards(build: Build) -> list[Shard]:
    """A shard for every dump."""
    settings, plan = build.settings, build.plan
    names = [f"{path.name}.{size(path)}" for path in plan.files]
    for name, path in zip(names, plan.files, strict=True):
        _forget_if_changed(build, name, path)
    targets = [build.work.folder / MONTHS / f"{name}.arrow" for name in names]
    return [
        Shard(name, size(path), target, partial(month_shard, path, target, settings, plan.buckets))
        for name, path, target in zip(names, plan.files, targets, strict=True)
    ]


def _forget_if_changed(build: Build, name: str, path: Location) -> None:
    """Forget a finished month whose dump has other contents now, and the pairs made from it.

    Contents are compared only if the stamp differs or the storage gives none: that takes reading the whole dump.

    Args:
        name: of its shard.
    """
    noted = build.work.done(MONTHS, name)
    if noted is None:
        return
    now = stamp(path)
    if now and now == noted["stamp"]:
        return
    if dump_sha256(path) == noted["sha256"]:
        build.work.finish(MONTHS, name, {**noted, "stamp": now})
        return
    build.say(f"--resume: {path.name} has changed since it was read; it is read again")
    for stage in FROM_PAIRS:
        if (build.work.folder / stage).exists():
            remove(build.work.folder / stage)
    (build.work.folder / MONTHS / f"{name}.json").unlink()


def finish_months(build: Build, shards: Sequence[Shard], counts: Counts) -> None:
    """Add the counts of reading and filtering, and warn about faults in the dumps.

    Raises:
        InputError: a dump could not be read completely, and the build is strict.
    """
    pipeline, months = build.pipeline, [cast(MonthCounts, found) for found in counts]
    build.months = [shard.output for shard in shards]
    lines = pipeline.add("read", sum(c["lines"] for c in months), summed(c["rejected"] for c in months))
    comments = sum(c["comments"] for c in months)
    if lines != comments:
        raise AssertionError(f"{lines} comments were read, {comments} came to the filter")
    pipeline.add("filter", comments, summed(c["dropped"] for c in months))
    for path, found in zip(build.plan.files, months, strict=True):
        altered = [f"frame {frame + 1} does not match its checksum" for frame in found["altered"]]
        truncated = list(found["truncated"].values())
        pipeline.warnings += [f"{path.name}: {reason}; nothing of it was used." for reason in altered]
        pipeline.warnings += [f"{path.name}: {reason}; everything before was used." for reason in truncated]
        pipeline.sha256[path.name] = found["sha256"]
        if altered or truncated:
            pipeline.lossy[path.name] = ", ".join(altered + truncated)
        for reason, samples in found["samples"].items():
            stored = pipeline.rejects.setdefault(reason, [])
            stored += map(mask, samples[: build.settings.keep_rejects - len(stored)])
    if build.strict:
        require_complete(pipeline.lossy)
    for warning in pipeline.warnings:
        build.say(f"warning: {warning}")


def require_complete(lossy: Mapping[str, str]) -> None:
    """Refuse dumps that could not be read completely; `lossy` says why, by their names.

    Raises:
        InputError: there is one.
    """
    if lossy:
        names = ", ".join(f"{name} ({reason})" for name, reason in lossy.items())
        raise InputError(
            f"{names}: cannot be read completely; fetch it again and {RESUME}, or pass --no-strict to build from "
            "what can be read."
        )


# --- Pairs: join, language, clean -----------------------------------------------------------------------------------


def pair_shards(build: Build) -> list[Shard]:
    """A shard for every bucket of the join."""
    return [
        Shard(
            target.stem,
            1,
            target,
            partial(pair_shard, build.months, number, target, build.settings, build.language_model),
            signature_file(target) if build.settings.clean else None,
        )
        for number, target in enumerate(pair_files(build.work, build.plan.buckets))
    ]


def finish_pairs(build: Build, shards: Sequence[Shard], counts: Counts) -> None:
    """Add the counts of the join, and the outcomes of the pairs."""
    pipeline, outcomes = build.pipeline, build.outcomes
    buckets = [cast(PairCounts, found) for found in counts]
    pipeline.add("join", sum(c["comments"] for c in buckets), summed(c["dropped"] for c in buckets))
    for found in buckets:
        for language, outcome, count in found["outcomes"]:
            outcomes[language, outcome] += count
    pipeline.repairs = dict(sorted(summed(c["repairs"] for c in buckets).items()))
    dropped: Counter[str] = Counter()
    for (_, outcome), count in sorted(outcomes.items()):
        dropped[outcome] += count
    del dropped[KEPT]
    pipeline.add("language" + (" and cleaning" if build.settings.clean else ""), outcomes.total(), dropped)


def pair_files(work: WorkFolder, buckets: int) -> list[Location]:
    """The pairs of every bucket."""
    return [work.folder / PAIRS / f"bucket-{number:05d}.arrow" for number in range(buckets)]


def kept(outcomes: Outcomes) -> int:
    """How many pairs stay."""
    return sum(count for (_, outcome), count in outcomes.items() if outcome == KEPT)


# --- Duplicates, language by language -------------------------------------------------------------------------------


def duplicates_shards(build: Build) -> list[Shard]:
    """A shard for every language that may be kept."""
    folder, buckets = build.work.folder / DUPLICATES, pair_files(build.work, build.plan.buckets)
    return [
        Shard(language, build.outcomes[language, KEPT], target, partial(duplicates_shard, buckets, language, target))
        for language in languages_with(build.outcomes, build.settings.min_examples)
        for target in [folder / f"{language}.npy"]
    ]


def finish_duplicates(build: Build, shards: Sequence[Shard], counts: Counts) -> None:
    """Add the duplicates that were found, and move them in the outcomes."""
    outcomes = build.outcomes
    duplicates = [cast(dict[str, int], found) for found in counts]
    build.pipeline.add(DUPLICATES, kept(outcomes), summed(duplicates))
    for shard, found in zip(shards, duplicates, strict=True):
        for reason in (EXACT, NEAR):
            outcomes[shard.name, reason] += found[reason]
            outcomes[shard.name, KEPT] -= found[reason]
