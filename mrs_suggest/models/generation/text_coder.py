"""Texts of a generator to token ids and back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.models.generation.language_tokens import LanguageTokens, token_ids

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MESSAGE = "{message}"
PROMPT = "Answer this message with one short reply in {language}, as in a chat.\n\n{message}\n\nReply:"


@dataclass(frozen=True)
class Direction:
    """Which languages a generator reads and writes, and in which order it writes.

    Attributes:
        source, target: the language of all messages and of all replies; None: the one that is asked for.
        right_to_left: the last token of a reply is written first (Kaneko et al. 2020, as one of STAPLE's systems).
            Texts are always in their usual order; the tokens of labels and hypotheses are in that of writing.
    """

    source: str | None = None
    target: str | None = None
    right_to_left: bool = False

    def ordered(self, tokens: Sequence[int]) -> list[int]:
        """The tokens of a text in the order in which they are written, or these in the order of the text."""
        return list(reversed(tokens)) if self.right_to_left else list(tokens)


@dataclass(frozen=True)
class TextCoder:
    """Texts to token ids and back, by the rules of a model's row.

    Attributes:
        message_tokens, reply_tokens: the most tokens of a text, end tokens included; longer texts are cut.
    """

    tokenizer: PreTrainedTokenizerBase
    row: LanguageTokens
    config: Any
    message_tokens: int
    reply_tokens: int
    direction: Direction = field(default_factory=Direction)

    def messages(self, texts: Sequence[str], language: str) -> list[list[int]]:
        """The encoder's ids of each message."""
        source = self.source_language(language)
        before, after = self._ids(source, self.row.before), self._ids(source, self.row.after)
        room = self.message_tokens - len(before) - len(after)
        return [[*before, *ids, *after] for ids in self.cut(texts, room)]

    def replies(self, texts: Sequence[str]) -> list[list[int]]:
        """The labels of each reply: its tokens, in the order in which they are written, and end tokens."""
        end = self._ids("en", self.row.end)  # has no language in it
        return [[*self.direction.ordered(ids), *end] for ids in self.cut(texts, self.reply_tokens - len(end))]

    def source_language(self, language: str) -> str:
        """The language of the messages if `language` is asked for."""
        return self.direction.source or language

    def vocabulary_hash(self) -> str:
        """Eight hexadecimal digits, equal for equal vocabularies."""
        entries = json.dumps(sorted(self.tokenizer.get_vocab().items()))
        return hashlib.sha256(entries.encode()).hexdigest()[:8]

    def prompt(self, language: str) -> list[int]:
        """The decoder's first ids; InputError if the vocabulary lacks the language's token."""
        return self._ids(self.direction.target or language, self.row.prompt)

    def text(self, ids: Sequence[int]) -> str:
        return str(self.tokenizer.decode(self.direction.ordered(ids), skip_special_tokens=True)).strip()

    def cut(self, texts: Sequence[str], room: int) -> list[list[int]]:
        """The ids of texts alone, at most `room` of each."""
        if not texts:
            return []
        found = self.tokenizer(
            list(texts), add_special_tokens=False, split_special_tokens=True, truncation=True, max_length=max(room, 1)
        )
        return list(found["input_ids"])

    def _ids(self, language: str, places: tuple[str, ...]) -> list[int]:
        return token_ids(self.row, language, places, self.config, self.tokenizer)


@dataclass(frozen=True)
class PromptCoder(TextCoder):
    """Messages within the prompt of a language model; `message_tokens` counts the message alone.

    The texts around a message are tokenized apart from it, so that nothing in it becomes a special token.

    Attributes:
        template: the prompt, with `{message}`, and `{language}` (English) or `{code}` (en) for the language of the
            reply; the user's turn if the tokenizer has a chat template.
    """

    template: str = PROMPT

    def messages(self, texts: Sequence[str], language: str) -> list[list[int]]:
        before, after = self._around(language)
        return [[*before, *ids, *after[:-1]] for ids in self.cut(texts, self.message_tokens)]

    def prompt(self, language: str) -> list[int]:
        return self._around(language)[1][-1:]

    def rendered(self, language: str) -> str:
        """The text before a reply, with `{message}` for the message."""
        tokenizer: Any = self.tokenizer
        text = self.template.replace("{language}", language_name(language)).replace("{code}", language)
        if not tokenizer.chat_template:
            return f"{tokenizer.bos_token or ''}{text}"
        turns = [{"role": "user", "content": text}]
        found = str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        return require_prompt(found, "the tokenizer's chat template")

    def _around(self, language: str) -> list[list[int]]:
        parts = self.rendered(language).split(MESSAGE)
        return [list(self.tokenizer(part, add_special_tokens=False)["input_ids"]) for part in parts]


def require_prompt(prompt: str, where: str = "--prompt") -> str:
    """The prompt; InputError if it does not have the message once and text after it."""
    if not isinstance(prompt, str) or prompt.count(MESSAGE) != 1 or prompt.endswith(MESSAGE):
        raise InputError(f"{where}: expected a text with {MESSAGE} once and text after it, found {prompt!r}.")
    return prompt
