"""Texts of a synthetic dump: phrases of the sample's phrase books, and tails of their words in random order."""

import json
import re
from dataclasses import dataclass
from functools import cache

from mrs_datasets.readers.sample import exchanges_of

WORDS = 4096  # entries of a language's word list; a word is in it as often as in its book
# Shares of the threads. English leads, as on Reddit, but a small month has every language.
SHARES = {
    "en": 0.40, "es": 0.10, "de": 0.09, "pt": 0.08, "fr": 0.08, "ja": 0.06, "sv": 0.05, "it": 0.05, "nl": 0.05,
    "ru": 0.04,
}  # fmt: skip
# An invented word of every language that stands for a toxic one, so that no real one is written.
TOXIC_WORDS = {code: {"ja": "ズログム", "ru": "злоргум"}.get(code, "zlorgum") for code in SHARES}


@dataclass(frozen=True)
class Speech:
    """One language; every text is escaped for JSON, without the quotes.

    Attributes:
        openings: messages, each with the number of its exchange.
        replies: by the number of the exchange.
    """

    language: str
    openings: list[tuple[str, int]]
    replies: list[tuple[str, ...]]
    words: list[str]
    space: str
    toxic: str


@cache
def speeches(ascii_only: bool) -> list[Speech]:
    """The ten languages in the order of `SHARES`; `ascii_only` escapes all other characters, as older dumps do."""

    def escaped(text: str) -> str:
        return json.dumps(text, ensure_ascii=ascii_only)[1:-1]

    result = []
    for language in SHARES:
        exchanges = exchanges_of(language)
        texts = [text for exchange in exchanges for text in (*exchange.messages, *exchange.replies)]
        # Japanese has no spaces: three characters serve as a word.
        pattern = r"\w{1,3}" if language == "ja" else r"\w[\w'’-]*"
        words = [escaped(word) for text in texts for word in re.findall(pattern, text)]
        openings = [(escaped(message), number) for number, one in enumerate(exchanges) for message in one.messages]
        replies = [tuple(map(escaped, exchange.replies)) for exchange in exchanges]
        listed = [words[i * len(words) // WORDS] for i in range(WORDS)]
        space = "" if language == "ja" else " "
        result.append(Speech(language, openings, replies, listed, space, escaped(TOXIC_WORDS[language])))
    return result
