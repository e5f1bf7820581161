"""Facts about a language that are needed before its pairs are written: splits, response set, leakage across splits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.counts import ReplyCounts
from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.split import assign_splits, mix
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import SPLITS

COLUMNS = ("reply", "thread", "order", "parent")  # of the pairs, that a survey reads
COUNT_BYTES = 512 << 20  # for counting the replies of a language; the rest goes to disk


@dataclass
class Survey:
    """Facts about one language.

    Attributes:
        rows: pairs of each split.
        responses: the response set (section 2.1).
        leakage: how many `threads`, `messages` (comments that are answered) and `comments` (on either side) there are,
            and how many of each are `... in several splits`.
    """

    rows: Counter[str] = field(default_factory=Counter)
    responses: pa.Table = None
    leakage: Counter[str] = field(default_factory=Counter)

    def lack(self, settings: Settings) -> str:
        """Why the language cannot be written, with a remedy; empty if it can be."""
        if missing := [split for split in SPLITS if not self.rows[split]]:
            other = ", or --split-by example" if settings.split_by == "thread" else ""
            return (
                f"none of its {self.rows.total():,} pairs falls into {' or '.join(missing)}; raise --min-examples, "
                f"pass more months{other}"
            )
        if not self.responses.num_rows:
            where = "in training" if settings.responses_from == "training" else "in all splits together"
            return f"no reply occurs {settings.min_reply_count} times {where}; lower --min-reply-count"
        return ""


def survey(tables: Iterable[pa.Table], settings: Settings, folder: Path) -> Survey:
    """Count a language's pairs, bucket after bucket.

    Args:
        tables: with `COLUMNS`, one per bucket: all pairs of a thread are in one of them, so that leakage is counted
            exactly.
        folder: for counts of replies that do not fit into memory.
    """
    found = Survey()
    with ReplyCounts(COUNT_BYTES, folder) as replies:
        for table in tables:
            replies.add(count_bucket(found, table, settings))
        frequent = replies.frequent(settings.min_reply_count, settings.max_responses)
        found.responses = response_table(frequent, replies.pairs, replies.distinct)
    return found


def count_bucket(found: Survey, table: pa.Table, settings: Settings) -> pa.ChunkedArray:
    """Add the splits and the leakage of a bucket with `COLUMNS`; return the replies that count for the response set."""
    split = assign_splits(table, settings.split_by)
    for entry in pc.value_counts(split["split"]).to_pylist():
        found.rows[entry["values"]] += entry["counts"]
    _count_leakage(split, found.leakage)
    training = pc.equal(split["split"], SPLITS[0])
    return split["reply"] if settings.responses_from == "all" else split.filter(training)["reply"]


def _count_leakage(pairs: pa.Table, leakage: Counter[str]) -> None:
    """Add the leakage in a bucket with the columns `thread`, `order`, `parent` and `split`."""
    thread, order, parent = (pairs[name].to_numpy() for name in ("thread", "order", "parent"))
    splits = pc.index_in(pairs["split"], pa.array(SPLITS)).to_numpy().astype(np.uint8)
    own = mix(thread)  # equal ids of different threads differ
    for name, keys, of in (
        ("threads", thread, splits),
        ("messages", own ^ parent, splits),
        ("comments", np.concatenate([own ^ parent, own ^ order]), np.tile(splits, 2)),
    ):
        distinct, crossing = _crossing(keys, of)
        leakage[name] += distinct
        leakage[f"{name} in several splits"] += crossing


def _crossing(keys: npt.NDArray[np.uint64], splits: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """(n,) keys, (n,) positions in `SPLITS` -> numbers of distinct keys, and of those in more than one split."""
    distinct, inverse = np.unique(keys, return_inverse=True)
    there = np.zeros((len(SPLITS), len(distinct)), bool)
    there[splits, inverse] = True
    return len(distinct), int((there.sum(axis=0) > 1).sum())
