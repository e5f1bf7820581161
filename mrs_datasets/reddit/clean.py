"""Stage 6, clean: Markdown to text, masks in place of links, names and addresses, and no pair twice.

Off in the profile `paper`, on in `clean`: Zhang et al. 2021 say nothing of such a step. What a text becomes is decided
by its own characters alone, and a text that was cleaned is clean: cleaning it again changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_core.text import normalise_reply
from mrs_datasets.reddit.language import BATCH_ROWS, KEPT, Outcomes
from mrs_datasets.reddit.markup import MASK_PATTERN, mask, plain_text, without_quotes
from mrs_datasets.reddit.near_duplicates import NearRules, near_duplicates, signatures
from mrs_datasets.reddit.partition import stable_hashes

MAX_PASSES = 12  # over a text, until nothing changes; what people write needs two or three

EMPTY_MESSAGE, EMPTY_REPLY = "message empty after cleaning", "reply empty after cleaning"
ONLY_MASKS = "nothing but masks"
EXACT, NEAR = "exact duplicate", "near duplicate"

_ONLY_MASKS = re.compile(rf"(?:{MASK_PATTERN}|[\s!-/:-@\[-`{{-~])+")


@dataclass(frozen=True)
class CleanRules:
    """What is cleaned.

    Attributes:
        markdown: Markdown, as Reddit has it, becomes the text that it shows, in one line; entities are decoded.
        quotes: lines that quote (`> ...`) are left out.
        masks: links and the paths of threads, `u/name`, and e-mail addresses become `<url>`, `<user>` and `<email>`. A
            host without a path (example.com) is a word that people say, and stays, as `r/name` does.
        exact: of pairs with the same message and the same reply, up to case and punctuation, the first one stays.
        near: of pairs whose messages and whose replies are nearly the same, the first one stays; None: all of them.
    """

    markdown: bool = True
    quotes: bool = True
    masks: bool = True
    exact: bool = True
    near: NearRules | None = field(default_factory=NearRules)


ALL = CleanRules()


def clean_text(text: str, rules: CleanRules = ALL) -> str:
    """The text without what the rules take out; perhaps nothing is left.

    Markup inside markup comes off layer by layer. A text with more than `MAX_PASSES` layers, which nobody writes, is
    taken to be empty: so the time is bounded, and nothing gets by below the last layer.

    >>> clean_text("&gt; Where?\\n\\n**See** [the map](https://example.com/a), /u/some_one!")
    'See the map, <user>!'
    >>> clean_text("Write to a.b@example.com or look at www.example.com/a.")
    'Write to <email> or look at <url>.'
    """
    for _ in range(MAX_PASSES):
        before = text
        if rules.markdown:
            text = plain_text(text, rules.quotes)
        elif rules.quotes:
            text = without_quotes(text)
        if rules.masks:
            text = mask(text)
        if text == before:
            return text
    return ""


def clean_pairs(pairs: pa.Table, rules: CleanRules = ALL) -> tuple[pa.Table, Outcomes]:
    """Clean both texts of every pair, and drop the pairs of which too little is left or that came before.

    Duplicates are looked for in this table alone. A reply that many give ("thanks!") is no duplicate as long as the
    messages differ. In memory, beside the table: about 0.3 KB a pair.

    Args:
        pairs: columns message, reply and language (within which near duplicates are looked for); others pass through.

    Returns:
        The kept pairs in their order, and the outcomes per language: `kept`, or the first reason that applies, in the
        order: empty message, empty reply, nothing but masks on one side, exact duplicate, near duplicate.

    Raises:
        MissingExtraError: xxhash is not installed.
    """
    messages: list[pa.Array] = []
    replies: list[pa.Array] = []
    reasons: list[str] = []
    signed: list[npt.NDArray[np.uint16]] = []  # of the pairs that are kept so far
    seen: set[int] = set()
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        sides = [[clean_text(text, rules) for text in batch[name].to_pylist()] for name in ("message", "reply")]
        found = [_reason(message, reply) for message, reply in zip(*sides, strict=True)]
        if rules.exact or rules.near:
            signed += _mark_repeated(sides, found, seen, rules)
        messages.append(pa.array(sides[0], pa.string()))
        replies.append(pa.array(sides[1], pa.string()))
        reasons += found
    for name, arrays in (("message", messages), ("reply", replies)):
        column = pa.chunked_array(arrays, pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(name), name, column)
    languages = pairs["language"].to_pylist()
    if rules.near and signed:
        _mark_near(np.concatenate(signed), languages, reasons, rules.near)
    kept = pa.array([reason == KEPT for reason in reasons], pa.bool_())
    return pairs.filter(kept), Counter(zip(languages, reasons, strict=True))


def _reason(message: str, reply: str) -> str:
    if not message or message.isspace():
        return EMPTY_MESSAGE
    if not reply or reply.isspace():
        return EMPTY_REPLY
    return ONLY_MASKS if _only_masks(message) or _only_masks(reply) else KEPT


def _only_masks(text: str) -> bool:
    return bool("<" in text and _ONLY_MASKS.fullmatch(text) and re.search(MASK_PATTERN, text))


def _mark_repeated(
    sides: list[list[str]], reasons: list[str], seen: set[int], rules: CleanRules
) -> list[npt.NDArray[np.uint16]]:
    """Put `EXACT` at the pairs whose key is in `seen`, and add the keys; return signatures (m, 2, ...) of the rest."""
    rows = [row for row, reason in enumerate(reasons) if reason == KEPT]
    forms = [[normalise_reply(side[row]) for row in rows] for side in sides]
    if rules.exact:
        fresh = []
        for place, key in enumerate(pair_keys(*forms).tolist()):
            if key in seen:
                reasons[rows[place]] = EXACT
            else:
                seen.add(key)
                fresh.append(place)
        forms = [[side[place] for place in fresh] for side in forms]
    return [np.stack([signatures(side, rules.near) for side in forms], axis=1)] if rules.near and forms[0] else []


def pair_keys(messages: Sequence[str], replies: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(n,) normalised messages and replies -> (n,) stable 64-bit keys, equal for equal pairs."""
    return stable_hashes(pa.array(map("\0".join, zip(messages, replies, strict=True)), pa.large_string()))


def _mark_near(signed: npt.NDArray[np.uint16], languages: list[Any], reasons: list[str], rules: NearRules) -> None:
    """Put `NEAR` at the pairs that have one nearly the same before them in their language."""
    rows: dict[str, list[tuple[int, int]]] = {}  # language -> (row of `signed`, row of the table)
    kept = (row for row, reason in enumerate(reasons) if reason == KEPT)
    for place, row in enumerate(kept):
        rows.setdefault(languages[row], []).append((place, row))
    for mine in rows.values():
        found = near_duplicates(signed[[place for place, _ in mine]], rules)
        for (_, row), near in zip(mine, found.tolist(), strict=True):
            if near:
                reasons[row] = NEAR
