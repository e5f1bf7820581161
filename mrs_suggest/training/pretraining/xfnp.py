"""Future n-gram prediction of a ProphetNet (xFNP; XGLUE, Liang et al. 2020, section 4.2)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.generation.architectures.prophetnet import TYPE
from mrs_suggest.models.generation.architectures.prophetnet_start import (
    build_prophetnet_from_encoder,
    build_tiny_prophetnet,
)
from mrs_suggest.models.pretraining.future_ngrams import BLOCK, SPAN, SpanMaskingCollator, future_ngram_loss
from mrs_suggest.models.starting_points import TINY
from mrs_suggest.training.pretraining.objective import Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.seq2seq import Seq2SeqObjective, tokens_of


class FutureNgrams(Seq2SeqObjective):
    """The encoder reads a text with masked spans, the decoder writes the spans and predicts two tokens at a time."""

    # A model of packed rows writes spans of their length: for a lone sentence it would say too much.
    packs_held_out = True
    about = "future n-gram prediction (xFNP; XGLUE, section 4.2)"
    loss = staticmethod(future_ngram_loss)

    def write_start(
        self, texts: Sequence[str], languages: Sequence[str], folder: Path, seed: int, options: PretrainingArguments
    ) -> None:
        if options.model_name_or_path == TINY:
            build_tiny_prophetnet(texts, languages, folder, seed, options.vocabulary, options.future_tokens)
            return
        assert options.decoder
        assert options.decoder_layers
        build_prophetnet_from_encoder(
            options.model_name_or_path, options.model_revision, languages, folder, seed, options.decoder,
            options.decoder_layers, options.future_tokens,
        )  # fmt: skip

    def require_model(self, model: Any, name: str) -> None:
        if model.config.model_type != TYPE:
            raise InputError(
                f"--objective xfnp: {name} is of type {model.config.model_type!r} and predicts one token at a time; "
                "pass a ProphetNet, an encoder such as FacebookAI/xlm-roberta-base, or tiny."
            )

    def collator(self, parts: Pretrained, options: PretrainingArguments, seed: int) -> SpanMaskingCollator:
        state = parts.state
        return SpanMaskingCollator(int(parts.tokenizer.pad_token_id or 0), state.vocabulary, state.frame, seed)

    def held_out_collator(self, parts: Pretrained) -> SpanMaskingCollator:
        state, pad = parts.state, int(parts.tokenizer.pad_token_id or 0)
        return SpanMaskingCollator(pad, state.vocabulary, state.frame, EVALUATION_SEED)

    def signature(self, parts: Pretrained) -> str:
        """Of the first stream: the tokens are predicted one after the other, as a generator writes them."""
        fixed = {"span": SPAN, "every": BLOCK, "rows": parts.state.filled or "sentences", "seed": EVALUATION_SEED}
        return signature("span_perplexity", avg="token", log="natural", **fixed, tok=tokens_of(parts))
