"""The generator of a ranker: it writes further replies, and scores the best candidates of the first stage.

"Generate, then rerank" is future work of Zhang et al. 2021 (section 6). Scoring every reply of a response set would be
too slow, so the generator only sees the candidates that the other parts leave.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.tokenize import Tokenizer, get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.starting_points import GENERATOR
from mrs_suggest.suggest.ranking.mixture import standardised
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams

if TYPE_CHECKING:
    from mrs_suggest.models.generation.generator import Generator

GENERATOR_PART = "generator"
MEANING = "the generator's log-probability of the reply per token, among the best candidates by the other parts"
Array = NDArray[np.float32]


class ReplyGenerator(Protocol):
    """A generator as a ranker uses it."""

    def load(self) -> None:
        """Load it now, if it is loaded on first use.

        Raises:
            InputError: a file is missing or damaged.
        """

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        """Up to `count` replies to each message, best first."""

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> Array:
        """(n,) log-probability per token of each reply to one message."""


class StoredGenerator:
    """The generator in a model's folder, loaded on first use, as is transformers.

    Raises:
        InputError: the folder does not contain a generator.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / GENERATOR).is_file():
            raise InputError(f"{folder / GENERATOR}: missing, and the ranker needs it; {again(folder.parent)}.")
        self._folder = folder

    @cached_property
    def _generator(self) -> Generator:
        from mrs_suggest.models.generation.generator import Generator

        return Generator.load(self._folder)

    def load(self) -> None:
        self._generator  # noqa: B018

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        return write_replies(self._generator, messages, language, count)

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> Array:
        return self._generator.log_probs(message, replies, language)


def write_replies(generator: Generator, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
    """The texts of `Generator.suggest`, without their scores."""
    return [[text for text, _ in row] for row in generator.suggest(messages, language, count)]


class StoredReplyEncoder:
    """Encodes replies with the retriever in a folder, loaded on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _encode(self) -> Callable[[list[str]], Array]:
        from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
        from mrs_suggest.models.retrieval.encode import encode_replies

        model = load_dual_encoder(self._folder)
        return lambda texts: encode_replies(model, texts).numpy()

    def __call__(self, texts: list[str]) -> Array:
        return self._encode(texts)


@dataclass(frozen=True)
class SecondStage:
    """The generator in the ranker of one language.

    Attributes:
        encode_replies: texts -> (n, d) reply vectors, for the direct scores of generated replies.
        generated: number of replies that it writes for a message; 0: it only scores.
        facts: its origin, for the record.
    """

    generator: ReplyGenerator
    encode_replies: Callable[[list[str]], Array]
    language: str
    generated: int
    facts: Mapping[str, Any] = field(default_factory=dict)

    def write(self, messages: Sequence[str]) -> list[list[str]]:
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
        """The metric's tokenizer, or single characters if that is not installed (Japanese without MeCab)."""
        try:
            return get_tokenizer(self.language)
        except (ImportError, ValueError) as error:
            print(
                f"note: generated replies in {self.language} are compared by their characters, since the tokenizer of "
                f"the language is missing ({error})",
                file=sys.stderr,
            )
            return Tokenizer("characters", "1", lambda text: " ".join("".join(text.split())))
