"""Suggestions of a generator, to serve and to evaluate."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np

from mrs_suggest.common.suggest_arguments import answer_all, require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.exports import CTRANSLATE2
from mrs_suggest.models.generation.reply_writer import MOST_SUGGESTIONS, ReplyWriter
from mrs_suggest.models.model_folder import panics_told, tokenizer_probed
from mrs_suggest.suggest.answering import MODEL, ServedModel, Suggestion

if TYPE_CHECKING:
    from mrs_suggest.models.generation.generator import Generator


class GenerationSuggester(ServedModel):
    """Writes replies; a score is the reply's mean log-probability per token, comparable for one message only."""

    def __init__(self, generator: ReplyWriter, folder: Path | None = None) -> None:
        self.generator, self._folder = generator, folder or Path("the generator")

    @classmethod
    def load_from(cls, path: Path) -> GenerationSuggester:
        """Load the folder of a generator, with its export for CTranslate2 if it has one.

        Raises:
            InputError: a file is missing or damaged.
        """
        with tokenizer_probed(path, path):
            generator: ReplyWriter | None = None
            if (path / CTRANSLATE2).is_dir():
                from mrs_suggest.models.generation.ctranslate2_generator import ExportedGenerator

                generator = ExportedGenerator.load(path)
            if generator is None:
                from mrs_suggest.models.generation.generator import Generator

                generator = Generator.load(path)
            generator.coder.messages(["?"], generator.languages[0])  # a failing tokenizer fails now
        return cls(generator, path)

    @property
    def languages(self) -> list[str]:
        return self.generator.languages

    def most(self, k: int) -> int:
        return min(k, MOST_SUGGESTIONS)

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        self.require_language(language)
        texts, count = require_messages(messages), require_count(k, MOST_SUGGESTIONS)
        with panics_told(self._folder, self._folder):
            return answer_all(texts, lambda asked: Writer(self.generator).suggest(asked, language, count))


class Writer:
    """A generator as a system to evaluate; with its `language` it ranks pools, unless CTranslate2 runs it."""

    def __init__(self, generator: ReplyWriter, name: str = MODEL, language: str = "") -> None:
        self.name, self._generator, self._language = name, generator, language

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        found = self._generator.suggest(messages, language, k)
        return [[Suggestion(text, score) for text, score in row] for row in found]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        """As `Ranker.score_pools`: log-probabilities per token, each reply to a message scored once."""
        generator, numbered = cast("Generator", self._generator), np.array(messages, object)
        scores = np.empty(pools.shape, np.float32)
        for message in dict.fromkeys(messages):
            rows = np.flatnonzero(numbered == message)
            wanted, places = np.unique(pools[rows], return_inverse=True)
            found = generator.log_probs(message, [candidates[number] for number in wanted], self._language)
            scores[rows] = found[places.reshape(len(rows), -1)]
        return scores
