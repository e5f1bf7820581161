"""Stage 6, clean: Markdown to text, HTML and wrongly decoded characters repaired, masks for links, names and addresses.

Off in the profile `paper`, on in `clean`: Zhang et al. 2021 do not mention such a step. The result depends only on the
text itself, and cleaning it again changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pyarrow as pa

from mrs_datasets.reddit.language import BATCH_ROWS, KEPT, Outcomes
from mrs_datasets.reddit.markup import MASK_PATTERN, mask, plain_text, without_quotes
from mrs_datasets.reddit.repair import MOJIBAKE, TAGS, without_mojibake, without_tags

MAX_PASSES = 12  # over a text, until nothing changes; real texts need two or three

EMPTY_MESSAGE, EMPTY_REPLY = "message empty after cleaning", "reply empty after cleaning"
ONLY_MASKS = "nothing but masks"

_ONLY_MASKS = re.compile(rf"(?:{MASK_PATTERN}|[\s!-/:-@\[-`{{-~])+")


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
    messages: list[pa.Array] = []
    replies: list[pa.Array] = []
    reasons: list[str] = []
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        sides = [
            [clean_text(text, rules, repairs) for text in batch[name].to_pylist()] for name in ("message", "reply")
        ]
        reasons += [_reason(message, reply) for message, reply in zip(*sides, strict=True)]
        messages.append(pa.array(sides[0], pa.string()))
        replies.append(pa.array(sides[1], pa.string()))
    for name, arrays in (("message", messages), ("reply", replies)):
        column = pa.chunked_array(arrays, pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(name), name, column)
    kept = pa.array([reason == KEPT for reason in reasons], pa.bool_())
    return pairs.filter(kept), Counter(zip(pairs["language"].to_pylist(), reasons, strict=True))


def _reason(message: str, reply: str) -> str:
    if not message or message.isspace():
        return EMPTY_MESSAGE
    if not reply or reply.isspace():
        return EMPTY_REPLY
    return ONLY_MASKS if _only_masks(message) or _only_masks(reply) else KEPT


def _only_masks(text: str) -> bool:
    return bool("<" in text and _ONLY_MASKS.fullmatch(text) and re.search(MASK_PATTERN, text))
