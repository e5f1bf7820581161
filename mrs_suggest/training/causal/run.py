"""A run of a causal language model that writes replies: data, training on the replies alone, test."""

from __future__ import annotations

import tempfile
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.tables import print_results
from mrs_suggest.models.generation.causal import CausalCoder, CausalGenerator, load_causal
from mrs_suggest.models.generation.decoder_freezing import freeze_embeddings
from mrs_suggest.models.generation.language_tokens import ROWS
from mrs_suggest.models.generation.tiny_generator import build_tiny_causal
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import CAUSAL, TINY, require_start
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.causal import FAMILY
from mrs_suggest.training.causal.options import CausalArguments, CausalTrainingArguments, sampling_of, sound_causal
from mrs_suggest.training.generation.model import advice, make_pair_trainer
from mrs_suggest.training.generation.options import STEPS, decoding_of
from mrs_suggest.training.generation.training import GenerationTrainer, add_perplexity, encode_sources
from mrs_suggest.training.reply.data import CURVES, RunData, compare_replies, load_reply_data, reply_identity
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import make_sampler


def run(options: CausalArguments, training: CausalTrainingArguments) -> Record | None:
    """Train a language model on replies, and compare it with the baselines on test."""
    options = sound_causal(options, training)
    with Run(
        FAMILY, options, training, steps=STEPS, lower_is_better=("perplexity", "loss"),
        advice=lambda trains: advice(options, training, trains),
    ) as run:  # fmt: skip
        data = run.load(lambda: load_reply_data(options, training, need_responses=options.constrained))
        facts = data.facts()
        run.begin(facts, ("prompt",), **reply_identity(options, facts))
        generator = run.build(lambda: build_causal(options, training, data))
        trainer = make_trainer(generator, options, training, data)
        if not run.train(trainer, generator.model):
            return None
        run.merge_adapters(generator.model, generator.save_settings)
        run.save(generator.save)
        if options.skip_test:
            return run.finish({}, curves=CURVES)
        systems = [lambda part: Writer(generator, MODEL)]
        compared = run.evaluate(lambda: compare_replies(systems, data.test, options, FAMILY.name, ranks=False))
        figures = {**compared.figures, "prompts": {part.language: generator.coder.rendered(part.language) for part in data.test}}
        run.evaluate(lambda: add_perplexity(figures, generator, data))
        return run.finish(figures, compared.milliseconds, compared.files, compared.named, CURVES, show=print_results)


def build_causal(options: CausalArguments, training: CausalTrainingArguments, data: RunData) -> CausalGenerator:
    """The language model to train: `tiny` or a checkpoint.

    Raises:
        InputError: it cannot be loaded, is another kind of model, or is too short for texts of these lengths.
    """
    with tempfile.TemporaryDirectory() as folder:
        name, revision = options.model_name_or_path, options.model_revision
        if name == TINY:
            name = str(build_tiny_causal(data.texts(), data.languages(), Path(folder), training.seed, options.vocabulary))
        require_start(name, CAUSAL, revision)
        model, tokenizer = load_causal(name, revision)
    lengths = options.message_tokens, options.reply_tokens
    coder = CausalCoder(tokenizer, ROWS["causal"], model.config, *lengths, template=options.prompt)
    parts = {part.language: part for part in (*data.validation, *data.test)}
    replies = {code: part.responses.replies for code, part in parts.items()} if options.constrained else None
    generator = CausalGenerator(
        model, coder, data.languages(), decoding_of(options), sampling_of(options), replies
    )
    positions = getattr(model.config, "max_position_embeddings", None)
    most = max(options.reply_tokens, options.max_tokens + 1) + options.message_tokens
    for language in data.languages():
        around = len(coder.messages([""], language)[0]) + 1
        if positions is not None and around + most > positions:
            raise InputError(
                f"--message_tokens {options.message_tokens}: with a prompt of {around} and a reply, the model reads at "
                f"most {positions} tokens; lower it."
            )
    for language in replies or ():
        generator.allowed(language)  # too short a --max_tokens is refused now
    if options.freeze_embeddings:
        freeze_embeddings(model)
    return generator


def make_trainer(
    generator: CausalGenerator, options: CausalArguments, training: CausalTrainingArguments, data: RunData
) -> GenerationTrainer:
    """The library's trainer with our batches, loss and validation."""
    with training.main_process_first(local=False):  # one rank fills the cache, the others read it
        rows, lengths = encode_sources(data, generator.coder)
    sizes, alpha = [len(source) for source in data.sources.values()], data.plan.sampling_alpha
    sampler = make_sampler(sizes, options, training, alpha, lengths)
    trainer = make_pair_trainer(GenerationTrainer, generator, training, rows, sampler)
    trainer.validation = data.validation
    return trainer
