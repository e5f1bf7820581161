"""What a generator adds to a ranker: replies that it writes, and how likely it finds the best ones of the others.

"Generate, then rerank" is future work of Zhang et al. 2021 (section 6). A generator is too dear for every reply of a
response set, so it looks only at the candidates that the other parts leave.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.tokenize import Tokenizer, get_tokenizer
from mrs_suggest.suggest.ranking.mixture import standardised
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams

GENERATOR_PART = "generator"
MEANING = "the generator's log-probability of the reply per token, among the best candidates by the other parts"
Array = NDArray[np.float32]


class ReplyGenerator(Protocol):
    """What a ranker asks of a generator."""

    def load(self) -> None:
        """Read it now, where it is read at its first use.

        Raises:
            InputError: a file is missing or damaged.
        """

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        """Up to `count` replies to each message, best first."""

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> Array:
        """(n,) log-probability per token of each reply to one message."""


@dataclass(frozen=True)
class SecondStage:
    """The generator in the ranker of one language.

    Attributes:
        encode_replies: texts -> (n, d) reply vectors; called for the direct scores of generated replies only.
        generated: replies that it writes for a message as candidates; 0: it only scores.
        facts: where it comes from, for the record.
    """

    generator: ReplyGenerator
    encode_replies: Callable[[list[str]], Array]
    language: str
    generated: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, messages: Sequence[str]) -> list[list[str]]:
        """The replies that it writes for each message."""
        if not self.generated:
            return [[] for _ in messages]
        return self.generator.write(messages, self.language, self.generated)

    def likely(self, message: str, replies: Sequence[str]) -> Array:
        """(n,) log-probabilities per token, standardised over these replies."""
        found = self.generator.log_probs(message, replies, self.language)
        return standardised(np.asarray(found, np.float32)[:, None])[:, 0]

    def similarities(self, replies: Sequence[str]) -> NDArray[np.float64]:
        """(n, n) weighted ROUGE of replies whose n-grams are not stored."""
        return ReplyNgrams.build(replies, self.tokenizer).similarities(range(len(replies)))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The metric's for the language, or its characters where that is not installed (Japanese without MeCab)."""
        try:
            return get_tokenizer(self.language)
        except (ImportError, ValueError) as error:
            print(
                f"note: generated replies in {self.language} are compared by their characters, since the tokenizer of "
                f"the language is missing ({error})",
                file=sys.stderr,
            )
            return CHARACTERS


def _spaced_characters(text: str) -> str:
    return " ".join("".join(text.split()))


CHARACTERS = Tokenizer("characters", "1", _spaced_characters)
