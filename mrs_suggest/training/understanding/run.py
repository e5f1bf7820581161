"""A run of XGLUE's understanding tasks: fine-tune an encoder and test it (Liang et al. 2020, section 6)."""

import time
from functools import cached_property, partial
from typing import Any, cast

import numpy as np
from torch import nn
from transformers import TrainingArguments

from mrs_datasets.readers.xglue_files import predictions_path
from mrs_suggest.common.errors import InputError, diverged
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.text_rows import Row, RowCollator, logits_of, say, understanding_loss
from mrs_suggest.models.understanding.understanding_start import UnderstandingParts, build_understanding, has_head
from mrs_suggest.training.options import has_steps
from mrs_suggest.training.run import Run, lower_batch_size
from mrs_suggest.training.sampling import KeyedCollator, KeyedRows, sampler_of_run
from mrs_suggest.training.trainer import MeasuringTrainer
from mrs_suggest.training.understanding import FAMILY
from mrs_suggest.training.understanding.card import print_scores
from mrs_suggest.training.understanding.data import Part, Parts, UnderstandingData, each, load_understanding_data
from mrs_suggest.training.understanding.figures import (
    Predictions,
    figures_of,
    predictions_of,
    rows_of,
    validation_figures,
    write_predictions,
)
from mrs_suggest.training.understanding.options import (
    MULTITASK,
    STEPS,
    UnderstandingArguments,
    UnderstandingTrainingArguments,
    sound_understanding,
)

PREDICTIONS = "predictions"  # in the run's folder: a submission, TASK/LANG.prediction
RESUME_KEYS = (
    "mode", "task", "tasks", "pivot", "train", "sampling_alpha", "length_window", "max_tokens", "window_overlap",
    "max_train_examples", "vocabulary",
)  # fmt: skip


def collator_of(parts: UnderstandingParts, task: str) -> RowCollator:
    return RowCollator(parts.tokenizer, task if parts.shared else None)


class UnderstandingTrainer(MeasuringTrainer):
    """The library's trainer with our batches and our evaluation.

    Attributes:
        validation: task -> language -> examples.
    """

    parts: UnderstandingParts
    validation: Parts
    overlap: int

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with our loss, which must know the padding."""
        mask = inputs["attention_mask"]
        self.compute_loss_func = lambda outputs, *rest, **more: understanding_loss(
            logits_of(outputs, mask), *rest, **more
        )
        return super().compute_loss(model, inputs, *args, **kwargs)

    def figures(self) -> dict[str, float]:
        """The score of each task and language (`score_xnli-en`), their mean (`score`, first over languages, then over
        tasks), and the mean cross-entropy in nats of what is labelled (`loss`)."""
        predictions: Predictions = {}
        loss, labelled = 0.0, 0
        batch = self.args.per_device_eval_batch_size
        for part, rows in self._encoded:
            collator, kind = collator_of(self.parts, part.task.name), part.task.kind
            said = self.answered(rows, partial(say, self.parts.model, collator, batch_size=batch, kind=kind))
            loss, labelled = loss + sum(one.loss for one in said), labelled + sum(one.labelled for one in said)
            if not abs(loss) < float("inf"):  # NaN fails too
                raise diverged(f"at step {self.state.global_step:,} the loss on validation is {loss:.4g}")
            head = self.parts.heads[part.task.name]
            predictions.setdefault(part.task.name, {})[part.language] = predictions_of(part, head, rows, said)
        found = {**validation_figures(predictions, self.validation), "loss": loss / max(1, labelled)}
        self.print_figures(found)
        return found

    @cached_property
    def _encoded(self) -> list[tuple[Part, list[Row]]]:
        return [(part, rows_of(part, self.parts, self.overlap)) for part in each(self.validation)]


def make_understanding_trainer(
    parts: UnderstandingParts, options: UnderstandingArguments, training: TrainingArguments, data: UnderstandingData
) -> UnderstandingTrainer:
    """The trainer of a run: sources are drawn by size^alpha, and in multitask a batch has one of them (section 6.1)."""
    sources = [(part.task.name, rows_of(part, parts, options.window_overlap)) for part in each(data.train)]
    rows = KeyedRows(sources)
    trainer = UnderstandingTrainer(
        model=parts.model,
        args=training,
        train_dataset=rows,
        eval_dataset=rows,  # ours is in `validation`
        data_collator=KeyedCollator({task: collator_of(parts, task) for task in parts.heads}),
        compute_loss_func=understanding_loss,
    )
    trainer.sampler = sampler_of_run(
        [len(own) for _, own in sources],
        training,
        alpha=options.sampling_alpha,
        mixed=options.mode != MULTITASK,
        lengths=np.asarray([len(row) for _, own in sources for row in own]),
        window=options.length_window,
    )
    trainer.parts, trainer.validation, trainer.overlap = parts, data.validation, options.window_overlap
    return trainer


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
