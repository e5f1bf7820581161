"""A run of multiple choice: train on COPA or SIQA, test on XCOPA's languages (Ponti et al. 2020, section 4)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from torch import nn

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding.choice_inputs import choice_scores
from mrs_suggest.models.understanding.choice_start import ChoiceParts, build_choice_model, load_choice_model
from mrs_suggest.models.understanding.multiple_choice import ChoiceModel
from mrs_suggest.training.choice import FAMILY
from mrs_suggest.training.choice.card import print_accuracies
from mrs_suggest.training.choice.data import ChoiceData, load_choice_data
from mrs_suggest.training.choice.figures import Scores, figures_of, write_answers
from mrs_suggest.training.choice.options import (
    STEPS,
    TRANSLATION,
    ChoiceArguments,
    ChoiceTrainingArguments,
    sound_choice,
    validates_on,
)
from mrs_suggest.training.choice.setups import TARGET, require_stage, setup_of
from mrs_suggest.training.choice.training import BestOfEachLanguage, ChoiceTrainer, choice_loss
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import sampler_of_run

if TYPE_CHECKING:
    from transformers import TrainingArguments

RESUME_KEYS = (
    "setup", "train", "view", "questions", "prompts", "head", "pooling", "input", "frozen_encoder", "dropout",
    "encoder_dropout", "max_tokens", "max_train_examples", "vocabulary",
)  # fmt: skip


def run(options: ChoiceArguments, training: ChoiceTrainingArguments) -> Record | None:
    """Train a model, keep the checkpoint (or one for each language) that validation chooses, and test it."""
    options = sound_choice(options, training)
    require_stage(setup_of(options.setup), options.model_name_or_path, options.model_revision)
    with Run(FAMILY, options, training, steps=STEPS, lower_is_better=("loss",)) as run:
        data = run.load(lambda: load_choice_data(options, training.seed))
        facts = data.facts()
        run.begin(facts, RESUME_KEYS, validation=facts["plan"]["validation"])
        parts = run.build(lambda: _build(options, training.seed, data))
        trainer = _make_trainer(parts, options, training, data)
        best = None
        if validates_on(options) == TARGET:
            best = BestOfEachLanguage(run.folder, list(data.validation), options.patience, parts)
        if not run.train(trainer, parts.model, stopping=best):
            return None
        run.merge_adapters(parts.model)
        run.save(parts.save)
        chosen = {"best_of_each_language": best.facts()} if best else {}
        if options.skip_test:
            return run.finish(chosen)
        scores, milliseconds = run.evaluate(lambda: _answer_tests(options, training, data, parts, best))
        figures = {"systems": {view: figures_of(scores[view], tests) for view, tests in data.tests.items()}}
        files = {
            f"predictions.{'' if view == options.view else view + '.'}{config}.tsv": partial(
                write_answers, part=part, scores=scores[view][config]
            )
            for view, tests in data.tests.items()
            for config, part in tests.items()
        }
        return run.finish(figures | chosen, milliseconds, files, "predictions.LANG.tsv", show=print_accuracies)


def _build(options: ChoiceArguments, seed: int, data: ChoiceData) -> ChoiceParts:
    with start_folder(options.model_name_or_path, data.texts, seed, options.vocabulary) as name:
        parts = build_choice_model(
            name,
            options.model_revision,
            head=options.head,
            pooling=options.pooling,
            input=options.input,
            dropout=options.dropout,
            encoder_dropout=options.encoder_dropout,
            max_tokens=options.max_tokens,
            seed=seed,
        )
    if options.frozen_encoder:
        if not isinstance(parts.model, ChoiceModel):
            raise InputError(
                "--frozen_encoder: needs the paper's head, and this model has transformers'; leave it out."
            )
        parts.model.freeze_encoder()
    return parts


def _make_trainer(
    parts: ChoiceParts, options: ChoiceArguments, training: TrainingArguments, data: ChoiceData
) -> ChoiceTrainer:
    questions = [question for part in data.train.values() for question in part.viewed(options.view)]
    encoded = zip(parts.coder.encode(questions), questions, strict=True)
    rows: Any = [{**row, "labels": question.label} for row, question in encoded]
    trainer = ChoiceTrainer(
        model=parts.model,
        args=training,
        train_dataset=rows,
        eval_dataset=rows,  # ours is in `validation`
        data_collator=parts.collator,
        compute_loss_func=choice_loss,
    )
    trainer.sampler = sampler_of_run([len(part.questions) for part in data.train.values()], training, mixed=True)
    trainer.parts, trainer.view, trainer.validation = parts, options.view, data.validation
    return trainer


def _answer_tests(
    options: ChoiceArguments,
    training: TrainingArguments,
    data: ChoiceData,
    parts: ChoiceParts,
    best: BestOfEachLanguage | None,
) -> tuple[dict[str, Scores], dict[str, float]]:
    """The scores of each view's test questions, and milliseconds to answer one, by view."""
    scores: dict[str, Scores] = {view: {} for view in data.tests}
    seconds = dict.fromkeys(data.tests, 0.0)
    for languages, model in _tested_models(data, parts, best):
        cast(nn.Module, model.model).to(training.device)
        for view, tests in data.tests.items():
            for config, part in tests.items():
                if config in languages:
                    started = time.time()
                    rows = model.coder.encode(part.viewed(options.view if view == TRANSLATION else view))
                    batch = training.per_device_eval_batch_size
                    scores[view][config] = choice_scores(model.model, model.collator, rows, batch)
                    seconds[view] += time.time() - started
    answered = {view: sum(len(part.questions) for part in tests.values()) for view, tests in data.tests.items()}
    return scores, {view: 1000 * seconds[view] / answered[view] for view in data.tests}


def _tested_models(
    data: ChoiceData, parts: ChoiceParts, best: BestOfEachLanguage | None
) -> Iterator[tuple[set[str], ChoiceParts]]:
    """Languages, and the model to test them with: the checkpoint that their own validation chose, where it did."""
    tested = {config for tests in data.tests.values() for config in tests}
    for folder, languages in (best.folders() if best else {}).items():
        yield set(languages), load_choice_model(folder)
        tested -= set(languages)
    if tested:
        yield tested, parts
