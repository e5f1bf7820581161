"""Train the paper's seq2seq generator (Zhang et al. 2021, section 4.2) on message-reply pairs.

    accelerate launch trainers/generation.py                                    # a small model on the embedded sample
    accelerate launch trainers/generation.py --config trainers/configs/generation/unicoder/mt_es.yaml --data DIR

The defaults train a small model from scratch in minutes on two CPU cores; the paper's settings are in the YAML files.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import Seq2SeqTrainingArguments

from mrs_core.arguments import make_dataclass_parser, parse_with_config
from mrs_core.errors import InputError, run_with_sentence
from mrs_core.predictions import SUGGESTIONS
from mrs_evaluation.comparison import MakeSystem
from mrs_metrics.perplexity import perplexity_signature
from mrs_models.answering import MODEL
from mrs_models.decoding import Decoding
from mrs_models.encoder_decoder import COPIED, DECODER_LAYERS, DECODERS, build_from_encoder, is_encoder
from mrs_models.generation_suggester import Writer
from mrs_models.generator import Generator, PairCollator
from mrs_models.tiny_generator import build_tiny_generator
from mrs_training.card import Record
from mrs_training.launch import train
from mrs_training.options import TINY, TrainerDefaults, require_least, require_one_of, trains_lora
from mrs_training.recipe import Fitted
from mrs_training.reply.data import RunData
from mrs_training.reply.families import GENERATION
from mrs_training.reply.generation_training import (
    BEST_METRIC,
    METRICS,
    GenerationTrainer,
    SmoothedLoss,
    encode_sources,
    perplexities,
)
from mrs_training.reply.options import ReplyArguments
from mrs_training.reply.recipe import ReplyRecipe
from mrs_training.sampling import make_sampler

if TYPE_CHECKING:
    from transformers import HfArgumentParser, Trainer, TrainingArguments

STEPS = 1000  # when neither epochs nor steps are given: minutes on two cores
MESSAGE_TOKENS, REPLY_TOKENS = 70, 30  # ours: as the retrieval script; no source names lengths for generation


@dataclass
class GenerationArguments(ReplyArguments):
    """Model, data and search. Defaults marked (tiny) were chosen on the validation split of the embedded sample."""

    decoder: str | None = field(
        default=None,
        metadata={
            "help": f"of an encoder's checkpoint: {COPIED} from its layers (default; Rothe et al. 2020), or fresh"
        },
    )
    decoder_layers: int | None = field(
        default=None,
        metadata={"help": f"of an encoder's checkpoint: the decoder's layers (default {DECODER_LAYERS})"},
    )
    message_tokens: int = field(default=MESSAGE_TOKENS, metadata={"help": "longer messages are cut"})
    reply_tokens: int = field(default=REPLY_TOKENS, metadata={"help": "longer replies are cut, in the perplexity too"})
    beams: int = field(default=5, metadata={"help": "beam size (official script)"})
    groups: int = field(default=1, metadata={"help": "groups of a diverse beam search; 1: plain beams (paper)"})
    diversity_penalty: float = field(default=0.0, metadata={"help": "Hamming penalty between groups"})
    no_repeat_ngram: int = field(
        default=0, metadata={"help": "forbid repeated n-grams of this length in a reply; 0: allowed"}
    )
    min_tokens: int = field(default=0, metadata={"help": "shortest reply, in tokens"})
    max_tokens: int = field(default=REPLY_TOKENS, metadata={"help": "longest reply, in tokens"})
    length_penalty: float = field(default=1.0, metadata={"help": "exponent of the length in a reply's score"})
    blocked: list[str] = field(default_factory=list, metadata={"help": "words and phrases that are never suggested"})
    decoding_batch_size: int = field(default=32, metadata={"help": "messages answered at a time; affects memory only"})


@dataclass
class GenerationTrainingArguments(TrainerDefaults, Seq2SeqTrainingArguments):
    """The trainer's own arguments with other defaults, chosen for `tiny` on the sample's validation split."""

    output_dir: str | None = field(default="build/generator", metadata={"help": "the folder of the run"})
    per_device_train_batch_size: int = field(default=64, metadata={"help": "pairs per batch and device (paper: 1024)"})
    num_train_epochs: float = field(
        default=0.0,
        metadata={"help": f"passes over the pairs (paper: 4 en, 1 mt); 0: train {STEPS:,} steps"},
    )
    learning_rate: float = field(default=3e-3, metadata={"help": "peak learning rate (paper: 1e-5)"})
    warmup_steps: float = field(default=0.2, metadata={"help": "steps, or a share of them if below 1 (paper: .2)"})
    lr_scheduler_type: str = field(default="linear", metadata={"help": "schedule (official script: inverse_sqrt)"})
    label_smoothing_factor: float = field(default=0.1, metadata={"help": "label smoothing (official script: .2)"})
    logging_steps: float = field(default=20, metadata={"help": "steps between two points of the loss curve"})
    eval_steps: float | None = field(default=0.25, metadata={"help": "steps, or a share of the run if below 1"})
    save_steps: float = field(default=0.25, metadata={"help": "steps, or a share of the run if below 1"})
    metric_for_best_model: str | None = field(
        default=BEST_METRIC, metadata={"help": "the validation metric that picks the checkpoint"}
    )
    remove_unused_columns: bool = field(default=False, metadata={"help": "keep false: the batches need `prompt`"})
    report_to: str = field(default="none", metadata={"help": "integrations such as tensorboard"})


class Generation(ReplyRecipe[GenerationArguments, Generator]):
    """The generator in a run."""

    family, metrics, ranks, steps = GENERATION, METRICS, False, STEPS
    lower_is_better = ("perplexity", "loss")
    resume_keys = ("decoder", "decoder_layers")

    def resolved(self, options: GenerationArguments) -> GenerationArguments:
        require_least(options, "message_tokens", 4)
        require_least(options, "reply_tokens", 4)
        require_least(options, "decoding_batch_size", 1)
        if _decoding(options).beams < SUGGESTIONS:
            raise InputError(f"--beams {options.beams}: {SUGGESTIONS} replies are suggested; pass at least as many.")
        if options.groups > 1 and not options.diversity_penalty:
            raise InputError(
                f"--groups {options.groups}: find the same replies without --diversity_penalty; pass it, such as .5."
            )
        return _with_decoder(options)

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

    def build(self, options: GenerationArguments, training: TrainingArguments, data: RunData) -> Generator:
        languages = [source.language for source in data.plan.sources]
        languages = list(dict.fromkeys([*languages, *data.plan.validation, *data.plan.test]))
        with tempfile.TemporaryDirectory() as folder:
            name, revision = options.model_name_or_path, options.model_revision
            if name == TINY:
                build_tiny_generator(data.texts(), languages, Path(folder), training.seed, options.vocabulary)
                name = folder
            elif options.decoder and options.decoder_layers:  # of an encoder
                decoder = options.decoder, options.decoder_layers
                build_from_encoder(name, revision, languages, Path(folder), training.seed, *decoder)
                name, revision = folder, None
            lengths = options.message_tokens, options.reply_tokens
            generator = Generator.build(name, languages, *lengths, _decoding(options), revision)
        if options.freeze_embeddings:
            generator.model.get_input_embeddings().requires_grad_(False)
        return generator

    def make_trainer(
        self, parts: Generator, options: GenerationArguments, training: TrainingArguments, data: RunData
    ) -> Trainer:
        with training.main_process_first(local=False):  # one rank fills the cache, the others read it
            rows, lengths = encode_sources(data, parts.coder)
        smoothing, training.label_smoothing_factor = training.label_smoothing_factor, 0.0
        trainer = GenerationTrainer(
            model=parts.model,
            args=training,
            train_dataset=rows,
            eval_dataset=rows.select([]),  # ours is in `validation`
            data_collator=PairCollator(parts.pad),
            compute_loss_func=SmoothedLoss(smoothing),
        )
        training.label_smoothing_factor = smoothing
        sizes = [len(source) for source in data.sources.values()]
        trainer.pair_sampler = make_sampler(sizes, options, training, data.plan.sampling_alpha, lengths)
        trainer.generator, trainer.validation = parts, data.validation
        return trainer

    def save(self, parts: Generator, folder: Path) -> None:
        parts.save(folder)

    def save_beside_adapter(self, parts: Generator, folder: Path) -> None:
        parts.save_settings(folder)

    def systems(self, parts: Generator) -> list[MakeSystem]:
        return [lambda part: Writer(parts, MODEL)]

    def add_figures(self, fitted: Fitted[GenerationArguments, RunData, Generator], figures: Record) -> None:
        for scope, value in perplexities(fitted.parts, fitted.data.test).items():
            figures["systems"][MODEL][scope]["perplexity"] = value
        base, coder = fitted.options.model_name_or_path, fitted.parts.coder
        name = TINY if base == TINY else Path(base).name
        tokens = f"{name}-{coder.vocabulary_hash()}+{'+'.join(coder.row.end)}"
        figures["language_tokens"] = coder.row.name  # the card says how plain transformers is told the language
        signature = perplexity_signature(tokens, cut=coder.reply_tokens)
        for signatures in figures["signatures"].values():
            signatures["reply_perplexity"] = signature


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train generation` uses it too."""
    return make_dataclass_parser((GenerationArguments, GenerationTrainingArguments), GENERATION.name, __doc__ or "")


