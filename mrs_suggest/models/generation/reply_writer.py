"""Writes replies of a saved generator, whatever runs it, and the settings of `generator.json`; needs no torch."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import require_count, require_messages
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, blocked_token_ids, suggestions
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from mrs_suggest.models.generation.language_tokens import LanguageTokens, row_named
from mrs_suggest.models.generation.text_coder import Direction, PromptCoder, TextCoder, require_prompt
from mrs_suggest.models.starting_points import ALLOWED, GENERATOR

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MOST_SUGGESTIONS = 50  # ours: a beam search for more would be slow


class ReplyWriter(ABC):
    """Writes replies by a beam search, on torch or on CTranslate2, in the `languages` that the model was trained on."""

    def __init__(self, coder: TextCoder, languages: Sequence[str], decoding: Decoding) -> None:
        self.coder, self.decoding = coder, decoding
        self.languages = list(languages)
        blocked = blocked_token_ids(coder.tokenizer, decoding.blocked) if decoding.blocked else []
        self._blocked = [coder.direction.ordered(ids) for ids in blocked]

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[tuple[str, float]]]:
        """Up to k replies per message with their log-probabilities per token, best first, without duplicates.

        All beams are considered, since some may repeat a reply; fewer than k are returned if the others are duplicates
        or hold a blocked word. If k exceeds the model's beams, more are searched, which can change the first replies.

        Raises:
            ArgumentError: the messages are not a list of texts, or k is not a whole number from 1 to
                `MOST_SUGGESTIONS`.
        """
        k = require_count(k, MOST_SUGGESTIONS)
        inputs = self.coder.messages(require_messages(messages), language)
        settings = self.decoding if k <= self.decoding.beams else replace(self.decoding, beams=k * self.decoding.groups)
        found = self._search(inputs, self.coder.prompt(language), settings, language)
        texts = [[(self._text(tokens, language), score) for tokens, score in row] for row in found]
        return [suggestions(row, k, self.decoding.blocked) for row in texts]

    def hypotheses(self, texts: Sequence[str], language: str, settings: Decoding) -> list[list[Hypothesis]]:
        """The hypotheses of all beams for each source, best first, with the model's own scores, without penalties.

        Raises:
            ArgumentError: the sources are not a list of texts.
            InputError: the model is too short for them, or does not support the settings.
        """
        inputs, prompt = self.coder.messages(require_messages(texts), language), self.coder.prompt(language)
        return self._own_scores(inputs, prompt, self._search(inputs, prompt, settings, language), settings)

    @abstractmethod
    def _search(
        self, inputs: Sequence[Sequence[int]], prompt: Sequence[int], settings: Decoding, language: str
    ) -> list[list[Hypothesis]]:
        """The hypotheses of all beams for each input, as `decode` returns them."""

    def _text(self, tokens: Sequence[int], language: str) -> str:
        """The text of a hypothesis; an empty one is not suggested."""
        return self.coder.text(tokens)

    def _own_scores(
        self, inputs: Sequence[Sequence[int]], prompt: Sequence[int], found: list[list[Hypothesis]], settings: Decoding
    ) -> list[list[Hypothesis]]:
        """The hypotheses with scores of the model alone, without penalties between groups; best first."""
        return found


class GeneratorSettings(NamedTuple):
    """The content of `generator.json`, and of `replies.json` if there are no other replies to suggest."""

    row: LanguageTokens
    message_tokens: int
    reply_tokens: int
    decoding: Decoding
    languages: list[str]
    direction: Direction
    prompt: str | None = None
    sampling: Sampling | None = None
    replies: dict[str, list[str]] | None = None

    def coder(self, tokenizer: PreTrainedTokenizerBase, config: Any) -> TextCoder:
        """The coder of a generator with this tokenizer and the configuration of its model."""
        given = tokenizer, self.row, config, self.message_tokens, self.reply_tokens, self.direction
        return TextCoder(*given) if self.prompt is None else PromptCoder(*given, self.prompt)


def read_generator_settings(folder: Path) -> GeneratorSettings:
    """The settings of a saved generator; InputError if the file is missing or damaged."""
    path = folder / GENERATOR
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        row, lengths = row_named(facts["language_tokens"]), (int(facts["message_tokens"]), int(facts["reply_tokens"]))
        decoding, languages = Decoding(**facts["decoding"]), facts["languages"]
        direction, prompt, drawn = Direction(**facts["direction"]), facts.get("prompt"), facts.get("sampling")
        of_prompt = None if prompt is None else require_prompt(prompt), Sampling(**drawn) if drawn else None
        replies = None
        if facts.get("constrained"):
            path = folder / ALLOWED
            found = json.loads(path.read_text(encoding="utf-8"))
            replies = {code: list(map(str, texts)) for code, texts in found.items()}
        if not isinstance(languages, list) or not languages or not all(isinstance(code, str) for code in languages):
            raise TypeError(f"languages: expected a list of codes, found {languages!r}")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
        raise InputError(f"{path}: no usable settings of a generator ({error}); {again(folder)}.") from None
    return GeneratorSettings(row, *lengths, decoding, languages, direction, *of_prompt, replies)
