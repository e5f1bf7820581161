"""A run of XGLUE's understanding tasks: fine-tune an encoder and test it (Liang et al. 2020, section 6)."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, cast

from torch import nn

from mrs_datasets.readers.xglue_files import predictions_path
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.text_rows import say
from mrs_suggest.models.understanding.understanding_start import UnderstandingParts, build_understanding, has_head
from mrs_suggest.training.options import has_steps
from mrs_suggest.training.run import Run, lower_batch_size
from mrs_suggest.training.understanding import FAMILY
from mrs_suggest.training.understanding.card import print_scores
from mrs_suggest.training.understanding.data import UnderstandingData, load_understanding_data
from mrs_suggest.training.understanding.figures import (
    Predictions,
    figures_of,
    predictions_of,
    rows_of,
    write_predictions,
)
from mrs_suggest.training.understanding.options import (
    MULTITASK,
    STEPS,
    UnderstandingArguments,
    UnderstandingTrainingArguments,
    sound_understanding,
)
from mrs_suggest.training.understanding.training import collator_of, make_understanding_trainer

if TYPE_CHECKING:
    from transformers import TrainingArguments

PREDICTIONS = "predictions"  # in the run's folder: a submission, TASK/LANG.prediction
RESUME_KEYS = (
    "mode", "task", "tasks", "pivot", "train", "sampling_alpha", "length_window", "max_tokens", "window_overlap",
    "max_train_examples", "vocabulary",
)  # fmt: skip


def run(options: UnderstandingArguments, training: UnderstandingTrainingArguments) -> Record | None:
    """Train a model for one task or several, keep the best checkpoint, and test it."""
    options = sound_understanding(options, training)
    with Run(
        FAMILY, options, training, steps=STEPS, lower_is_better=("loss",),
        advice=lambda trains: f"{lower_batch_size(training, trains)}, or --max_tokens",
    ) as run:  # fmt: skip
        data = run.load(lambda: load_understanding_data(options, training.seed))
        facts = data.facts()
        own = {code: one["content_hash"] for code, one in facts["data"].get("train", {}).items()}
        run.begin(facts, RESUME_KEYS, validation=facts["plan"]["validation"], **{"own data": own})
        parts = run.build(lambda: _build(options, training, data))
        trainer = make_understanding_trainer(parts, options, training, data)
        if not run.train(trainer, parts.model):
            return None
        run.merge_adapters(parts.model, parts.tokenizer.save_pretrained)
        run.save(parts.save)
        if options.skip_test:
            return run.finish({})
        predictions, milliseconds = run.evaluate(lambda: _answer_tests(options, training, data, parts))
        files = {
            predictions_path(PREDICTIONS, name, code).as_posix(): partial(
                write_predictions, part=part, predictions=predictions[name][code]
            )
            for name, of in data.test.items()
            for code, part in of.items()
        }
        figures = figures_of(predictions, data.test)
        named = f"{PREDICTIONS}/TASK/LANG.prediction"
        return run.finish(figures, milliseconds, files, named, show=print_scores)


def _build(options: UnderstandingArguments, training: TrainingArguments, data: UnderstandingData) -> UnderstandingParts:
    heads = {task.name: task.head for task in options.chosen()}
    revision = options.model_revision
    with start_folder(options.model_name_or_path, data.texts, training.seed, options.vocabulary) as name:
        shared, tokens = options.mode == MULTITASK, options.max_tokens
        parts = build_understanding(name, revision, heads=heads, shared=shared, max_tokens=tokens, seed=training.seed)
        for task, head in heads.items():
            if not has_steps(training) and not has_head(name, task, head, revision):
                raise InputError(
                    f"--model_name_or_path {options.model_name_or_path}: has no head for {task}, so there is "
                    "nothing to test without training; leave --max_steps out."
                )
    return parts


def _answer_tests(
    options: UnderstandingArguments, training: TrainingArguments, data: UnderstandingData, parts: UnderstandingParts
) -> tuple[Predictions, dict[str, float]]:
    """The predictions on the test split of each task and language, and milliseconds to make one, by task."""
    cast(nn.Module, parts.model).to(training.device)
    predictions: Predictions = {}
    milliseconds: dict[str, float] = {}
    for name, of in data.test.items():
        started = time.time()
        for code, part in of.items():
            rows = rows_of(part, parts, options.window_overlap)
            batch = training.per_device_eval_batch_size
            said = say(parts.model, collator_of(parts, name), rows, batch, part.task.kind)
            predictions.setdefault(name, {})[code] = predictions_of(part, parts.heads[name], rows, said)
        milliseconds[name] = 1000 * (time.time() - started) / sum(map(len, of.values()))
    return predictions, milliseconds
