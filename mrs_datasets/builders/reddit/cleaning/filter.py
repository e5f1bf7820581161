"""Stage 2: which comments may be a message or a reply (Zhang et al. 2021, section 2), before anything is joined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.tally import Tally

REMOVED = "removed"
DELETED = "deleted"
DELETED_LATER = "deleted later"
LOW_SCORE = "low score"
EMPTY = "empty"
BOT = "bot"
TOO_SHORT = "too short"
TOO_LONG = "too long"


@dataclass(frozen=True)
class Rules:
    """Conditions for a comment to stay. They apply in the order of the reasons above; the first that applies counts.

    Attributes:
        min_score: comments with a lower score are dropped. Those without a score (null) stay: the paper skips "comments
            with a rating of less than one", which is not known of them.
        drop_bots: whether to drop bots (see `mrs_datasets.builders.reddit.cleaning.bots`).
        min_characters, max_characters: bounds for the body without outer white space, both included; None for none.

    Always dropped: bodies that start with `[removed]` or `[deleted]` (the paper), or with `[ Removed by Reddit ]`
    (ours: Reddit's own mark since 2020, in dumps later than the paper's), comments that the dump marks as deleted later
    (dumps of the paper's time do not have that mark), and bodies of white space.
    """

    min_score: int = 1
    drop_bots: bool = False
    min_characters: int | None = None
    max_characters: int | None = None


PAPER = Rules()  # section 2: removed and deleted comments, and a rating of less than one; bots are not mentioned
CLEAN = Rules(drop_bots=True)  # ours: AutoModerator and similar bots would fill the response sets
PROFILES = {"paper": PAPER, "clean": CLEAN}


@dataclass
class FilterCounts(Tally):
    """Comments seen, kept, and dropped by reason; `seen` is always `kept` plus the sum of `dropped`.

    Attributes:
        samples: reason -> bodies of the first comments that were dropped for it.
    """

    seen: int = 0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[str]] = field(default_factory=dict)


def filter_batch(batch: pa.RecordBatch, rules: Rules, counts: FilterCounts, keep_rejects: int = 0) -> pa.RecordBatch:
    """The rows of a batch that the rules keep, in their order.

    Args:
        batch: with the schema `COMMENTS`.
        counts: added to.
        keep_rejects: how many bodies to keep for each reason in `counts.samples`.

    >>> from mrs_datasets.builders.reddit.schema import COMMENTS
    >>> row = {"id": "a", "parent_id": "t1_b", "link_id": "t3_c", "is_bot": False, "deleted_later": False, "created": 0}
    >>> rows = [{**row, "body": "Sure!", "score": 1}, {**row, "body": "No", "score": 0}]
    >>> counts = FilterCounts()
    >>> filter_batch(pa.RecordBatch.from_pylist(rows, COMMENTS), PAPER, counts)["body"].to_pylist(), counts.dropped
    (['Sure!'], Counter({'low score': 1}))
    """
    counts.seen += batch.num_rows
    kept: pa.Array | None = None  # rows of the batch to which no rule has applied yet
    for reason, hits in _RULES:
        hit = hits(batch, rules)
        if hit is None:
            continue
        hit = hit if kept is None else pc.and_(hit, kept)
        dropped = hit.true_count
        if dropped:
            counts.dropped[reason] += dropped
            _sample(batch, hit, counts.samples.setdefault(reason, []) if keep_rejects else [], keep_rejects)
        kept = pc.invert(hit) if kept is None else pc.and_not(kept, hit)
    result = batch if kept is None or kept.true_count == batch.num_rows else batch.filter(kept)
    counts.kept += result.num_rows
    return result


def _sample(batch: pa.RecordBatch, hit: pa.Array, samples: list[str], limit: int) -> None:
    missing = limit - len(samples)
    if missing > 0:
        samples += batch.column("body").filter(hit)[:missing].to_pylist()


def _is_removed(body: pa.Array) -> pa.Array:
    return pc.or_(pc.starts_with(body, "[removed]"), pc.starts_with(body, "[ Removed by Reddit ]"))


def _is_empty(body: pa.Array) -> pa.Array:
    return pc.or_(pc.equal(pc.binary_length(body), 0), pc.utf8_is_space(body))


def _too_short(batch: pa.RecordBatch, rules: Rules) -> pa.Array | None:
    return None if rules.min_characters is None else pc.less(_characters(batch), rules.min_characters)


def _too_long(batch: pa.RecordBatch, rules: Rules) -> pa.Array | None:
    return None if rules.max_characters is None else pc.greater(_characters(batch), rules.max_characters)


def _characters(batch: pa.RecordBatch) -> pa.Array:
    return pc.utf8_length(pc.utf8_trim_whitespace(batch.column("body")))


# Reason and rule, in the order in which they apply; a rule returns booleans without nulls, or None if it is off.
_RULES: tuple[tuple[str, Callable[[pa.RecordBatch, Rules], pa.Array | None]], ...] = (
    (REMOVED, lambda batch, rules: _is_removed(batch.column("body"))),
    (DELETED, lambda batch, rules: pc.starts_with(batch.column("body"), "[deleted]")),
    (DELETED_LATER, lambda batch, rules: batch.column("deleted_later")),
    (LOW_SCORE, lambda batch, rules: pc.fill_null(pc.less(batch.column("score"), rules.min_score), False)),
    (EMPTY, lambda batch, rules: _is_empty(batch.column("body"))),
    (BOT, lambda batch, rules: batch.column("is_bot") if rules.drop_bots else None),
    (TOO_SHORT, _too_short),
    (TOO_LONG, _too_long),
)
