"""Stage 6, clean: Markdown to text, HTML and wrongly decoded characters repaired, masks for links, names and addresses.

Off in the profile `paper`, on in `clean`: Zhang et al. 2021 do not mention such a step. The result depends only on the
text itself, and cleaning it again changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes
from mrs_datasets.builders.reddit.cleaning.markup import (
    MASK_PATTERN,
    MASKS,
    MAY_BE_MARKED,
    SPACES,
    mask,
    plain_text,
    without_quotes,
)
from mrs_datasets.builders.reddit.cleaning.repair import (
    MAY_BE_MOJIBAKE,
    MAY_BE_TAGGED,
    MOJIBAKE,
    TAGS,
    without_mojibake,
    without_tags,
)
from mrs_datasets.builders.reddit.columns import change_in_turn, with_rows
from mrs_datasets.builders.reddit.steps import Step

MAX_PASSES = 12  # over a text, until nothing changes; real texts need two or three

EMPTY_MESSAGE, EMPTY_REPLY = "message empty after cleaning", "reply empty after cleaning"
ONLY_MASKS = "nothing but masks"

_ONLY_MASKS = re.compile(rf"(?:{MASK_PATTERN}|[\s!-/:-@\[-`{{-~])+")
# In RE2's syntax (see `columns`): what a text must be to be empty, or nothing but masks.
_MAY_BE_DROPPED = rf"^(?:{MASK_PATTERN}|[ !-/:-@\[-`{{-~{SPACES}])*$"
BATCH_ROWS = 1 << 16  # of texts that are cleaned together


@dataclass(frozen=True)
class CleanRules:
    """What is cleaned.

    Attributes:
        markdown: Reddit's Markdown is replaced by its plain text, in one line; entities are decoded.
        quotes: lines that quote (`> ...`) are left out.
        masks: links, paths of threads and full ids, `u/name` and `r/u_name`, e-mail addresses, telephone numbers and IP
            addresses become `<url>`, `<user>`, `<email>`, `<phone>` and `<ip>`. A host without a path (example.com) is
            used like a word, and stays, as `r/name` does.
        mojibake: wrongly decoded characters are repaired.
        tags: HTML tags are left out.
    """

    markdown: bool = True
    quotes: bool = True
    masks: bool = True
    mojibake: bool = True
    tags: bool = True


ALL = CleanRules()


def clean_text(text: str, rules: CleanRules = ALL, repairs: Counter[str] | None = None) -> str:
    """The text after cleaning by the rules; it may be empty.

    Nested markup is removed layer by layer. A text with more than `MAX_PASSES` layers, which does not occur in
    practice, becomes empty: so the time is bounded, and nothing is missed below the last layer.

    Args:
        repairs: one is added for `repair.MOJIBAKE` and `repair.TAGS` each, if the text had any.

    >>> clean_text("&gt; Where?\\n\\n**See** [the map](https://example.com/a), /u/some_one!")
    'See the map, <user>!'
    >>> clean_text("Write to a.b@example.com or look at www.example.com/a.")
    'Write to <email> or look at <url>.'
    """
    repaired = set()
    for _ in range(MAX_PASSES):
        before = text
        if rules.mojibake:
            text = without_mojibake(text)
            if text != before:
                repaired.add(MOJIBAKE)
        if rules.markdown:
            text = plain_text(text, rules.quotes)
        elif rules.quotes:
            text = without_quotes(text)
        if rules.tags and ">" in text:  # after entities, which the dumps use for all tags
            plain = without_tags(text)
            if plain != text:
                repaired.add(TAGS)
            text = plain
        if rules.masks:
            text = mask(text)
        if text == before:
            break
    else:
        text = ""
    if repairs is not None:
        repairs.update(repaired)
    return text


def clean_pairs(
    pairs: pa.Table, rules: CleanRules = ALL, repairs: Counter[str] | None = None
) -> tuple[pa.Table, Outcomes]:
    """Clean both texts of every pair, and drop pairs with too little left.

    Args:
        pairs: columns message, reply and language; others are kept.
        repairs: see `clean_text`; added to.

    Returns:
        The kept pairs in their order, and the outcomes per language: `kept`, or the first reason that applies, in the
        order: empty message, empty reply, nothing but masks on one side.
    """
    reasons: list[pa.Array] = []
    sides: list[list[pa.Array]] = [[], []]
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        both = [clean_column(batch[name], rules, repairs) for name in ("message", "reply")]
        reasons.append(_reasons(*both))
        for arrays, column in zip(sides, both, strict=True):
            arrays.append(column)
    for name, arrays in zip(("message", "reply"), sides, strict=True):
        column = pa.chunked_array(arrays, pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(name), name, column)
    outcomes = pa.chunked_array(reasons, pa.string())
    told = Counter(zip(pairs["language"].to_pylist(), outcomes.to_pylist(), strict=True))
    return pairs.filter(pc.equal(outcomes, KEPT)), told


def clean_column(texts: pa.Array, rules: CleanRules = ALL, repairs: Counter[str] | None = None) -> pa.Array:
    """`clean_text` of every text of a column; only texts that may change become Python strings, step by step.

    Args:
        texts: strings without nulls.
    """
    changing, rows = texts, np.arange(len(texts))  # the texts that the last pass changed, and where they are
    repaired = {kind: np.zeros(len(texts), bool) for kind in (MOJIBAKE, TAGS)}
    for _ in range(MAX_PASSES):
        after = changing
        changes = np.zeros(len(rows), bool)
        for steps, kind in _steps(rules):
            after, where = change_in_turn(after, steps)
            changes[where] = True
            if kind:
                repaired[kind][rows[where]] = True
        changes &= pc.not_equal(after, changing).to_numpy(zero_copy_only=False)  # a step may undo another
        changing, rows = after.filter(pa.array(changes)), rows[changes]
        texts = with_rows(texts, rows, changing)
        if not len(rows):
            break
    else:
        texts = with_rows(texts, rows, pa.array([""] * len(rows), pa.string()))
    if repairs is not None:
        repairs.update({kind: int(which.sum()) for kind, which in repaired.items() if which.any()})
    return texts


def _steps(rules: CleanRules) -> Iterator[tuple[Sequence[Step], str]]:
    """What a pass of `clean_text` does to a text, and how texts that this repairs are counted."""
    if rules.mojibake:
        yield [Step(without_mojibake, MAY_BE_MOJIBAKE)], MOJIBAKE
    if rules.markdown:
        yield [Step(partial(plain_text, quotes=rules.quotes), MAY_BE_MARKED)], ""
    elif rules.quotes:
        yield [Step(without_quotes, MAY_BE_MARKED)], ""
    if rules.tags:
        yield [Step(without_tags, MAY_BE_TAGGED)], TAGS
    if rules.masks:
        yield MASKS, ""


def _reasons(messages: pa.Array, replies: pa.Array) -> pa.Array:
    """`_reason` of every pair; only texts that may be empty or masks become Python strings."""
    few = pc.or_(*(pc.match_substring_regex(side, _MAY_BE_DROPPED) for side in (messages, replies)))
    rows = np.flatnonzero(few.to_numpy(zero_copy_only=False))
    pairs = zip(*(side.take(pa.array(rows)).to_pylist() for side in (messages, replies)), strict=True)
    found = pa.array([_reason(message, reply) for message, reply in pairs], pa.string())
    return with_rows(pa.array([KEPT] * len(messages), pa.string()), rows, found)


def _reason(message: str, reply: str) -> str:
    if not message or message.isspace():
        return EMPTY_MESSAGE
    if not reply or reply.isspace():
        return EMPTY_REPLY
    return ONLY_MASKS if _only_masks(message) or _only_masks(reply) else KEPT


def _only_masks(text: str) -> bool:
    return bool("<" in text and _ONLY_MASKS.fullmatch(text) and re.search(MASK_PATTERN, text))
