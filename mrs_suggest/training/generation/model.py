"""Shared by runs of all generation tasks: the model, the library's trainer with its batches, and the saved files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from datasets import Dataset

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.decoder_freezing import freeze_decoder_layers, freeze_embeddings
from mrs_suggest.models.generation.encoder_decoder import build_from_encoder
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.text_coder import Direction
from mrs_suggest.models.generation.tiny_generator import build_convolutional, build_tiny_generator
from mrs_suggest.models.saved.families import Family
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import CONVOLUTIONAL, TINY
from mrs_suggest.training.generation.options import STEPS, GenerationArguments, SearchArguments, decoding_of
from mrs_suggest.training.generation.training import PairTrainer, smoothed_loss
from mrs_suggest.training.options import trains_lora
from mrs_suggest.training.reply.data import Compared
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import StepSampler

if TYPE_CHECKING:
    import torch
    from transformers import TrainingArguments

    TrainingRows: TypeAlias = Dataset | torch.utils.data.Dataset[Any]

Trainer = TypeVar("Trainer", bound=PairTrainer)
BUILDERS = {TINY: build_tiny_generator, CONVOLUTIONAL: build_convolutional}


def advice(options: SearchArguments, training: TrainingArguments, trains: bool) -> str:
    if not trains:
        return f"lower --decoding_batch_size (now {options.decoding_batch_size:,})"
    batch = training.per_device_train_batch_size
    if batch > 1:
        return (
            f"lower --per_device_train_batch_size (now {batch:,}) and pass --global_batch_size "
            f"{batch * training.world_size * training.gradient_accumulation_steps:,}, which leaves the step as it is"
        )
    return "lower --message_tokens and --reply_tokens, or pass --activation_checkpointing true or --peft lora"


def generator_run(family: Family, options: SearchArguments, training: TrainingArguments) -> Run:
    return Run(
        family, options, training, steps=STEPS, lower_is_better=("perplexity", "loss"),
        advice=lambda trains: advice(options, training, trains),
    )  # fmt: skip


def save_and_test(
    run: Run, generator: Generator, test: Callable[[], Compared], curves: Mapping[str, str] | None = None,
    show: Callable[[Record], None] | None = None,
) -> Record:  # fmt: skip
    """Save a trained generator, test it unless the options leave that out, and record its figures."""
    run.merge_adapters(generator.model, generator.save_settings)
    run.save(generator.save)
    if run.options.skip_test:
        return run.finish({}, curves=curves)
    tested = run.evaluate(test)
    figures = {**tested.figures, "language_tokens": generator.coder.row.name}  # the card says how plain models are told
    return run.finish(figures, tested.milliseconds, tested.files, tested.named, curves, show)


def build_generator(
    options: GenerationArguments,
    training: TrainingArguments,
    texts: Iterable[str],
    languages: Sequence[str],
    direction: Direction | None = None,
) -> Generator:
    """The model to train: `tiny`, `convolutional`, a checkpoint, or an encoder with a new decoder.

    Args:
        texts: what the tokenizer of a model from scratch is trained on, and a vocabulary is cut by.
        languages: those that are asked for; with a direction, one of theirs is read or written too.
    """
    fixed = [code for code in (direction.source, direction.target) if code] if direction else []
    known = list(dict.fromkeys([*languages, *fixed]))
    with tempfile.TemporaryDirectory() as folder:
        name, revision = options.model_name_or_path, options.model_revision
        if name in BUILDERS:
            BUILDERS[name](texts, known, Path(folder), training.seed, options.vocabulary)
            name = folder
        elif options.decoder and options.decoder_layers:  # of an encoder
            decoder = options.decoder, options.decoder_layers
            kept = texts, options.keep_pieces
            build_from_encoder(name, revision, known, Path(folder), training.seed, *decoder, *kept)
            name, revision = folder, None
        lengths = options.message_tokens, options.reply_tokens
        generator = Generator.build(
            name, languages, *lengths, decoding_of(options), revision, direction, options.force_language_token
        )
    if trains_lora(options) and generator.coder.row.name == "told":
        raise InputError(
            f"--force_language_token true: {options.model_name_or_path} has no token of a language, and adapters do "
            "not learn added ones; leave --peft lora out."
        )
    if options.freeze_embeddings:
        freeze_embeddings(generator.model)
    freeze_decoder_layers(generator.model, options.freeze_decoder_layers)
    return generator


def make_pair_trainer(
    kind: type[Trainer], parts: Generator, training: TrainingArguments, rows: TrainingRows, sampler: StepSampler
) -> Trainer:
    """The library's trainer with our batches and loss; `kind` has its validation."""
    trainer = kind(
        model=parts.model,
        args=training,
        train_dataset=rows,
        eval_dataset=Dataset.from_dict({}),  # ours is in `validation`
        data_collator=PairCollator(parts.pad, parts.batch),
        compute_loss_func=partial(smoothed_loss, smoothing=training.label_smoothing_factor),
    )
    trainer.sampler = sampler
    trainer.generator = parts
    return trainer
