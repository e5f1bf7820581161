"""Stages 1 and 2 for one dump: read, filter, partition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, ShardCounts, name_and_bytes, run_stage, summed
from mrs_datasets.builders.pipeline.work_folder import RESUME
from mrs_datasets.builders.reddit.cleaning.filter import FilterCounts, Rules, filter_batch
from mrs_datasets.builders.reddit.cleaning.masks import mask
from mrs_datasets.builders.reddit.partition import partition
from mrs_datasets.builders.reddit.plan import FROM_PAIRS, Build, Settings
from mrs_datasets.builders.reddit.read import ReadCounts, dump_sha256, read_comments
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, size, stamp
from mrs_suggest.common.io.streams import AlteredError

STAGE = "months"


def month_shards(build: Build) -> list[Shard]:
    """A shard for every dump."""
    folder, shards = build.work.stage(STAGE), []
    for path in build.plan.files:
        name = f"{path.name}.{size(path)}"
        _forget_if_changed(build, name, path)
        target = folder / f"{name}.arrow"
        work = partial(month_shard, path, target, build.settings, build.plan.buckets)
        shards.append(Shard(name, size(path), target, work))
    return shards


def read_months(build: Build, engine: Engine) -> list[Location]:
    """Read, filter and partition every dump; return the files, in the order of the dumps.

    Raises:
        InputError: a dump could not be read completely, and the build is strict.
    """
    funnel, shards = build.funnel, month_shards(build)
    months = run_stage(build.work, STAGE, shards, engine, "B", scale=True)
    lines = funnel.add("read", sum(c["lines"] for c in months), summed(c["rejected"] for c in months))
    comments = sum(c["comments"] for c in months)
    if lines != comments:
        raise AssertionError(f"{lines} comments were read, {comments} came to the filter")
    funnel.add("filter", comments, summed(c["dropped"] for c in months))
    for path, found in zip(build.plan.files, months, strict=True):
        altered = [f"frame {frame + 1} does not match its checksum" for frame in found["altered"]]
        truncated = list(found["truncated"].values())
        funnel.warnings += [f"{path.name}: {reason}; nothing of it was used." for reason in altered]
        funnel.warnings += [f"{path.name}: {reason}; everything before was used." for reason in truncated]
        lossy = ", ".join(altered + truncated) or None
        funnel.dumps.append({**name_and_bytes(path), "sha256": found["sha256"], "lossy": lossy})
        for reason, samples in found["samples"].items():
            stored = funnel.rejects.setdefault(reason, [])
            stored += map(mask, samples[: build.settings.keep_rejects - len(stored)])
    if build.strict:
        refuse_lossy(funnel.dumps)
    for warning in funnel.warnings:
        build.say(f"warning: {warning}")
    return [shard.output for shard in shards]


def refuse_lossy(dumps: Sequence[Mapping[str, Any]]) -> None:
    """Refuse dumps that could not be read completely, by their entries in the report.

    Raises:
        InputError: there is one.
    """
    names = ", ".join(f"{dump['name']} ({dump['lossy']})" for dump in dumps if dump["lossy"])
    if names:
        raise InputError(
            f"{names}: cannot be read completely; fetch it again and {RESUME}, or pass --no-strict to build from "
            "what can be read."
        )


def _forget_if_changed(build: Build, name: str, path: Location) -> None:
    """Forget a finished month whose dump has other contents now, and what was made from it.

    Contents are compared only if the stamp differs or the storage gives none: that takes reading the whole dump.
    """
    noted = build.work.done(STAGE, name)
    if noted is None:
        return
    now = stamp(path)
    if now and now == noted["stamp"]:
        return
    if dump_sha256(path) == noted["sha256"]:
        build.work.finish(STAGE, name, {**noted, "stamp": now})
        return
    build.say(f"--resume: {path.name} has changed since it was read; it is read again")
    for stage in FROM_PAIRS:
        build.work.forget(stage)
    (build.work.folder / STAGE / f"{name}.json").unlink()


def month_shard(path: Location, target: Location, settings: Settings, buckets: int, advance: Advance) -> ShardCounts:
    """Read, filter and partition one dump; return the counts of all three.

    A dump with frames that do not match their checksums is read again without them, from its beginning.
    """
    altered: list[int] = []
    before = stamp(path)
    while True:
        try:
            read = _read_month(path, target, settings, buckets, advance, altered)
            return {**read, "altered": altered, "stamp": before}
        except AlteredError as error:
            altered.append(error.frame)


def _read_month(
    path: Location, target: Location, settings: Settings, buckets: int, advance: Advance, skipped: Sequence[int]
) -> ShardCounts:
    read, kept = ReadCounts(), FilterCounts()
    rules = Rules(settings.min_score, settings.drop_bots, settings.min_characters, settings.max_characters)

    def batches() -> Iterator[pa.RecordBatch]:
        shown = 0
        try:
            for batch in read_comments(path, counts=read, find_bots=rules.drop_bots, skipped=skipped):
                yield filter_batch(batch, rules, kept, settings.keep_rejects)
                advance(read.bytes - shown)
                shown = read.bytes
        except AlteredError:
            advance(-shown)
            raise

    stats = partition(batches(), target, buckets)
    return {
        "lines": read.lines,
        "rejected": dict(read.rejected),
        "truncated": read.truncated,
        "comments": kept.seen,
        "dropped": dict(kept.dropped),
        "samples": kept.samples,
        "kept": stats.comments,
        "bytes": stats.bytes,
        "sha256": read.sha256[path.name],
    }
