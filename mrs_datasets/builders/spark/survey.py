"""Splits, leakage and response sets on Spark: each bucket is counted alone, and replies are counted by a shuffle."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import damaged, read_array
from mrs_datasets.builders.reddit.cleaning.duplicates import KEPT_CODE
from mrs_datasets.builders.reddit.counts import COUNTED, ReplyCounts, listed, most_frequent
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.pair_files import read_pairs
from mrs_datasets.builders.reddit.shards.partition import stable_hashes
from mrs_datasets.builders.reddit.survey import COLUMNS, COUNT_BYTES, Survey, count_bucket
from mrs_datasets.builders.spark.engine import SparkEngine
from mrs_datasets.builders.spark.rows import Piece, Row, counts_row, grouped, pack, source, unpack
from mrs_datasets.prepared.responses import response_table
from mrs_suggest.common.io.storage import Location

PART_PAIRS = 1 << 22  # of a language, whose replies are counted in one group
_TOTALS = b"totals"  # in the schema of a part's replies: numbers of its pairs and of different replies


@dataclass(frozen=True)
class Buckets:
    """The pairs of all buckets, and which of them stay.

    Attributes:
        files: of the pairs.
        codes: of the duplicates (`mrs_datasets.builders.spark.duplicates`); empty: all stay.
    """

    files: tuple[Location, ...]
    codes: tuple[Location, ...] = ()

    def kept(self, bucket: int, language: str, columns: Sequence[str]) -> pa.Table:
        """A language's pairs in a bucket that stay."""
        table, start = read_pairs(self.files[bucket], language, columns)
        if not self.codes:
            return table
        codes = read_array(self.codes[bucket])[start : start + table.num_rows]
        if codes.dtype != np.uint8 or len(codes) != table.num_rows:
            raise damaged(self.codes[bucket], f"it has {len(codes):,} entries for {table.num_rows:,} pairs")
        return table.filter(pa.array(codes == KEPT_CODE))


@dataclass
class Surveyed:
    """What is known of the languages before they are written.

    Attributes:
        found: of each language.
        rows: (language, split) -> (buckets,) pairs.
    """

    found: dict[str, Survey]
    rows: dict[tuple[str, str], list[int]] = field(default_factory=dict)


def survey_languages(
    spark: SparkEngine, pairs: Mapping[str, int], buckets: Buckets, settings: Settings
) -> Surveyed:  # fmt: skip
    """As `mrs_datasets.builders.reddit.survey.survey`, of all languages.

    Args:
        pairs: language -> how many it has.
    """
    languages = list(pairs)
    parts = [-(-number // PART_PAIRS) for number in pairs.values()]
    first = np.cumsum([0, *parts]).tolist()
    counts = _Counts(tuple(languages), tuple(parts), tuple(first), buckets, settings)
    tasks = spark.tasks(len(buckets.files))
    replies = source(spark.session, len(buckets.files), partial(_count_bucket, counts), tasks)
    parted = grouped(replies, spark.tasks(first[-1] + 1), partial(_frequent_of_part, counts))
    rows = spark.collect_under_bar(
        grouped(parted, spark.tasks(len(languages) + 1), partial(_frequent, counts)), "survey"
    )
    result = Surveyed({language: Survey() for language in languages})
    for key, bucket, data in rows:
        if key < len(languages):
            result.found[languages[key]].responses = pa.ipc.open_stream(bytes(data)).read_all()
            continue
        for language, facts in json.loads(bytes(data)).items():
            result.found[language].rows.update(facts["rows"])
            result.found[language].leakage.update(facts["leakage"])
            for split, number in facts["rows"].items():
                result.rows.setdefault((language, split), [0] * len(buckets.files))[bucket] = number
    return result


@dataclass(frozen=True)
class _Counts:
    """The groups: (language, part of its replies), from `first[language]` on; after them, what buckets counted."""

    languages: tuple[str, ...]
    parts: tuple[int, ...]
    first: tuple[int, ...]
    buckets: Buckets
    settings: Settings


def _count_bucket(counts: _Counts, bucket: int) -> Iterator[Row]:
    told: dict[str, Any] = {}
    for number, language in enumerate(counts.languages):
        found = Survey()
        table = counts.buckets.kept(bucket, language, COLUMNS)
        replies = pc.value_counts(count_bucket(found, table, counts.settings))
        told[language] = {"rows": found.rows, "leakage": found.leakage}
        texts, parts = replies.field("values"), counts.parts[number]
        of = stable_hashes(texts) % np.uint64(parts) if parts > 1 else np.zeros(len(texts), np.uint64)
        counted = pa.table([texts.cast(pa.large_string()), replies.field("counts")], COUNTED)
        for part in np.unique(of).tolist():
            yield counts.first[number] + part, bucket, pack(counted.filter(pa.array(of == part)))
    _, _, data = counts_row(0, told)
    yield counts.first[-1], bucket, data


def _frequent_of_part(counts: _Counts, group: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    if group == counts.first[-1]:
        yield from ((len(counts.languages), place, data.to_pybytes()) for place, data in pieces)
        return
    number = int(np.searchsorted(counts.first, group, side="right")) - 1
    settings = counts.settings
    with tempfile.TemporaryDirectory() as folder, ReplyCounts(COUNT_BYTES, Path(folder)) as replies:
        for piece in pieces:
            replies.add_counted(unpack([piece], COUNTED))
        frequent = replies.frequent(settings.min_reply_count, settings.max_responses)
        totals = json.dumps([replies.pairs, replies.distinct]).encode()
    columns = [[reply for reply, _ in frequent], [count for _, count in frequent]]
    yield number, group, pack(pa.table(columns, COUNTED.with_metadata({_TOTALS: totals})))


def _frequent(counts: _Counts, number: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """The response set of a language."""
    if number == len(counts.languages):
        yield from ((number, place, data.to_pybytes()) for place, data in pieces)
        return
    parts = [unpack([piece], COUNTED) for piece in pieces]
    totals = np.sum([json.loads(part.schema.metadata[_TOTALS]) for part in parts], axis=0).tolist()
    frequent = listed(most_frequent([part.replace_schema_metadata() for part in parts], counts.settings.max_responses))
    yield number, 0, pack(response_table(frequent, *totals))
