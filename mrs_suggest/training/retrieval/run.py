"""A run of the paper's dual encoder: data, training, what is derived from the encoder, and its test (section 4.1)."""

import logging
from dataclasses import replace

from mrs_suggest.evaluation.tables import print_results
from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.reply.data import (
    CURVES,
    RunData,
    compare_replies,
    load_reply_data,
    read_more_text,
    reply_identity,
    with_context,
)
from mrs_suggest.training.retrieval import FAMILY as RETRIEVAL
from mrs_suggest.training.retrieval.model import build, make_trainer, own_figures, systems
from mrs_suggest.training.retrieval.options import (
    STEPS,
    RetrievalArguments,
    RetrievalTrainingArguments,
    resolved,
    sound_retrieval,
)
from mrs_suggest.training.retrieval.parts import derived_parts, save
from mrs_suggest.training.run import Run

RESUME_KEYS = (
    "encoders", "dimension", "pooling", "normalize", "query_prompt", "reply_prompt", "loss", "temperature",
    "mask_duplicates", "freeze_layers", "dropout", "layers", "layer_decay", "context_turns",
    "teacher", "teacher_prompt", "teacher_temperature", "distill_weight", "distill", "perturbed", "keep_pieces",
)  # fmt: skip


def run(options: RetrievalArguments, training: RetrievalTrainingArguments) -> Record | None:
    """Train a retriever, derive its indexes, ranker, language detector and guard, and compare it on test."""
    # The two encoders cut messages and replies at different lengths, about which the library warns.
    logging.getLogger("sentence_transformers.base.modules.router").setLevel(logging.ERROR)
    options = resolved(sound_retrieval(options, training))
    with Run(RETRIEVAL, options, training, steps=STEPS, advice=lambda trains: advice(options, training, trains)) as run:
        data = run.load(lambda: _load(options, training))
        facts = data.facts()
        run.begin(facts, RESUME_KEYS, rate_decay=training.rate_decay, **reply_identity(options, facts))
        parts = run.build(lambda: build(options, training, data))
        plain, reader = data, parts.context
        data = run.load(lambda: with_context(plain, reader)) if reader else plain
        trainer = make_trainer(parts, options, training, data)
        if not run.train(trainer, parts.model, load=load_dual_encoder):
            return None
        run.merge_adapters(parts.model)
        parts = run.evaluate(lambda: derived_parts(parts, options, training, data, plain))
        run.save(lambda folder: save(parts, folder))
        if options.skip_test:
            return run.finish({}, curves=CURVES)
        compared = run.evaluate(lambda: compare_replies(systems(parts), data.test, options, RETRIEVAL.name, ranks=True))
        figures = compared.figures | run.evaluate(lambda: own_figures(parts, options, data))
        return run.finish(figures, compared.milliseconds, compared.files, compared.named, CURVES, show=print_results)


def _load(options: RetrievalArguments, training: RetrievalTrainingArguments) -> RunData:
    text = read_more_text("--distill_text", options.distill_text)
    return replace(load_reply_data(options, training, need_responses=True), more_text=text)


def advice(options: RetrievalArguments, training: RetrievalTrainingArguments, trains: bool) -> str:
    """Advice for when memory runs out."""
    if not trains:
        return "lower --message_tokens, --max_validation_examples or --max_test_examples"
    batch = training.per_device_train_batch_size
    if options.encoders == "static":
        return f"lower --per_device_train_batch_size (now {batch:,})"
    at_a_time = min(options.mini_batch_size, batch)
    if at_a_time > 1:
        return f"lower --mini_batch_size to less than {at_a_time:,}, which does not change the loss"
    return f"lower --message_tokens or --per_device_train_batch_size (now {batch:,}), or pass --peft lora"
