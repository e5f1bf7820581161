"""The work of one shard in a process of the build: a month, or a bucket of all months."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import write_array
from mrs_datasets.builders.pipeline.stages import Advance
from mrs_datasets.builders.reddit.cleaning.clean import clean_pairs
from mrs_datasets.builders.reddit.cleaning.duplicates import keyed_pairs, signature_file
from mrs_datasets.builders.reddit.cleaning.filter import FilterCounts, Rules, filter_batch
from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes, identify_pairs
from mrs_datasets.builders.reddit.cleaning.markup import MASKS
from mrs_datasets.builders.reddit.columns import change_in_turn
from mrs_datasets.builders.reddit.read import ReadCounts, read_comments
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.join import JoinCounts, join_bucket
from mrs_datasets.builders.reddit.shards.pair_files import by_language, write_pairs
from mrs_datasets.builders.reddit.shards.partition import partition
from mrs_suggest.common.io.storage import Location, stamp
from mrs_suggest.common.io.streams import AlteredError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.languages import LANGUAGES

NOT_IN_MRS = "not a language of MRS"
OTHER_MONTH = "English of another month"


class ReadMonth(TypedDict):
    """What reading, filtering and partitioning a month counted, from the tallies of these stages.

    Attributes:
        truncated: why the file could not be read to its end, by its name.
        samples: texts by the reason for which they were dropped.
        bytes: of the partition.
        sha256: of the file.
    """

    lines: int
    rejected: dict[str, int]
    truncated: dict[str, str]
    comments: int
    dropped: dict[str, int]
    samples: dict[str, list[str]]
    kept: int
    bytes: int
    sha256: str


class MonthCounts(ReadMonth):
    """Counts of a shard of the stage `months`.

    Attributes:
        altered: the frames that were left out, by number from 0.
        stamp: of the file before it was read (see `storage.stamp`).
    """

    altered: list[int]
    stamp: str


class PairCounts(TypedDict):
    """Counts of a shard of the stage `pairs`; `outcomes`: language, outcome, number of pairs."""

    comments: int
    dropped: dict[str, int]
    pairs: int
    repairs: dict[str, int]
    outcomes: list[tuple[str, str, int]]  # lists after a round trip through JSON


def month_shard(path: Location, target: Location, settings: Settings, buckets: int, advance: Advance) -> MonthCounts:
    """Read, filter and partition one dump; the counts of all three.

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
) -> ReadMonth:
    read, kept = ReadCounts(), FilterCounts()
    rules = Rules(settings.min_score, settings.drop_bots, settings.min_characters, settings.max_characters)

    def batches() -> Iterator[pa.RecordBatch]:
        told = 0
        try:
            for batch in read_comments(path, counts=read, tell_bots=rules.drop_bots, skipped=skipped):
                yield filter_batch(batch, rules, kept, settings.keep_rejects)
                advance(read.bytes - told)
                told = read.bytes
        except AlteredError:
            advance(-told)
            raise

    stats = partition(batches(), target, buckets)
    return {
        "lines": read.lines,
        "rejected": dict(read.rejected),
        "truncated": dict(read.truncated),
        "comments": kept.seen,
        "dropped": dict(kept.dropped),
        "samples": kept.samples,
        "kept": stats.comments,
        "bytes": stats.bytes,
        "sha256": read.sha256[path.name],
    }


def pair_shard(
    months: Sequence[Location], bucket: int, target: Location, settings: Settings, model: Path, advance: Advance
) -> PairCounts:
    """Join one bucket, mask, identify languages, and clean if the profile says so; the counts of all."""
    pairs, joined = join_bucket(months, bucket)
    counts = write_joined(pairs, joined, target, settings, model)
    advance(1)
    return counts


def write_joined(pairs: pa.Table, joined: JoinCounts, target: Location, settings: Settings, model: Path) -> PairCounts:
    """What `pair_shard` does with the pairs of a bucket."""
    if settings.clean:  # cleaning needs the original text
        pairs = pairs.append_column("raw message", pairs["message"]).append_column("raw reply", pairs["reply"])
    pairs, told = identify_pairs(_masked(pairs), _identifier(model), settings.min_language_score)
    outcomes: Outcomes = Counter(told)
    repairs: Counter[str] = Counter()
    pairs = _of_mrs(pairs, settings, outcomes)
    if settings.clean:
        for side in ("message", "reply"):
            pairs = pairs.set_column(pairs.schema.get_field_index(side), side, pairs[f"raw {side}"])
        pairs, cleaned = clean_pairs(pairs.drop_columns(["raw message", "raw reply"]), repairs=repairs)
        for (language, outcome), count in cleaned.items():
            if outcome != KEPT:
                outcomes[language, outcome] += count
                outcomes[language, KEPT] -= count
    pairs = by_language(pairs)  # already sorted by `order` and `thread`
    if settings.clean:
        pairs, signed = keyed_pairs(pairs)
        write_array(signature_file(target), signed)
    write_pairs(target, pairs)
    return {
        "comments": joined.comments,
        "dropped": dict(joined.dropped),
        "pairs": joined.pairs,
        "repairs": dict(repairs),
        "outcomes": [(language, outcome, count) for (language, outcome), count in sorted(outcomes.items()) if count],
    }


@lru_cache(maxsize=1)
def _identifier(model: Path) -> LanguageIdentifier:
    """The model, loaded once per process, not for every bucket."""
    return LanguageIdentifier.open(model)


def _of_mrs(pairs: pa.Table, settings: Settings, outcomes: Outcomes) -> pa.Table:
    """Pairs in a language of MRS, English ones of the months asked for; the others' outcomes are changed."""
    languages = pairs["language"]
    ours = pc.is_in(languages, value_set=pa.array(list(LANGUAGES)))
    keep = ours
    _move(languages.filter(pc.invert(ours)), NOT_IN_MRS, outcomes)
    if settings.english_months:
        first, last = (int(month.replace("-", "")) for month in settings.english_months)
        other = pc.or_(pc.less(pairs["month"], first), pc.greater(pairs["month"], last))
        late = pc.and_(pc.equal(languages, "en"), other)
        _move(languages.filter(late), OTHER_MONTH, outcomes)
        keep = pc.and_(ours, pc.invert(late))
    return pairs.filter(keep)


def _masked(pairs: pa.Table) -> pa.Table:
    """Links, names and addresses masked, in every profile: links contain ids, and the data must have no user names."""
    for side in ("message", "reply"):
        chunks = [change_in_turn(chunk, MASKS)[0] for chunk in pairs[side].chunks]
        texts = pa.chunked_array(chunks, pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(side), side, texts)
    return pairs


def _move(languages: pa.ChunkedArray, reason: str, outcomes: Outcomes) -> None:
    for entry in pc.value_counts(languages).to_pylist():
        outcomes[entry["values"], reason] += entry["counts"]
        outcomes[entry["values"], KEPT] -= entry["counts"]
