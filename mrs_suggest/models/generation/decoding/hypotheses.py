"""What a search finds, whatever ran it: hypotheses, and which of their texts are suggested."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from mrs_suggest.common.text.text import normalise_reply

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_SCRIPTS_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")


class Hypothesis(NamedTuple):
    """A decoded reply: its tokens without prompt, end and padding, and its length-normalised log-probability.

    With groups the score holds the diversity penalties, too: it is what the search maximised.
    """

    tokens: list[int]
    score: float


def by_score(hypotheses: Iterable[Hypothesis]) -> list[Hypothesis]:
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def blocked_token_ids(tokenizer: PreTrainedTokenizerBase, blocked: Sequence[str]) -> list[list[int]]:
    """The token sequences that write the given words or phrases, for `decode`.

    A word is blocked as given, in lower case and capitalised, at the start of a text and after a space; a word in a
    script without spaces also within a text. A word that the vocabulary cannot write is left out.

    Only the tokenizer's own way to write the word is blocked, and longer words that begin with the same token are hit
    too: this keeps the search from spending its beams on it, and `suggestions` checks the text.
    """
    found: dict[tuple[int, ...], None] = {}
    for word in (word.strip() for word in blocked):
        lower = word.lower()
        for form in dict.fromkeys((word, lower, lower[:1].upper() + lower[1:])):
            ways = [_ids(tokenizer, form), _ids(tokenizer, f" {form}")]
            if _SCRIPTS_WITHOUT_SPACES.search(form):  # a piece without the mark of a word's start
                before, within = _ids(tokenizer, "("), _ids(tokenizer, f"({form}")
                ways += [within[len(before) :]] if within[: len(before)] == before else []
            found |= dict.fromkeys(tuple(way) for way in ways)
    unknown = tokenizer.unk_token_id
    return [list(ids) for ids in found if ids and unknown not in ids]


def suggestions(
    hypotheses_texts: Sequence[tuple[str, float]], k: int, blocked: Sequence[str] = ()
) -> list[tuple[str, float]]:
    """The first k of (text, score), given best first, without duplicates (`normalise_reply`) and empty ones.

    Args:
        blocked: words and phrases that no text may hold, whatever stands around them and however they are written
            (case, width, white space); in a script with spaces, parts of longer words do not count.

    >>> suggestions([("Thanks!", -0.1), ("thanks", -0.2), (" ", -0.3), ("Sure.", -0.4)], 3)
    [('Thanks!', -0.1), ('Sure.', -0.4)]
    >>> suggestions([("Oh, “Sure”.", -0.1), ("Surely.", -0.2)], 3, ["sure"])
    [('Surely.', -0.2)]
    """
    kept: dict[str, tuple[str, float]] = {}
    unwanted = [_pattern(word) for word in blocked]
    for text, score in hypotheses_texts:
        form = normalise_reply(text)
        if form and not any(pattern.search(_folded(text)) for pattern in unwanted):
            kept.setdefault(form, (text, score))
    return list(kept.values())[: max(k, 0)]


@lru_cache(maxsize=4096)
def _pattern(word: str) -> re.Pattern[str]:
    """The pattern that finds a blocked word in a folded text."""
    words = r"\s+".join(map(re.escape, _folded(word).split()))
    return re.compile(words if _SCRIPTS_WITHOUT_SPACES.search(word) else rf"(?<!\w){words}(?!\w)")


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _ids(tokenizer: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])
