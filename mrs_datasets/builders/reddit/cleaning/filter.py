"""Stage 1, filter: which comments may be a message or a reply, before the join (Zhang et al. 2021, section 2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

REMOVED = "removed"
DELETED = "deleted"
DELETED_LATER = "deleted later"
LOW_SCORE = "low score"
EMPTY = "empty"
BOT = "bot"
TOO_SHORT = "too short"
TOO_LONG = "too long"

# Some people have such names (Abbot, IAmARobot): the price of a rule that needs no list. The profile `paper`
# keeps every bot.
BOT_SUFFIX = "bot"

# AutoModerator, the moderation account of nearly every subreddit, and well-known bots whose names do not end in "bot".
# In lower case, since Reddit's names are case-insensitive.
BOT_NAMES = (
    "automoderator", "autotldr", "b0trank", "changetip", "convertstometric", "decronym", "gfy_mirror",
    "haiku-detector", "haikubot-1337", "helperbot_", "imagesofnetwork", "imgurtranscriber", "linkfixerbotsnr",
    "mentioned_videos", "metric_units", "mnemosyne-0001", "mnemosyne-0002", "morejpeg_auto", "movieguide",
    "mtgcardfetcher", "pricezombie", "qkme_transcriber", "redditcareresources", "roboragi", "savevideo",
    "sodogetip", "stabbot_crop", "the-paranoid-android", "tippr", "totesmessenger", "tweetposter",
    "user_simulator", "vredditdownloader", "xkcd_transcriber", "_youtubot_",
)  # fmt: skip
_NAMES = pa.array(BOT_NAMES, pa.string())


@dataclass(frozen=True)
class Rules:
    """Conditions for a comment to stay. They apply in the order of the reasons above; the first that applies counts.

    Attributes:
        min_score: comments with a lower score are dropped. Those without a score (null) stay: the paper skips "comments
            with a rating of less than one", and theirs is unknown.
        drop_bots: whether to drop bots (see `is_bot`).
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
class FilterCounts:
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
        batch: with the schema `read.COMMENTS`.
        counts: added to.
        keep_rejects: how many bodies to keep for each reason in `counts.samples`.

    >>> from mrs_datasets.builders.reddit.read import COMMENTS
    >>> row = {"id": "a", "parent_id": "t1_b", "link_id": "t3_c", "is_bot": False, "deleted_later": False, "created": 0}
    >>> rows = [{**row, "body": "Sure!", "score": 1}, {**row, "body": "No", "score": 0}]
    >>> counts = FilterCounts()
    >>> filter_batch(pa.RecordBatch.from_pylist(rows, COMMENTS), PAPER, counts)["body"].to_pylist(), counts.dropped
    (['Sure!'], Counter({'low score': 1}))
    """
    counts.seen += batch.num_rows
    kept = pa.repeat(True, batch.num_rows)  # rows of the batch to which no rule has applied yet
    for reason, applies in _RULES.items():
        hit = applies(batch, rules)
        if hit is None:
            continue
        hit = pc.and_(hit, kept)
        if dropped := hit.true_count:
            counts.dropped[reason] += dropped
            if keep_rejects:
                samples = counts.samples.setdefault(reason, [])
                samples += batch["body"].filter(hit)[: keep_rejects - len(samples)].to_pylist()
        kept = pc.and_not(kept, hit)
    result = batch if kept.true_count == batch.num_rows else batch.filter(kept)
    counts.kept += result.num_rows
    return result


def is_bot(authors: pa.Array) -> pa.Array:
    """Whether each author name is a bot's; a missing name (null) is not.

    >>> is_bot(pa.array(["AutoModerator", "weather_bot", "Bottle", "[deleted]", None])).to_pylist()
    [True, True, False, False, False]
    """
    names = pc.ascii_lower(authors)
    known = pc.is_in(names, value_set=_NAMES)
    return pc.fill_null(pc.or_(known, pc.ends_with(names, BOT_SUFFIX)), False)


def _is_removed(batch: pa.RecordBatch, _: Rules) -> pa.Array:
    return pc.or_(pc.starts_with(batch["body"], "[removed]"), pc.starts_with(batch["body"], "[ Removed by Reddit ]"))


def _is_empty(batch: pa.RecordBatch, _: Rules) -> pa.Array:
    return pc.or_(pc.equal(pc.binary_length(batch["body"]), 0), pc.utf8_is_space(batch["body"]))


def _too_short(batch: pa.RecordBatch, rules: Rules) -> pa.Array | None:
    return None if rules.min_characters is None else pc.less(_characters(batch), rules.min_characters)


def _too_long(batch: pa.RecordBatch, rules: Rules) -> pa.Array | None:
    return None if rules.max_characters is None else pc.greater(_characters(batch), rules.max_characters)


def _characters(batch: pa.RecordBatch) -> pa.Array:
    return pc.utf8_length(pc.utf8_trim_whitespace(batch["body"]))


# Reason -> rule, in the order in which they apply; a rule returns booleans without nulls, or None if it is off.
_RULES: dict[str, Callable[[pa.RecordBatch, Rules], pa.Array | None]] = {
    REMOVED: _is_removed,
    DELETED: lambda batch, _: pc.starts_with(batch["body"], "[deleted]"),
    DELETED_LATER: lambda batch, _: batch["deleted_later"],
    LOW_SCORE: lambda batch, rules: pc.fill_null(pc.less(batch["score"], rules.min_score), False),
    EMPTY: _is_empty,
    BOT: lambda batch, rules: batch["is_bot"] if rules.drop_bots else None,
    TOO_SHORT: _too_short,
    TOO_LONG: _too_long,
}
