"""Train a seq2seq generator: on message-reply pairs (Zhang et al. 2021, section 4.2), on a task of XGLUE, or on STAPLE,
whose task is to write all translations of a prompt that learners would (Mayhew et al. 2020).

    accelerate launch trainers/generation.py                                    # a small model on the embedded sample
    accelerate launch trainers/generation.py --config trainers/configs/generation/unicoder/mt_es.yaml --data DIR
    accelerate launch trainers/generation.py --config trainers/configs/generation/xglue/xdae.yaml --data XGLUE
    accelerate launch trainers/generation.py --config trainers/configs/generation/staple/pt.yaml --data STAPLE
    accelerate launch trainers/generation.py --task staple --data build/staple --languages qaa --draw weighted

The defaults train a small model from scratch in minutes on two CPU cores; the paper's settings are in the YAML files.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.perplexity import perplexity_signature
from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import run_with_sentence
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.comparison import MakeSystem
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.generation.model import GeneratorMethods, build_generator, make_pair_trainer
from mrs_suggest.training.generation.options import (
    REPLY,
    STEPS,
    GenerationArguments,
    GenerationTrainingArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.generation.recipe import TaskGeneration
from mrs_suggest.training.generation.remedies import RESUME_KEYS
from mrs_suggest.training.generation.tasks import task_of
from mrs_suggest.training.launch import train
from mrs_suggest.training.recipe import Fitted
from mrs_suggest.training.reply.data import RunData
from mrs_suggest.training.reply.families import GENERATION
from mrs_suggest.training.reply.generation.denoising_steps import read_denoising_text
from mrs_suggest.training.reply.generation.generation_training import (
    METRICS,
    GenerationTrainer,
    encode_sources,
    perplexities,
)
from mrs_suggest.training.reply.generation.interpolation import copied_weights, interpolate
from mrs_suggest.training.reply.recipe import ReplyRecipe
from mrs_suggest.training.reply.watching import make_watch, watch_record, watched_messages
from mrs_suggest.training.sampling import make_sampler
from mrs_suggest.training.staple.options import STAPLE
from mrs_suggest.training.staple.recipe import StapleGeneration

if TYPE_CHECKING:
    from transformers import HfArgumentParser, Trainer, TrainingArguments


class Generation(GeneratorMethods, ReplyRecipe[GenerationArguments, Generator]):
    """The generator of replies in a run."""

    family, metrics, ranks, steps = GENERATION, METRICS, False, STEPS
    lower_is_better = ("perplexity", "loss")
    resume_keys = ("decoder", "decoder_layers", "keep_pieces", *RESUME_KEYS)

    def resolved(self, options: GenerationArguments) -> GenerationArguments:
        require_own_options(options)
        return resolved_search(options, SUGGESTIONS)

    def load(self, options: GenerationArguments, training: TrainingArguments) -> RunData:
        data = super().load(options, training)
        text, watched = read_denoising_text(options.denoising_text, training.seed), {}
        if options.watch_languages:
            source = open_prepared(options.data, options.data_revision)
            watched = watched_messages(source, options.watch_languages, options.max_validation_examples)
        return replace(data, denoising=text, watched=watched)

    def resume_identity(self, options: GenerationArguments, facts: Record) -> Record:
        text = facts["data"].get("denoising", {}).get("content_hash")
        return {**super().resume_identity(options, facts), "denoising text": text}

    def build(self, options: GenerationArguments, training: TrainingArguments, data: RunData) -> Generator:
        return build_generator(options, training, data.texts(), data.languages())

    def make_trainer(
        self, parts: Generator, options: GenerationArguments, training: TrainingArguments, data: RunData
    ) -> Trainer:
        with training.main_process_first(local=False):  # one rank fills the cache, the others read it
            rows, lengths = encode_sources(data, parts.coder)
        sizes, alpha = [len(source) for source in data.sources.values()], data.plan.sampling_alpha
        sampler = make_sampler(sizes, options, training, alpha, lengths)
        trainer = make_pair_trainer(GenerationTrainer, parts, training, rows, sampler)
        trainer.validation = data.validation
        if data.denoising:
            texts = data.denoising.train
            trainer.pair_sampler = trainer.mix(texts, options.denoising_share, parts.coder, sampler, options)
        if options.wrong_language_limit is not None:
            trainer.watch = make_watch(data.watched, options.wrong_language_limit, options.language_model)
        if options.interpolate_start:
            trainer.start = copied_weights(parts.model)
        return trainer

    def finish(self, parts: Generator, trainer: Trainer, options: GenerationArguments) -> Record:
        if not options.interpolate_start:
            return {}
        assert isinstance(trainer, GenerationTrainer)
        assert trainer.start is not None
        return interpolate(trainer, trainer.start, options.interpolate_start)

    def systems(self, parts: Generator) -> list[MakeSystem]:
        return [lambda part: Writer(parts, MODEL)]

    def add_figures(self, fitted: Fitted[GenerationArguments, RunData, Generator], figures: Record) -> None:
        options = fitted.options
        if fitted.finished:
            figures["interpolation"] = fitted.finished
        if options.wrong_language_limit is not None:
            limit, languages = options.wrong_language_limit, options.watch_languages
            figures["watched"] = watch_record(fitted.state, limit, languages)
        for scope, value in perplexities(fitted.parts, fitted.data.test).items():
            figures["systems"][MODEL][scope]["perplexity"] = value
        coder = fitted.parts.coder
        tokens = f"{coder.config.model_type}-{coder.vocabulary_hash()}+{'+'.join(coder.row.end)}"  # not where it began
        figures["language_tokens"] = coder.row.name  # the card says how plain transformers is told the language
        signature = perplexity_signature(tokens, cut=coder.reply_tokens)
        for signatures in figures["signatures"].values():
            signatures["reply_perplexity"] = signature


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train generation` uses it too."""
    return make_dataclass_parser((GenerationArguments, GenerationTrainingArguments), GENERATION.name, __doc__ or "")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""

    def run() -> None:
        options, training = parse_with_config(make_parser(), argv)
        if options.task == REPLY:
            train(Generation(), options, training)
        elif options.task == STAPLE:
            train(StapleGeneration(), options, training)
        else:
            train(TaskGeneration(task_of(options.task)), options, training)

    return run_with_sentence(GENERATION.name, run)


if __name__ == "__main__":
    sys.exit(main())
