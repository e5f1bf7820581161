"""A run of multiple choice: train on COPA or SIQA, test on XCOPA's languages (Ponti et al. 2020, section 4)."""

import copy
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn
from torch.nn import functional
from transformers import TrainerControl, TrainerState, TrainingArguments
from transformers.trainer_callback import ExportableState

from mrs_suggest.common.errors import InputError, diverged
from mrs_suggest.models.adapters import has_lora, merge_lora
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.saved.record import BEST, Record
from mrs_suggest.models.understanding.choice_inputs import Encoded, choice_scores
from mrs_suggest.models.understanding.choice_start import ChoiceParts, build_choice_model, load_choice_model
from mrs_suggest.models.understanding.multiple_choice import ChoiceModel
from mrs_suggest.training.choice import FAMILY
from mrs_suggest.training.choice.card import print_accuracies
from mrs_suggest.training.choice.data import ChoiceData, Part, load_choice_data
from mrs_suggest.training.choice.figures import Scores, cross_entropy, figures_of, right_answers, write_answers
from mrs_suggest.training.choice.options import (
    STEPS,
    TRANSLATION,
    ChoiceArguments,
    ChoiceTrainingArguments,
    sound_choice,
    validates_on,
)
from mrs_suggest.training.choice.setups import TARGET, require_stage, setup_of
from mrs_suggest.training.run import Run
from mrs_suggest.training.sampling import sampler_of_run
from mrs_suggest.training.trainer import MeasuringTrainer, Resumable

SHAPE = ("head", "pooling", "input", "dropout", "encoder_dropout", "max_tokens")  # of a model
RESUME_KEYS = (
    "setup", "train", "view", "questions", "prompts", "frozen_encoder", "max_train_examples", "vocabulary", *SHAPE,
)  # fmt: skip


def choice_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy over the choices, in nats, as the mean over the questions of the whole step.

    The sum is divided by the questions of all ranks and accumulated batches, so that the gradient does not depend on
    how a step is cut into batches.
    """
    total = functional.cross_entropy(outputs["logits"].float(), labels, reduction="sum")
    return total / (len(labels) if num_items_in_batch is None else num_items_in_batch)


class ChoiceTrainer(MeasuringTrainer):
    """The library's trainer with our batches and our evaluation.

    Attributes:
        validation: config -> questions.
    """

    parts: ChoiceParts
    view: str
    validation: Mapping[str, Part]

    def figures(self) -> dict[str, float]:
        """Accuracy of each config (`accuracy_et`), their mean (`accuracy`), and the mean cross-entropy in nats.

        The precision is that of training (`--bf16`); tests have the model's own.
        """
        found: dict[str, float] = {}
        losses: list[float] = []
        batch = self.args.per_device_eval_batch_size
        for config, rows in self._encoded.items():
            scores = self.answered(rows, lambda some: choice_scores(self.parts.model, self.parts.collator, some, batch))
            labels = [question.label for question in self.validation[config].questions]
            losses += cross_entropy(scores, labels)
            right = right_answers(scores, labels)
            found[f"accuracy_{config}"] = sum(right) / len(right)
        found = {"accuracy": sum(found.values()) / len(found), "loss": sum(losses) / len(losses), **found}
        if not abs(found["loss"]) < float("inf"):  # NaN fails too
            raise diverged(f"at step {self.state.global_step:,} the loss on validation is {found['loss']:.4g}")
        self.print_figures(found)
        return found

    @cached_property
    def _encoded(self) -> dict[str, list[Encoded]]:
        coder = self.parts.coder
        return {config: coder.encode(part.viewed(self.view)) for config, part in self.validation.items()}


class BestOfEachLanguage(Resumable, ExportableState):
    """Keeps the best checkpoint of each language, and ends the run when all have run out of patience (CO-TLV).

    What a language keeps is what a run with its validation split alone would keep: training does not depend on
    validation, and after `patience` evaluations without a better accuracy its later ones no longer count.

    Args:
        folder: of the run; a checkpoint that is the best of some language is in `best/STEP` there.
        patience: 0 never ends.
        parts: the model, saved with its adapters merged.
    """

    def __init__(self, folder: Path, languages: Sequence[str], patience: int, parts: ChoiceParts) -> None:
        self.folder, self.patience, self.parts = folder, patience, parts
        # Accuracy, step, evaluations since.
        self.best: dict[str, list[float]] = {code: [-1.0, 0, 0] for code in languages}

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Compare the languages that have patience left."""
        metrics: Mapping[str, float] = kwargs["metrics"]
        better = False
        for code, entry in self.best.items():
            if self._is_done(entry):
                continue
            accuracy = metrics[f"eval_accuracy_{code}"]
            if accuracy > entry[0]:
                entry[:] = accuracy, state.global_step, 0
                better = True
            else:
                entry[2] += 1
        if better and state.is_world_process_zero:
            self._save(state.global_step)
        if all(self._is_done(entry) for entry in self.best.values()):
            control.should_training_stop = True

    def _is_done(self, entry: Sequence[float]) -> bool:
        return bool(self.patience) and entry[2] >= self.patience

    def _save(self, step: int) -> None:
        place = self.folder / BEST / str(step)
        model = self.parts.model
        if has_lora(model):
            model = copy.deepcopy(model)
            merge_lora(model)
        shutil.rmtree(place, ignore_errors=True)
        ChoiceParts(model, self.parts.tokenizer).save(place)
        for other in place.parent.iterdir():
            if int(other.name) not in {int(entry[1]) for entry in self.best.values()}:
                shutil.rmtree(other)

    def facts(self) -> dict[str, dict[str, float]]:
        """Language -> the `step` of its best checkpoint and its `accuracy` on the validation split of that language."""
        return {code: {"step": int(step), "accuracy": value} for code, (value, step, _) in self.best.items() if step}

    def folders(self) -> dict[Path, list[str]]:
        """The folder of a checkpoint -> the languages whose best it is."""
        found: dict[Path, list[str]] = {}
        for code, entry in self.facts().items():
            found.setdefault(self.folder / BEST / str(entry["step"]), []).append(code)
        return found

    def state(self) -> dict[str, Any]:
        return {"args": {}, "attributes": {"best": {code: list(entry) for code, entry in self.best.items()}}}


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
        shape = {key: getattr(options, key) for key in SHAPE}
        parts = build_choice_model(name, options.model_revision, seed=seed, **shape)
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
