"""Reply generation: a seq2seq model with its tokenizer, the tokens of its languages and the settings of its search
(Zhang et al. 2021, section 4.2)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from zlib import crc32

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mrs_suggest.common.batches import by_length
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import require_messages
from mrs_suggest.models.adapters import base_of, has_adapter, load_adapter
from mrs_suggest.models.checkpoint_loading import OPTION, from_pretrained
from mrs_suggest.models.generation.architectures.prophetnet import corrected, most_tokens
from mrs_suggest.models.generation.decoding.beam_search import decode, ends_and_pad
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis, by_score
from mrs_suggest.models.generation.decoding.sampling import sample
from mrs_suggest.models.generation.decoding.search_steps import Allowed
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from mrs_suggest.models.generation.language_tokens import row_of, with_forced_token
from mrs_suggest.models.generation.padding import IGNORED, Batch, causal_batch, seq2seq_batch
from mrs_suggest.models.generation.reply_writer import ReplyWriter, read_generator_settings
from mrs_suggest.models.generation.standalone import complete_tokenizer, default_language, generation_config
from mrs_suggest.models.generation.text_coder import Direction, PromptCoder, TextCoder
from mrs_suggest.models.starting_points import ALLOWED, GENERATION, GENERATOR, require_start

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

SEQ2SEQ, CAUSAL_LM = "AutoModelForSeq2SeqLM", "AutoModelForCausalLM"


@dataclass(frozen=True)
class PairCollator:
    """Pads examples of `input_ids`, `labels` and `prompt` into a batch of a model, by default of a seq2seq one."""

    pad: int
    batch: Batch = seq2seq_batch

    def __call__(self, features: Sequence[dict[str, list[int]]]) -> dict[str, Tensor]:
        sources, prompts, targets = ([entry[name] for entry in features] for name in ("input_ids", "prompt", "labels"))
        return self.batch(sources, prompts, targets, self.pad)


class Generator(ReplyWriter):
    """Writes replies with an encoder-decoder model of transformers; `build` makes one for training, `load` for use.

    Args:
        model: or a language model, with a `PromptCoder`.
        sampling: draw replies in place of the search; equal messages get equal ones.
        replies: language -> the only replies to suggest, of those with at most `max_tokens` tokens; None: any text.
    """

    def __init__(
        self, model: PreTrainedModel, coder: TextCoder, languages: Sequence[str], decoding: Decoding,
        sampling: Sampling | None = None, replies: Mapping[str, Sequence[str]] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(coder, languages, decoding)
        self.model, self.sampling, self.replies = model, sampling, replies
        self._allowed: dict[str, Allowed] = {}
        if isinstance(coder, PromptCoder):
            ends, own = model.generation_config.eos_token_id, coder.tokenizer.eos_token_id
            model.generation_config.eos_token_id = [own, *({*ends} - {own} if isinstance(ends, list) else ())]

    @classmethod
    def build(
        cls, name: str, languages: Sequence[str], message_tokens: int, reply_tokens: int, decoding: Decoding,
        revision: str | None = None, direction: Direction | None = None, force_language_token: bool | None = None,
    ) -> Generator:  # fmt: skip
        """Load a checkpoint by its hub id or folder, to be trained.

        Args:
            force_language_token: see `with_forced_token`; None: as the checkpoint was trained.

        Raises:
            InputError: it is a retriever or adapters, cannot be loaded, lacks the token of a language, or is too short
                for texts of these lengths.
        """
        require_start(name, GENERATION, revision)
        model, tokenizer = load_seq2seq(name, revision)
        row, towards = row_of(model.config, tokenizer), direction or Direction()
        if force_language_token is not None:
            row = with_forced_token(model, tokenizer, row, languages, force_language_token)
        coder = TextCoder(tokenizer, row, model.config, message_tokens, reply_tokens, towards)
        positions = most_tokens(model.config)
        for prompt in [len(coder.prompt(language)) for language in languages]:
            for option, value, verb, most in (
                ("message_tokens", message_tokens, "reads", positions),
                ("reply_tokens", reply_tokens, "writes", positions and positions - prompt + 1),  # the end is not read
                ("max_tokens", decoding.max_tokens, "writes", positions and positions - prompt),
            ):
                if most is not None and value > most:  # it would fail at the first long one, far into training
                    raise InputError(f"--{option} {value}: the model {verb} at most {most}; lower it.")
        return cls(model, coder, languages, decoding)

    @classmethod
    def load(cls, folder: Path) -> Generator:
        """Read the files of `save`; InputError if one is missing or damaged."""
        facts = read_generator_settings(folder)
        kind = SEQ2SEQ if facts.prompt is None else CAUSAL_LM
        if has_adapter(folder):  # merged into its base
            from mrs_suggest.models.generation.architectures.xprophetnet import load_tokenizer

            model = corrected(cast("PreTrainedModel", load_adapter(folder)))
            tokenizer = load_tokenizer(model.config, *base_of(folder))
        else:
            model, tokenizer = load_seq2seq(str(folder), None, True, kind)
        coder = facts.coder(tokenizer, model.config)
        return cls(model.eval(), coder, facts.languages, facts.decoding, facts.sampling, facts.replies)

    def save(self, folder: Path) -> None:
        """Write model, tokenizer and `generator.json`; plain transformers can use them too."""
        language = default_language(self.languages)
        self.model.config.decoder_start_token_id = self.coder.prompt(language)[0]
        self.model.save_pretrained(str(folder))
        self.save_settings(folder)

    def save_settings(self, folder: Path) -> None:
        """Write `generator.json`, the tokenizer and the generation config: all but the weights."""
        language = default_language(self.languages)
        if self.model.config.is_encoder_decoder:
            complete_tokenizer(self.coder.tokenizer, self.coder.row, self.coder.source_language(language))
        self.coder.tokenizer.save_pretrained(str(folder))
        generation_config(self.model, self.coder.prompt(language), self.decoding).save_pretrained(str(folder))
        facts: dict[str, Any] = {
            "language_tokens": self.coder.row.name,
            "languages": self.languages,
            "message_tokens": self.coder.message_tokens,
            "reply_tokens": self.coder.reply_tokens,
            "direction": asdict(self.coder.direction),
            "decoding": asdict(self.decoding),
        }
        if isinstance(self.coder, PromptCoder):
            sampling = asdict(self.sampling) if self.sampling else None
            facts |= {"prompt": self.coder.template, "sampling": sampling, "constrained": self.replies is not None}
        if self.replies is not None:
            atomic_write(folder / ALLOWED, json.dumps(self.replies, indent=2, ensure_ascii=False) + "\n")
        atomic_write(folder / GENERATOR, json.dumps(facts, indent=2, ensure_ascii=False) + "\n")

    def _search(
        self, inputs: Sequence[Sequence[int]], prompt: Sequence[int], settings: Decoding, language: str
    ) -> list[list[Hypothesis]]:
        prompts, allowed = [prompt] * len(inputs), self.allowed(language)
        if self.sampling is None:
            return decode(self.model, inputs, prompts, settings, settings.beams, self._blocked, allowed)
        seeds = [crc32(json.dumps(ids).encode()) for ids in inputs]
        drawn = sample(self.model, inputs, prompts, settings, self.sampling, seeds, self._blocked, allowed)
        return [by_score(row) for row in drawn]

    def _text(self, tokens: Sequence[int], language: str) -> str:
        allowed = self.allowed(language)
        return super()._text(tokens, language) if allowed is None else allowed.texts.get(tuple(tokens), "")

    def allowed(self, language: str) -> Allowed | None:
        """The replies that may be suggested, None if all may; InputError if a language's replies are all too long."""
        if self.replies is not None and language not in self._allowed:
            replies, most = self.replies.get(language, ()), self.decoding.max_tokens
            found = Allowed.of(replies, self.coder.cut(replies, most + 1), most, self.end)
            if not found.texts:
                raise InputError(f"--max_tokens {most}: no reply of {language} is that short; raise it.")
            self._allowed[language] = found
        return self._allowed.get(language)

    def sample(
        self, texts: Sequence[str], language: str, settings: Decoding, sampling: Sampling, seeds: Sequence[int]
    ) -> list[list[Hypothesis]]:
        """The samples of each source, as `mrs_suggest.models.generation.decoding.sampling.sample`."""
        inputs, prompt = self.coder.messages(require_messages(texts), language), self.coder.prompt(language)
        return sample(self.model, inputs, [prompt] * len(inputs), settings, sampling, seeds, self._blocked)

    def _own_scores(
        self, inputs: Sequence[Sequence[int]], prompt: Sequence[int], found: list[list[Hypothesis]], settings: Decoding
    ) -> list[list[Hypothesis]]:
        if settings.groups == 1:
            return found
        rows = [list(dict.fromkeys(tuple(tokens) for tokens, _ in row)) for row in found]
        sources = [ids for ids, row in zip(inputs, rows, strict=True) for _ in row]
        targets = [[*tokens, self.end] for row in rows for tokens in row]
        totals, power = iter(self.log_probs_of_ids(sources, prompt, targets)), settings.length_penalty
        scored = [[Hypothesis(list(ids), float(next(totals)) / (len(ids) + 1) ** power) for ids in row] for row in rows]
        return [by_score(row) for row in scored]

    @torch.inference_mode()
    def losses(
        self, messages: Sequence[str], replies: Sequence[str], language: str, batch_size: int = 64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Negative log-likelihood of each reply in nats, and its tokens with the end token: (n,) and (n,)."""
        sources, targets = self.coder.messages(messages, language), self.coder.replies(replies)
        tokens = np.array([len(target) for target in targets], dtype=np.int64)
        return -self.log_probs_of_ids(sources, self.coder.prompt(language), targets, batch_size), tokens

    @torch.inference_mode()
    def log_probs_of_ids(
        self, sources: Sequence[Sequence[int]], prompt: Sequence[int], targets: Sequence[Sequence[int]],
        batch_size: int = 64,
    ) -> np.ndarray:  # fmt: skip
        """(n,) float64 log-probability in nats of each target, end token included, given its source."""
        found = np.zeros(len(sources))
        for numbers in by_length([len(s) + len(t) for s, t in zip(sources, targets, strict=True)], batch_size):
            texts, prompts = [sources[n] for n in numbers], [prompt] * len(numbers)
            batch = self.batch(texts, prompts, [targets[n] for n in numbers], self.pad)
            batch = {name: tensor.to(self.model.device) for name, tensor in batch.items()}
            labels = batch.pop("labels")
            logits = self.model(**batch).logits.float()
            found[numbers] = -_negative_log_likelihoods(logits, labels)
        return found

    @property
    def end(self) -> int:
        """The id that ends a text; the first, if a model has several."""
        return ends_and_pad(self.model)[0][0]

    @torch.inference_mode()
    def log_probs(self, message: str, replies: Sequence[str], language: str, batch_size: int = 64) -> np.ndarray:
        """(n,) float32 log-probability per token, the end token included, of each reply to one message.

        As `losses`, but the message is encoded once for all replies. A reply longer than `reply_tokens` is cut.
        """
        from transformers.modeling_outputs import BaseModelOutput

        if self.batch is not seq2seq_batch:
            losses, tokens = self.losses([message] * len(replies), replies, language, batch_size)
            return np.asarray(-losses / tokens, np.float32)
        device, prompt = self.model.device, self.coder.prompt(language)
        source, targets = self.coder.messages([message], language)[0], self.coder.replies(replies)
        ids = torch.tensor([source], device=device)
        states = self.model.get_encoder()(input_ids=ids, attention_mask=torch.ones_like(ids)).last_hidden_state
        found = np.zeros(len(targets), np.float32)
        for numbers in by_length(targets, batch_size):
            count = len(numbers)
            batch = seq2seq_batch([source] * count, [prompt] * count, [targets[n] for n in numbers], self.pad)
            encoded = BaseModelOutput(last_hidden_state=states.expand(len(numbers), -1, -1))
            read = {name: batch[name].to(device) for name in ("attention_mask", "decoder_input_ids")}
            logits = self.model(encoder_outputs=encoded, **read).logits.float()
            losses = _negative_log_likelihoods(logits, batch["labels"].to(device))
            found[numbers] = -losses / np.array([len(targets[n]) for n in numbers])
        return found

    @property
    def batch(self) -> Batch:
        """What makes a batch of sources, prompts and targets."""
        return seq2seq_batch if self.model.config.is_encoder_decoder else causal_batch

    @property
    def pad(self) -> int:
        """The id that fills batches."""
        pad = self.coder.tokenizer.pad_token_id
        return int(self.coder.tokenizer.eos_token_id if pad is None else pad)


def _negative_log_likelihoods(logits: Tensor, labels: Tensor) -> np.ndarray:
    """(n,) nats of each row: logits (n, length, vocabulary), labels (n, length), -100 where ignored."""
    each = functional.cross_entropy(logits.transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")
    return np.asarray(each.sum(1).double().cpu().numpy())


def load_seq2seq(
    name: str, revision: str | None, saved: bool = False, kind: str = SEQ2SEQ
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A checkpoint in float32, by default a sequence-to-sequence one, and its tokenizer."""
    import mrs_suggest.models.generation.architectures.convolutional  # noqa: F401  (registers its type)
    from mrs_suggest.models.generation.architectures.xprophetnet import load_tokenizer  # registers a type, too

    given = {"option": "", "advice": again(Path(name))} if saved else {}
    model = from_pretrained(kind, name, revision, **given)
    tokenizer = load_tokenizer(model.config, name, revision, **given)
    if tokenizer.eos_token_id is None:
        raise InputError(f"{OPTION} {name}: its tokenizer defines no EOS token, so no reply would end.")
    return corrected(model), tokenizer
