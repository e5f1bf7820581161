"""Masked language modelling of an encoder (XGLUE, section 3.1; XCOPA, section 4.4), and that of translations (3.2)."""

import hashlib
import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, TrainingArguments

from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.masked_lm import (
    SHARE,
    HeadAt,
    MaskingCollator,
    Vocabulary,
    freeze_encoder,
    load_masked_lm,
    masked_loss,
    token_losses,
    vocabulary_of,
)
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.starting_points import TINY
from mrs_suggest.training.options import trains_lora
from mrs_suggest.training.pretraining.objective import Objective, Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.rows import TokenRows, encode, encode_pairs
from mrs_suggest.training.pretraining.texts import TextData

MASK = "[MASK]"  # of `tiny`


@dataclass(frozen=True)
class EncoderState:
    """The facts about an encoder that masking needs: for masked language modelling, also of translations."""

    vocabulary: Vocabulary
    head_at: HeadAt


class MaskedLanguageModelling(Objective):
    """Hides 15 % of the tokens; the head predicts them from the encoder's states there."""

    about = "masked language modelling (Devlin et al. 2019, section 3.1; XGLUE, section 3.1)"
    loss = staticmethod(masked_loss)
    trains = "an encoder"

    def build(self, options: PretrainingArguments, training: TrainingArguments, data: TextData) -> Pretrained:
        name, revision = options.model_name_or_path, options.model_revision
        with start_folder(name, data.texts, training.seed, options.vocabulary, MASK) as place:
            model, fresh = load_masked_lm(place, revision, training.seed)
            tokenizer = load_fast_tokenizer(place, revision)
            vocabulary = vocabulary_of(tokenizer, name)
        notes: dict[str, Any] = {"head": "fresh" if fresh else "of the checkpoint"}
        if fresh and trains_lora(options):
            raise InputError(
                f"--peft lora: {name} has no language-model head, and adapters would leave a fresh one untrained; "
                "train one with --frozen_encoder true first, and start from that run."
            )
        if options.frozen_encoder:
            notes["trained_parameters"] = freeze_encoder(model)
        _require_length(model, options.max_tokens)
        if training.process_index == 0:
            _tell(name, notes, options.whole_words and not vocabulary.has_words)
        return Pretrained(model, tokenizer, notes, EncoderState(vocabulary, HeadAt(model)))

    def encoder(self, parts: Pretrained, options: PretrainingArguments, pack: bool) -> partial[TokenRows]:
        return partial(encode, tokenizer=parts.tokenizer, most=options.max_tokens, pack=pack)

    def collator(self, parts: Pretrained, seed: int, options: PretrainingArguments | None = None) -> MaskingCollator:
        share, whole_words = (options.masked_share, options.whole_words) if options else (SHARE, False)
        return MaskingCollator(int(parts.tokenizer.pad_token_id or 0), parts.state.vocabulary, share, whole_words, seed)

    def forward(self, parts: Pretrained, labels: Tensor) -> AbstractContextManager[None]:
        return parts.state.head_at(labels != IGNORED)

    def row_losses(self, outputs: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
        predicted = labels != IGNORED
        found = token_losses(outputs["logits"], labels)
        row = predicted.nonzero()[:, 0]
        sums = torch.zeros(len(labels), dtype=torch.float64).index_add(0, row.cpu(), found.double().cpu())
        return sums, predicted.sum(1).cpu()

    def signature(self, parts: Pretrained) -> str:
        vocabulary = parts.tokenizer.backend_tokenizer.to_str().encode()
        tokens = f"{parts.model.config.model_type}-{hashlib.blake2b(vocabulary, digest_size=4).hexdigest()}"
        rows = "pairs" if self.reads == "parallel" else None
        return signature(
            "masked_perplexity", avg="token", log="natural", masked=SHARE, seed=EVALUATION_SEED, rows=rows, tok=tokens
        )


class TranslationLanguageModelling(MaskedLanguageModelling):
    """Hides 15 % of the tokens of two translations in one row; both are there to predict them from."""

    about = "translation language modelling (Conneau and Lample 2019, section 3.4; XGLUE, section 3.2)"
    reads = "parallel"
    packs = False

    def encoder(self, parts: Pretrained, options: PretrainingArguments, pack: bool) -> partial[TokenRows]:
        return partial(encode_pairs, tokenizer=parts.tokenizer, most=options.max_tokens)


def _require_length(model: PreTrainedModel, most: int) -> None:
    """Refuse rows that are longer than the encoder's table of positions, if it has one."""
    named = ((name, part) for name, part in model.named_modules() if isinstance(part, nn.Embedding))
    table = next((part for name, part in named if name.endswith("position_embeddings")), None)
    if table is not None:
        reads = table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        if most > reads:
            raise InputError(f"--max_tokens {most}: the encoder reads {reads} tokens at most; pass that or less.")


def _tell(name: str, notes: dict[str, Any], no_words: bool) -> None:
    if notes["head"] == "fresh" and name != TINY:
        print(f"note: {name} has no language-model head; a fresh one is trained with it.", file=sys.stderr)
    if "trained_parameters" in notes:
        print(f"note: the encoder is frozen; {notes['trained_parameters']:,} parameters train.", file=sys.stderr)
    if no_words:
        print(f"note: --whole_words: the pieces of {name} do not show where words begin; each is one.", file=sys.stderr)
