"""The objectives of seq2seq models (XGLUE, Liang et al. 2020): denoising (section 4.1), future n-grams (4.2)."""

import sys
import tempfile
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from torch import Tensor
from transformers import PreTrainedTokenizerFast, TrainingArguments

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.generation.architectures.prophetnet import TYPE, most_tokens
from mrs_suggest.models.generation.architectures.prophetnet_start import (
    build_prophetnet_from_encoder,
    build_tiny_prophetnet,
)
from mrs_suggest.models.generation.encoder_decoder import build_from_encoder, is_encoder
from mrs_suggest.models.generation.generator import load_seq2seq
from mrs_suggest.models.generation.language_tokens import LanguageTokens, TokenFrame, row_of
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.pretraining.future_ngrams import BLOCK, SPAN, SpanMaskingCollator, future_ngram_loss
from mrs_suggest.models.pretraining.masked_lm import Vocabulary, vocabulary_of
from mrs_suggest.models.pretraining.noising import (
    SPAN_LENGTH,
    SPAN_SHARE,
    NoisingCollator,
    next_token_loss,
    next_token_losses,
    parse_noises,
)
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import GENERATION, TINY, require_start
from mrs_suggest.training.pretraining.objective import Collator, Objective, Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.rows import TokenRows, encode
from mrs_suggest.training.pretraining.texts import TextData


@dataclass(frozen=True)
class Seq2SeqState:
    """The facts about a checkpoint that a seq2seq objective needs.

    Attributes:
        frame: the special tokens around its texts, the same for all languages but for the language's own.
        filled: tokens of the rows that sentences fill; 0: each row is a sentence.
    """

    vocabulary: Vocabulary
    row: LanguageTokens
    frame: TokenFrame
    filled: int


