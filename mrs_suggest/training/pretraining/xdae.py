"""Denoising of a seq2seq model (xDAE; XGLUE, Liang et al. 2020, section 4.1)."""

from collections.abc import Sequence
from pathlib import Path

from mrs_metrics.signature import signature
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.generation.encoder_decoder import build_from_encoder
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.pretraining.denoising import NoisingCollator, next_token_loss
from mrs_suggest.models.pretraining.noising import MAX_TOKENS, SPAN_LENGTH, SPAN_SHARE, parse_noises
from mrs_suggest.models.starting_points import TINY
from mrs_suggest.training.pretraining.objective import Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.seq2seq import Seq2SeqObjective, separators, tokens_of


class Denoising(Seq2SeqObjective):
    """The encoder reads a noised text, the decoder writes the whole one."""

    about = "denoising (xDAE; XGLUE, section 4.1)"
    loss = staticmethod(next_token_loss)

    def write_start(
        self, texts: Sequence[str], languages: Sequence[str], folder: Path, seed: int, options: PretrainingArguments
    ) -> None:
        if options.model_name_or_path == TINY:
            build_tiny_generator(texts, languages, folder, seed, options.vocabulary, options.tiny_layers)
            return
        assert options.decoder
        assert options.decoder_layers
        build_from_encoder(
            options.model_name_or_path, options.model_revision, languages, folder, seed, options.decoder,
            options.decoder_layers,
        )  # fmt: skip

    def collator(self, parts: Pretrained, options: PretrainingArguments, seed: int) -> NoisingCollator:
        noises = parse_noises(options.noise)
        return self._collator(parts, noises, seed, options.max_tokens, options.span_share, options.span_length)

    def held_out_collator(self, parts: Pretrained) -> NoisingCollator:
        """Spans, whatever trained: the best noise of the paper, and perplexities of all noises compare."""
        return self._collator(parts, {("spans",): 1.0}, EVALUATION_SEED)

    def signature(self, parts: Pretrained) -> str:
        fixed = {"noise": "spans", "share": SPAN_SHARE, "length": SPAN_LENGTH, "seed": EVALUATION_SEED}
        return signature("denoising_perplexity", avg="token", log="natural", **fixed, tok=tokens_of(parts))

    @staticmethod
    def _collator(
        parts: Pretrained,
        noises: dict[tuple[str, ...], float],
        seed: int,
        max_tokens: int = MAX_TOKENS,
        share: float = SPAN_SHARE,
        length: float = SPAN_LENGTH,
    ) -> NoisingCollator:
        frame, tokenizer = parts.state.frame, parts.tokenizer
        return NoisingCollator(
            int(tokenizer.pad_token_id or 0), parts.state.vocabulary.mask_id, frame, noises=noises, seed=seed,
            span_share=share, span_length=length, special_ids=separators(tokenizer),
            max_tokens=max_tokens,
        )  # fmt: skip