def _with_decoder(options: GenerationArguments) -> GenerationArguments:
    """The options with a decoder where the checkpoint is an encoder.

    Raises:
        InputError: they do not fit the kind of the checkpoint.
    """
    name = options.model_name_or_path
    if name == TINY or not is_encoder(name, options.model_revision):
        for option in ("decoder", "decoder_layers"):
            if getattr(options, option) is not None:
                raise InputError(
                    f"--{option}: {name} is no encoder (BERT, XLM-R) and has its own decoder; leave it out."
                )
        return options
    if trains_lora(options):
        raise InputError(f"--peft lora adapts a trained model, and {name} has no decoder yet; leave it out.")
    decoder, layers = (
        options.decoder or COPIED,
        DECODER_LAYERS if options.decoder_layers is None else options.decoder_layers,
    )
    require_one_of("decoder", decoder, DECODERS)
    options = replace(options, decoder=decoder, decoder_layers=layers)
    require_least(options, "decoder_layers", 1)
    return options


def _decoding(options: GenerationArguments) -> Decoding:
    return Decoding(
        beams=options.beams,
        groups=options.groups,
        diversity_penalty=options.diversity_penalty,
        no_repeat_ngram=options.no_repeat_ngram,
        min_tokens=options.min_tokens,
        max_tokens=options.max_tokens,
        length_penalty=options.length_penalty,
        blocked=tuple(options.blocked),
        batch_size=options.decoding_batch_size,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence(GENERATION.name, lambda: train(Generation(), *parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
