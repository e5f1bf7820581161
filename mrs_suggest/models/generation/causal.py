"""Replies of a causal language model: its prompt, its search, and replies that it may choose from.

The prompt names the language of the reply, and the message stands in it. Both are tokenized apart: what a message says
never becomes a special token, and the tokens around it are the same for all messages of a language.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from zlib import crc32

import numpy as np
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import require_count, require_messages
from mrs_suggest.common.text.languages import language_name
from mrs_suggest.models.adapters import has_adapter
from mrs_suggest.models.checkpoint_loading import OPTION, from_pretrained
from mrs_suggest.models.generation.decoding.beam_search import by_score, decode, suggestions
from mrs_suggest.models.generation.decoding.sampling import Sampling, sample
from mrs_suggest.models.generation.decoding.search_steps import Following
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import (
    MOST_SUGGESTIONS,
    Generator,
    TextCoder,
    load_adapted,
    read_generator_settings,
)
from mrs_suggest.models.generation.language_tokens import ENCODER_TYPES, ROWS
from mrs_suggest.models.generation.padding import Batch, causal_batch
from mrs_suggest.models.starting_points import LANGUAGE_MODEL

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

MESSAGE = "{message}"
PROMPT = "Answer this message with one short reply in {language}, as in a chat.\n\n{message}\n\nReply:"
_MARK = "\ufdd0"  # stands for the message in a prompt: a code point that no text has


def require_prompt(prompt: str) -> str:
    """The prompt; InputError if the message would not stand in it once, with text behind it."""
    if not isinstance(prompt, str) or prompt.count(MESSAGE) != 1 or prompt.endswith(MESSAGE):
        raise InputError(f"--prompt: expected a text with {MESSAGE} once and text after it, found {prompt!r}.")
    return prompt


@dataclass(frozen=True)
class CausalCoder(TextCoder):
    """Messages within the prompt of a language model; `message_tokens` counts the message alone.

    Attributes:
        template: the prompt, with `{message}`, and `{language}` (English) or `{code}` (en) for the language of the
            reply. It is the user's turn where the tokenizer has a chat template, and else the text before the reply.
    """

    template: str = PROMPT

    def messages(self, texts: Sequence[str], language: str) -> list[list[int]]:
        before, after = self._around(language)
        return [[*before, *ids, *after[:-1]] for ids in self._cut(texts, self.message_tokens)]

    def prompt(self, language: str) -> list[int]:
        return self._around(language)[1][-1:]

    def rendered(self, language: str) -> str:
        """The text that the model continues, with `{message}` for the message."""
        text = self.template.replace("{language}", language_name(language)).replace("{code}", language)
        tokenizer: Any = self.tokenizer
        if not tokenizer.chat_template:
            return f"{tokenizer.bos_token or ''}{text}"
        turns = [{"role": "user", "content": text.replace(MESSAGE, _MARK)}]
        found = str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))
        if found.count(_MARK) != 1 or found.endswith(_MARK):
            raise InputError(f"{OPTION}: the tokenizer's chat template does not put the user's turn before the reply.")
        return found.replace(_MARK, MESSAGE)

    def _around(self, language: str) -> tuple[list[int], list[int]]:
        parts = self.rendered(language).split(MESSAGE)
        before, after = (list(self.tokenizer(part, add_special_tokens=False)["input_ids"]) for part in parts)
        return before, after


class Allowed(NamedTuple):
    """The replies that a model may choose from: the text of each by its tokens, and what may follow a beginning."""

    texts: dict[tuple[int, ...], str]
    following: Following

    @classmethod
    def of(cls, replies: Sequence[str], coder: TextCoder, most: int, end: int) -> Allowed:
        """Those of at most `most` tokens."""
        found = coder.tokenizer(list(replies), add_special_tokens=False, split_special_tokens=True)["input_ids"]
        texts: dict[tuple[int, ...], str] = {}
        for ids, reply in zip(found, replies, strict=True):
            if 0 < len(ids) <= most:
                texts.setdefault(tuple(ids), reply)
        following: dict[tuple[int, ...], dict[int, None]] = {}
        for tokens in texts:
            for place, token in enumerate((*tokens, end)):
                following.setdefault(tokens[:place], {})[token] = None
        return cls(texts, {beginning: list(tokens) for beginning, tokens in following.items()})


class CausalGenerator(Generator):
    """Writes replies with a language model: the best beams, or the most probable of several samples.

    Args:
        sampling: draw replies instead of searching for them; the same for the same message.
        replies: language -> the only replies that may be suggested; None: the model writes freely.
    """

    batch: ClassVar[Batch] = staticmethod(causal_batch)
    coder: CausalCoder

    def __init__(
        self, model: PreTrainedModel, coder: CausalCoder, languages: Sequence[str], decoding: Decoding,
        sampling: Sampling | None = None, replies: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(model, coder, languages, decoding)
        self.sampling, self.replies = sampling, replies
        settings: Any = model.generation_config
        ends = settings.eos_token_id if isinstance(settings.eos_token_id, list) else [settings.eos_token_id]
        own = coder.tokenizer.eos_token_id  # which ends the replies of training
        settings.eos_token_id = [own, *(number for number in ends if number not in (own, None))]
        self._allowed: dict[str, Allowed] = {}

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[tuple[str, float]]]:
        k, asked = require_count(k, MOST_SUGGESTIONS), require_messages(messages)
        inputs, prompts = self.coder.messages(asked, language), [self.coder.prompt(language)] * len(asked)
        allowed, settings = self.allowed(language), self.decoding
        following = allowed and allowed.following
        if self.sampling:
            sampling = replace(self.sampling, samples=max(k, self.sampling.samples))
            seeds = [crc32(message.encode()) for message in asked]
            drawn = sample(self.model, inputs, prompts, settings, sampling, seeds, self._blocked, following)
            found = [by_score(row) for row in drawn]
        else:
            settings = settings if k <= settings.beams else replace(settings, beams=k * settings.groups)
            found = decode(self.model, inputs, prompts, settings, settings.beams, self._blocked, following)
        if allowed is None:
            texts = [[(self.coder.text(tokens), score) for tokens, score in row] for row in found]
        else:
            known = [[(allowed.texts.get(tuple(tokens)), score) for tokens, score in row] for row in found]
            texts = [[(text, score) for text, score in row if text is not None] for row in known]
        return [suggestions(row, k, settings.blocked) for row in texts]

    def allowed(self, language: str) -> Allowed | None:
        """The replies that may be suggested in a language; None: the model writes freely.

        Raises:
            InputError: there are none, or all are too long.
        """
        if self.replies is None:
            return None
        if language not in self._allowed:
            most = self.decoding.max_tokens
            found = Allowed.of(self.replies.get(language, ()), self.coder, most, self.end)
            if not found.texts:
                raise InputError(f"--max_tokens {most}: no reply of {language} is that short; raise it.")
            self._allowed[language] = found
        return self._allowed[language]

    def log_probs(self, message: str, replies: Sequence[str], language: str, batch_size: int = 64) -> np.ndarray:
        losses, tokens = self.losses([message] * len(replies), replies, language, batch_size)
        return np.asarray(-losses / tokens, np.float32)

    def save(self, folder: Path) -> None:
        """Write model, tokenizer, `generator.json` and `language_model.json`; plain transformers can use them too."""
        self.model.save_pretrained(str(folder))
        self.save_settings(folder)

    def save_settings(self, folder: Path) -> None:
        super().save_settings(folder)
        sampling = asdict(self.sampling) if self.sampling else None
        own = {"prompt": self.coder.template, "sampling": sampling, "replies": self.replies}
        atomic_write(folder / LANGUAGE_MODEL, json.dumps(own, indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: Path) -> CausalGenerator:
        facts, path = read_generator_settings(folder), folder / LANGUAGE_MODEL
        try:
            own = json.loads(path.read_text(encoding="utf-8"))
            prompt, sampling = require_prompt(own["prompt"]), Sampling(**own["sampling"]) if own["sampling"] else None
            replies = own["replies"] and {code: list(map(str, rows)) for code, rows in own["replies"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, InputError) as error:
            raise InputError(f"{path}: no usable settings of a language model ({error}); {again(folder)}.") from None
        found = load_adapted(folder) if has_adapter(folder) else load_causal(str(folder), None, saved=True)
        model, tokenizer = found
        coder = CausalCoder(
            tokenizer, ROWS["causal"], model.config, facts.message_tokens, facts.reply_tokens, template=prompt
        )
        return cls(model.eval(), coder, facts.languages, facts.decoding, sampling, replies)


def load_writer(folder: Path) -> Generator:
    """The generator of a folder, whichever its model; InputError if a file is missing or damaged."""
    return CausalGenerator.load(folder) if (folder / LANGUAGE_MODEL).is_file() else Generator.load(folder)


def load_causal(
    name: str, revision: str | None, saved: bool = False
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A language model in float32 and its tokenizer; InputError if it is another kind of model."""
    given = {"option": "", "advice": again(Path(name))} if saved else {}
    config = from_pretrained("AutoConfig", name, revision, **given)
    if config.is_encoder_decoder or config.model_type in ENCODER_TYPES:
        raise InputError(f"{OPTION} {name}: is not a language model ({config.model_type}); use Qwen, Llama or such.")
    model = from_pretrained("AutoModelForCausalLM", name, revision, **given)
    tokenizer = from_pretrained("AutoTokenizer", name, revision, **given)
    if tokenizer.eos_token_id is None:
        raise InputError(f"{OPTION} {name}: its tokenizer defines no EOS token, so no reply would end.")
    return model, tokenizer
