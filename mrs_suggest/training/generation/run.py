"""A run of a generator of replies: data, training, remedies, test (Zhang et al. 2021, section 4.2)."""

from dataclasses import replace
from functools import partial

from transformers import TrainingArguments

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.comparison import MakeSystem
from mrs_suggest.evaluation.tables import print_results
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.saved.record import Record
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.generation import FAMILY as GENERATION
from mrs_suggest.training.generation.model import build_generator, generator_run, make_pair_trainer, save_and_test
from mrs_suggest.training.generation.options import (
    REMEDIES,
    GenerationArguments,
    GenerationTrainingArguments,
    SearchArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.generation.remedies import make_watch, watch_record, watched_messages
from mrs_suggest.training.generation.training import (
    METRICS,
    GenerationTrainer,
    add_perplexity,
    copied_weights,
    encode_sources,
    interpolate,
)
from mrs_suggest.training.reply.data import (
    CURVES,
    Compared,
    RunData,
    compare_replies,
    load_reply_data,
    read_more_text,
    reply_identity,
)
from mrs_suggest.training.reply.options import sound_reply
from mrs_suggest.training.sampling import PairSampler, make_sampler

RESUME_KEYS = ("decoder", "decoder_layers", "keep_pieces", *REMEDIES)


def run(options: GenerationArguments, training: GenerationTrainingArguments) -> Record | None:
    """Train a generator of replies, and compare it with the baselines on test."""
    options = sound_reply(options, training, METRICS)
    require_own_options(options)
    if options.wrong_language_limit is not None and training.eval_strategy == "no":
        raise InputError("--wrong_language_limit: needs evaluations, which --eval_strategy no disables; leave one out.")
    options = resolved_search(options, SUGGESTIONS)
    with generator_run(GENERATION, options, training) as run:
        data = run.load(lambda: _load(options, training))
        facts = data.facts()
        run.begin(facts, RESUME_KEYS, **reply_identity(options, facts))
        generator = run.build(lambda: build_generator(options, training, data.texts(), data.languages()))
        trainer = make_trainer(generator, options, training, data)
        start = copied_weights(generator.model) if options.interpolate_start and not options.estimate else None
        writes = run.train(trainer, generator.model)
        between = interpolate(trainer, start, options.interpolate_start) if start else None
        if not writes:
            return None
        more: Record = {"interpolation": between} if between else {}
        if options.wrong_language_limit is not None:
            more["watched"] = watch_record(trainer.state, options.wrong_language_limit, options.watch_languages)
        test = partial(compared, generator, options, data, GENERATION.name, more)
        return save_and_test(run, generator, test, CURVES, print_results)


def compared(generator: Generator, options: SearchArguments, data: RunData, family: str, more: Record) -> Compared:
    """A trained generator and the baselines on test, with `more` among the figures."""
    systems: list[MakeSystem] = [lambda part: Writer(generator, MODEL, part.language)]
    found = compare_replies(systems, data.test, options, family, options.rank_pools)
    figures = {**found.figures, **more}
    add_perplexity(figures, generator, data)
    return replace(found, figures=figures)


def _load(options: GenerationArguments, training: TrainingArguments) -> RunData:
    data = load_reply_data(options, training, need_responses=options.rank_pools)
    text, watched = read_more_text("--denoising_text", options.denoising_text), {}
    if options.watch_languages:
        source = open_prepared(options.data, options.data_revision)
        watched = watched_messages(source, options.watch_languages, options.max_validation_examples)
    return replace(data, more_text=text, watched=watched)


def make_trainer(
    generator: Generator, options: GenerationArguments, training: TrainingArguments, data: RunData
) -> GenerationTrainer:
    trainer = reply_trainer(generator, options, training, data)
    if data.more_text:
        texts, sampler = data.more_text.train, trainer.sampler
        assert isinstance(sampler, PairSampler)
        trainer.sampler = trainer.mix(texts, options.denoising_share, generator.coder, sampler, options)
    if options.wrong_language_limit is not None:
        trainer.watch = make_watch(data.watched, options.wrong_language_limit, options.language_model)
    return trainer


def reply_trainer(
    generator: Generator, options: SearchArguments, training: TrainingArguments, data: RunData
) -> GenerationTrainer:
    """The library's trainer with our batches, loss and validation."""
    with training.main_process_first(local=False):  # one rank fills the cache, the others read it
        rows, lengths = encode_sources(data, generator.coder)
    sizes, alpha = [len(source) for source in data.sources.values()], data.plan.sampling_alpha
    sampler = make_sampler(sizes, options, training, alpha, lengths)
    trainer = make_pair_trainer(GenerationTrainer, generator, training, rows, sampler)
    trainer.validation = data.validation
    return trainer