class Seq2SeqObjective(Objective):
    """Trains a seq2seq model, which is a start for generators: rows are framed as messages and replies are."""

    @abstractmethod
    def write_start(
        self, texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, options: PretrainingArguments
    ) -> None:
        """Write a model of the kind to `folder`: a small one, or one with the weights of the encoder of `options`."""

    def build(self, options: PretrainingArguments, training: TrainingArguments, data: TextData) -> Pretrained:
        name, revision = options.model_name_or_path, options.model_revision
        languages = list(dict.fromkeys([*data.train, *data.validation, *data.test]))
        notes = {"architecture": "seq2seq", "start": "a checkpoint"}
        with tempfile.TemporaryDirectory() as folder:
            place = name
            if name == TINY or is_encoder(name, revision):
                self.write_start(data.texts(), languages, Path(folder), training.seed, options)
                notes["start"] = "scratch" if name == TINY else f"an encoder, decoder {options.decoder}"
                place, revision = folder, None
            else:
                require_start(name, GENERATION, revision)
            model, loaded = load_seq2seq(place, revision)
        self.require_model(model, name)
        model.config.use_cache = False  # of decoding, which asks for it itself
        tokenizer = cast("PreTrainedTokenizerFast", loaded)
        vocabulary, row = vocabulary_of(tokenizer, name), row_of(model.config, tokenizer)
        for language in languages:  # refuses those that the checkpoint has no token for
            frame, _ = TokenFrame.of(row, language, model.config, tokenizer)
        reads = most_tokens(model.config)
        if reads is not None and options.max_tokens > reads:
            raise InputError(
                f"--max_tokens {options.max_tokens}: the model reads {reads} tokens at most; pass that or less."
            )
        if training.process_index == 0 and notes["start"].startswith("an encoder"):
            print(
                f"note: {name} is an encoder; a decoder of {options.decoder_layers} layers, {options.decoder}, is "
                "trained with it.",
                file=sys.stderr,
            )
        filled = options.max_tokens if options.packing else 0
        return Pretrained(model, tokenizer, notes, Seq2SeqState(vocabulary, row, frame, filled))

    def encoder(self, parts: Pretrained, options: PretrainingArguments, pack: bool) -> partial[TokenRows]:
        """Rows of ids without special tokens around them: the collator frames them."""
        room = parts.state.frame.room(options.max_tokens)
        return partial(encode, tokenizer=parts.tokenizer, most=room, pack=pack, framed=False)

    def shared(self, language: str, parts: Pretrained) -> Record:
        """`language`, the id of the language's token (of the start token, if the checkpoint does not have one)."""
        _, number = TokenFrame.of(parts.state.row, language, parts.model.config, parts.tokenizer)
        return {"language": number}

    def row_losses(self, outputs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Of the first stream, where there are several."""
        return next_token_losses(outputs["logits"], labels).double().sum(1).cpu(), (labels != IGNORED).sum(1).cpu()


def tokens_of(parts: Pretrained) -> str:
    """The tokenizer, for a signature."""
    config = parts.model.config
    return f"{config.model_type}-{TextCoder(parts.tokenizer, parts.state.row, config, 0, 0).vocabulary_hash()}"


def decoder_of(options: PretrainingArguments) -> tuple[str, int]:
    """The kind and the layers of the decoder that an encoder gets, which `with_decoder` has set."""
    assert options.decoder
    assert options.decoder_layers
    return options.decoder, options.decoder_layers


def separators(tokenizer: PreTrainedTokenizerFast) -> tuple[int, ...]:
    """The tokens between the sentences of a packed row."""
    return () if tokenizer.sep_token_id is None else (int(tokenizer.sep_token_id),)


class Denoising(Seq2SeqObjective):
    """The encoder reads a noised text, the decoder writes the whole one."""

    about = "denoising (xDAE; XGLUE, section 4.1)"
    loss = staticmethod(next_token_loss)

    def write_start(
        self, texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, options: PretrainingArguments
    ) -> None:
        if options.model_name_or_path == TINY:
            build_tiny_generator(texts, languages, folder, seed, options.vocabulary, options.tiny_layers)
            return
        build_from_encoder(
            options.model_name_or_path, options.model_revision, languages, folder, seed, *decoder_of(options)
        )

    def collator(self, parts: Pretrained, seed: int, options: PretrainingArguments | None = None) -> NoisingCollator:
        """Held-out texts have spans, whatever trained: the best noise of the paper, and perplexities of all noises
        compare."""
        given: dict[str, Any] = {}
        if options:
            given = {"noises": parse_noises(options.noise), "max_tokens": options.max_tokens}
            given |= {"span_share": options.span_share, "span_length": options.span_length}
        return NoisingCollator(
            int(parts.tokenizer.pad_token_id or 0), parts.state.vocabulary.mask_id, parts.state.frame, seed=seed,
            special_ids=separators(parts.tokenizer), **given,
        )  # fmt: skip

    def signature(self, parts: Pretrained) -> str:
        fixed = {"noise": "spans", "share": SPAN_SHARE, "length": SPAN_LENGTH, "seed": EVALUATION_SEED}
        return signature("denoising_perplexity", avg="token", log="natural", **fixed, tok=tokens_of(parts))


class FutureNgrams(Seq2SeqObjective):
    """The encoder reads a text with masked spans, the decoder writes the spans and predicts two tokens at a time."""

    # A model of packed rows writes spans of their length: for a lone sentence it would say too much.
    packs_held_out = True
    about = "future n-gram prediction (xFNP; XGLUE, section 4.2)"
    loss = staticmethod(future_ngram_loss)

    def write_start(
        self, texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, options: PretrainingArguments
    ) -> None:
        if options.model_name_or_path == TINY:
            build_tiny_prophetnet(texts, languages, folder, seed, options.vocabulary, options.future_tokens)
            return
        build_prophetnet_from_encoder(
            options.model_name_or_path, options.model_revision, languages, folder, seed, *decoder_of(options),
            options.future_tokens,
        )  # fmt: skip

    def require_model(self, model: Any, name: str) -> None:
        if model.config.model_type != TYPE:
            raise InputError(
                f"--objective xfnp: {name} is of type {model.config.model_type!r} and predicts one token at a time; "
                "pass a ProphetNet, an encoder such as FacebookAI/xlm-roberta-base, or tiny."
            )

    def collator(self, parts: Pretrained, seed: int, options: PretrainingArguments | None = None) -> Collator:
        state = parts.state
        return SpanMaskingCollator(int(parts.tokenizer.pad_token_id or 0), state.vocabulary, state.frame, seed)

    def signature(self, parts: Pretrained) -> str:
        """Of the first stream: the tokens are predicted one after the other, as a generator writes them."""
        fixed = {"span": SPAN, "every": BLOCK, "rows": parts.state.filled or "sentences", "seed": EVALUATION_SEED}
        return signature("span_perplexity", avg="token", log="natural", **fixed, tok=tokens_of(parts))
