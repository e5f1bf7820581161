"""What runs of every generation task share: the model, the library's trainer with its batches, and what is saved."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from datasets import Dataset

from mrs_models.encoder_decoder import build_from_encoder
from mrs_models.generator import Generator, PairCollator
from mrs_models.tiny_generator import build_tiny_generator
from mrs_training.generation.options import GenerationArguments, decoding_of
from mrs_training.options import TINY
from mrs_training.reply.generation_training import PairTrainer, SmoothedLoss
from mrs_training.sampling import make_sampler

if TYPE_CHECKING:
    from transformers import TrainingArguments

Trainer = TypeVar("Trainer", bound=PairTrainer)


class GeneratorMethods:
    """Of a recipe: advice on memory, and what is written."""

    def saves_memory(self, options: GenerationArguments, training: TrainingArguments, trains: bool) -> str:
        if not trains:
            return f"lower --decoding_batch_size (now {options.decoding_batch_size:,})"
        batch = training.per_device_train_batch_size
        if batch > 1:
            return (
                f"lower --per_device_train_batch_size (now {batch:,}) and raise --gradient_accumulation_steps (now "
                f"{training.gradient_accumulation_steps:,}) by as much, which leaves the step as it is"
            )
        return "lower --message_tokens and --reply_tokens, or pass --activation_checkpointing true or --peft lora"

    def save(self, parts: Generator, folder: Path) -> None:
        parts.save(folder)

    def save_beside_adapter(self, parts: Generator, folder: Path) -> None:
        parts.save_settings(folder)


def build_generator(
    options: GenerationArguments, training: TrainingArguments, texts: Iterable[str], languages: Sequence[str]
) -> Generator:
    """The model to train: `tiny`, a checkpoint, or an encoder with a new decoder.

    Args:
        texts: what the tokenizer of `tiny` is trained on.
        languages: those that are read and written.

    Raises:
        InputError: see `Generator.build`.
    """
    with tempfile.TemporaryDirectory() as folder:
        name, revision = options.model_name_or_path, options.model_revision
        if name == TINY:
            build_tiny_generator(texts, languages, Path(folder), training.seed, options.vocabulary)
            name = folder
        elif options.decoder and options.decoder_layers:  # of an encoder
            decoder = options.decoder, options.decoder_layers
            build_from_encoder(name, revision, languages, Path(folder), training.seed, *decoder)
            name, revision = folder, None
        lengths = options.message_tokens, options.reply_tokens
        generator = Generator.build(name, languages, *lengths, decoding_of(options), revision)
    if options.freeze_embeddings:
        generator.model.get_input_embeddings().requires_grad_(False)
    return generator


def make_pair_trainer(
    kind: type[Trainer],
    parts: Generator,
    options: GenerationArguments,
    training: TrainingArguments,
    rows: Dataset,
    lengths: np.ndarray,
    sizes: Sequence[int],
    alpha: float,
) -> Trainer:
    """The library's trainer with our batches and loss; `kind` has its validation.

    Args:
        rows, lengths: of all sources, as `encode_pairs` gives them.
        sizes: rows of each source.
        alpha: how sources are mixed, see `mrs_training.sampling.shares`.
    """
    smoothing, training.label_smoothing_factor = training.label_smoothing_factor, 0.0
    trainer = kind(
        model=parts.model,
        args=training,
        train_dataset=rows,
        eval_dataset=rows.select([]),  # ours is in `validation`
        data_collator=PairCollator(parts.pad),
        compute_loss_func=SmoothedLoss(smoothing),
    )
    training.label_smoothing_factor = smoothing
    trainer.pair_sampler = make_sampler(sizes, options, training, alpha, lengths)
    trainer.generator = parts
    return trainer
