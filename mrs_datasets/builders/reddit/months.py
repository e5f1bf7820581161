"""Stages 1 and 2 for one dump: read, filter, partition.

The filter decides which comments may be a message or a reply, before the join (Zhang et al. 2021, section 2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, ShardCounts, name_and_bytes, run_stage, summed
from mrs_datasets.builders.pipeline.work_folder import RESUME
from mrs_datasets.builders.reddit.partition import partition
from mrs_datasets.builders.reddit.plan import FROM_PAIRS, Build, Settings
from mrs_datasets.builders.reddit.read import ReadCounts, dump_sha256, read_comments
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, size, stamp
from mrs_suggest.common.io.streams import AlteredError
from mrs_suggest.common.text.masks import mask

STAGE = "months"

# Why a comment is dropped.
REMOVED = "removed"
DELETED = "deleted"
DELETED_LATER = "deleted later"
LOW_SCORE = "low score"
EMPTY = "empty"
BOT = "bot"
TOO_SHORT = "too short"
TOO_LONG = "too long"


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
    """Filter and partition every dump; return the files in order; InputError if a strict build cannot read one."""
    funnel, shards = build.funnel, month_shards(build)
    months = run_stage(build.work, STAGE, shards, engine, "B")
    lines = funnel.add("read", sum(c["lines"] for c in months), summed(c["rejected"] for c in months))
    comments = sum(c["comments"] for c in months)
    if lines != comments:
        raise AssertionError(f"{lines} comments were read, {comments} came to the filter")
    funnel.add("filter", comments, summed(c["dropped"] for c in months))
    for path, found in zip(build.plan.files, months, strict=True):
        altered = [f"frame {frame + 1} does not match its checksum" for frame in found["altered"]]
        truncated = [found["truncated"]] if found["truncated"] else []
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
    """Refuse dumps that could not be read completely, by their entries in the report."""
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
    if (now := stamp(path)) and now == noted["stamp"]:
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

    def filtered(read: ReadCounts, kept: FilterCounts) -> Iterator[pa.RecordBatch]:
        shown = 0
        try:
            for batch in read_comments(path, read, find_bots=settings.drop_bots, skipped=altered):
                yield filter_batch(batch, settings, kept)
                advance(read.bytes - shown)
                shown = read.bytes
        except AlteredError:
            advance(-shown)
            raise

    while True:
        read, kept = ReadCounts(), FilterCounts()
        try:
            stored = partition(filtered(read, kept), target, buckets)
            break
        except AlteredError as error:
            altered.append(error.frame)
    return {
        "lines": read.lines,
        "rejected": dict(read.rejected),
        "truncated": read.truncated,
        "comments": kept.seen,
        "dropped": dict(kept.dropped),
        "samples": kept.samples,
        "kept": stored,
        "sha256": read.sha256,
        "altered": altered,
        "stamp": before,
    }


# --- The filter -----------------------------------------------------------------------------------------------------


@dataclass
class FilterCounts:
    """Comments seen, and dropped by reason; `samples`: bodies of the first comments that were dropped for a reason."""

    seen: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)


def filter_batch(batch: pa.RecordBatch, settings: Settings, counts: FilterCounts) -> pa.RecordBatch:
    """The rows of a batch that the settings keep, in their order.

    The rules apply in their order below; the first that applies counts. Always dropped: bodies that start with
    `[removed]` or `[deleted]` (the paper), or with `[ Removed by Reddit ]` (ours: Reddit's own mark since 2020, in
    dumps later than the paper's), comments that the dump marks as deleted later (dumps of the paper's time do not have
    that mark), and bodies of white space. Comments without a score stay: the paper skips "comments with a rating of
    less than one", and theirs is unknown.

    Args:
        batch: with the schema `read.COMMENTS`.
        counts: added to.

    >>> from mrs_datasets.builders.reddit.read import COMMENTS
    >>> row = {"id": "a", "parent_id": "t1_b", "link_id": "t3_c", "is_bot": False, "deleted_later": False, "created": 0}
    >>> rows = [{**row, "body": "Sure!", "score": 1}, {**row, "body": "No", "score": 0}]
    >>> counts = FilterCounts()
    >>> filter_batch(pa.RecordBatch.from_pylist(rows, COMMENTS), Settings(), counts)["body"].to_pylist(), counts.dropped
    (['Sure!'], Counter({'low score': 1}))
    """
    body = batch["body"]
    rules = {
        REMOVED: pc.or_(pc.starts_with(body, "[removed]"), pc.starts_with(body, "[ Removed by Reddit ]")),
        DELETED: pc.starts_with(body, "[deleted]"),
        DELETED_LATER: batch["deleted_later"],
        LOW_SCORE: pc.fill_null(pc.less(batch["score"], settings.min_score), False),
        EMPTY: pc.or_(pc.equal(pc.binary_length(body), 0), pc.utf8_is_space(body)),
    }
    if settings.drop_bots:
        rules[BOT] = batch["is_bot"]
    if settings.min_characters is not None:
        rules[TOO_SHORT] = pc.less(_characters(body), settings.min_characters)
    if settings.max_characters is not None:
        rules[TOO_LONG] = pc.greater(_characters(body), settings.max_characters)
    counts.seen += batch.num_rows
    kept = pa.repeat(True, batch.num_rows)  # rows of the batch to which no rule has applied yet
    for reason, applies in rules.items():
        hit = pc.and_(applies, kept)
        if dropped := hit.true_count:
            counts.dropped[reason] += dropped
            if settings.keep_rejects:
                samples = counts.samples.setdefault(reason, [])
                samples += body.filter(hit)[: settings.keep_rejects - len(samples)].to_pylist()
        kept = pc.and_not(kept, hit)
    return batch if kept.true_count == batch.num_rows else batch.filter(kept)


def _characters(body: pa.Array) -> pa.Array:
    return pc.utf8_length(pc.utf8_trim_whitespace(body))
