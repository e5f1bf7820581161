"""Train a multiple-choice model (Ponti et al. 2020, section 4) on COPA or SIQA, and test it on XCOPA's languages.

    accelerate launch trainers/multiple_choice.py --setup CO-ZS --data DIR         # a small model from scratch
    accelerate launch trainers/multiple_choice.py --config trainers/configs/multiple_choice/co_tlv.yaml --data DIR

DIR is a folder that `mrs data prepare xcopa` wrote from XCOPA and COPA. The defaults are the paper's; its five setups
are in the YAML files.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import nn

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.models.retrieval.tiny import build_tiny
from mrs_suggest.models.understanding.choice_inputs import choice_scores
from mrs_suggest.models.understanding.choice_start import ChoiceParts, build_choice_model, load_choice_model
from mrs_suggest.models.understanding.multiple_choice import ChoiceModel
from mrs_suggest.training.choice.card import print_accuracies
from mrs_suggest.training.choice.data import ChoiceData, load_choice_data
from mrs_suggest.training.choice.families import MULTIPLE_CHOICE
from mrs_suggest.training.choice.figures import Scores, figures_of, write_answers
from mrs_suggest.training.choice.options import (
    METRICS,
    STEPS,
    TRANSLATION,
    WITHOUT_EFFECT,
    ChoiceArguments,
    ChoiceTrainingArguments,
    require_sound_choice,
    validates_on,
)
from mrs_suggest.training.choice.setups import TARGET, require_stage, setup_of
from mrs_suggest.training.choice.training import BestOfEachLanguage, ChoiceTrainer, EncodedQuestions, choice_loss
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.launch import train
from mrs_suggest.training.options import TINY
from mrs_suggest.training.recipe import Evaluation, Fitted, Recipe
from mrs_suggest.training.sampling import PairSampler

if TYPE_CHECKING:
    from transformers import HfArgumentParser, Trainer, TrainerCallback, TrainingArguments


class MultipleChoice(Recipe[ChoiceArguments, ChoiceData, ChoiceParts]):
    """The multiple-choice model in a run."""

    family, metrics, steps = MULTIPLE_CHOICE, METRICS, STEPS
    lower_is_better = ("loss",)
    without_effect = WITHOUT_EFFECT
    resume_keys = (
        "setup", "train", "view", "questions", "prompts", "head", "pooling", "input", "frozen_encoder", "dropout",
        "encoder_dropout", "max_tokens", "max_train_examples", "vocabulary",
    )  # fmt: skip
    best: BestOfEachLanguage | None = None  # of a run that keeps a checkpoint for each language

    def require_sound(self, options: ChoiceArguments, training: TrainingArguments) -> None:
        require_sound_choice(options, training)
        require_stage(setup_of(options.setup), options.model_name_or_path, options.model_revision)

    def load(self, options: ChoiceArguments, training: TrainingArguments) -> ChoiceData:
        return load_choice_data(options, training.seed)

    def resume_identity(self, options: ChoiceArguments, facts: Record) -> Record:
        return {**super().resume_identity(options, facts), "validation": facts["plan"]["validation"]}

    def build(self, options: ChoiceArguments, training: TrainingArguments, data: ChoiceData) -> ChoiceParts:
        with tempfile.TemporaryDirectory() as folder:
            name, revision = options.model_name_or_path, options.model_revision
            if name == TINY:
                build_tiny(data.texts(), Path(folder), training.seed, options.vocabulary)
                name = folder
            parts = build_choice_model(
                name,
                revision,
                head=options.head,
                pooling=options.pooling,
                input=options.input,
                dropout=options.dropout,
                encoder_dropout=options.encoder_dropout,
                max_tokens=options.max_tokens,
                seed=training.seed,
            )
        if options.frozen_encoder:
            if not isinstance(parts.model, ChoiceModel):
                raise InputError(
                    "--frozen_encoder: needs the paper's head, and this model has transformers'; leave it out."
                )
            parts.model.freeze_encoder()
        return parts

    def make_trainer(
        self, parts: ChoiceParts, options: ChoiceArguments, training: TrainingArguments, data: ChoiceData
    ) -> Trainer:
        questions = [question for part in data.train.values() for question in part.viewed(options.view)]
        rows = EncodedQuestions(parts.coder.encode(questions), [question.label for question in questions])
        trainer = ChoiceTrainer(
            model=parts.model,
            args=training,
            train_dataset=rows,
            eval_dataset=rows,  # ours is in `validation`
            data_collator=parts.collator,
            compute_loss_func=choice_loss,
        )
        trainer.pair_sampler = PairSampler(
            [len(part.questions) for part in data.train.values()],
            training.per_device_train_batch_size,
            mixed=True,
            world_size=training.world_size,
            rank=training.process_index,
            accumulation=training.gradient_accumulation_steps,
            seed=training.seed,
        )
        trainer.parts, trainer.view, trainer.validation = parts, options.view, data.validation
        if validates_on(options) == TARGET:
            folder = Path(str(training.output_dir))
            self.best = BestOfEachLanguage(folder, list(data.validation), options.patience, parts)
            trainer.add_callback(self.best)
        return trainer

    def stopping(self, options: ChoiceArguments) -> TrainerCallback | None:
        return None if validates_on(options) == TARGET else super().stopping(options)

    def save(self, parts: ChoiceParts, folder: Path) -> None:
        parts.save(folder)

    def evaluate(self, fitted: Fitted[ChoiceArguments, ChoiceData, ChoiceParts]) -> Evaluation:
        """Accuracy on the test split of each language and view, with the checkpoint that its validation chose."""
        options, data = fitted.options, fitted.data
        scores: dict[str, Scores] = {view: {} for view in data.tests}
        seconds = dict.fromkeys(data.tests, 0.0)
        for languages, parts in self._models(fitted):
            cast(nn.Module, parts.model).to(fitted.training.device)
            for view, tests in data.tests.items():
                for config, part in tests.items():
                    if config in languages:
                        started = time.time()
                        rows = parts.coder.encode(part.viewed(options.view if view == TRANSLATION else view))
                        batch = fitted.training.per_device_eval_batch_size
                        scores[view][config] = choice_scores(parts.model, parts.collator, rows, batch)
                        seconds[view] += time.time() - started
        answered = {view: sum(len(part.questions) for part in tests.values()) for view, tests in data.tests.items()}
        milliseconds = {view: 1000 * seconds[view] / answered[view] for view in data.tests}
        figures: Record = {"systems": {view: figures_of(scores[view], tests) for view, tests in data.tests.items()}}
        figures |= self.validated(fitted).figures
        files = {
            f"predictions.{'' if view == options.view else view + '.'}{config}.tsv": partial(
                write_answers, part=part, scores=scores[view][config]
            )
            for view, tests in data.tests.items()
            for config, part in tests.items()
        }
        return Evaluation(figures, milliseconds, files, "predictions.LANG.tsv")

    def validated(self, fitted: Fitted[ChoiceArguments, ChoiceData, ChoiceParts]) -> Evaluation:
        """The best checkpoint of each language, where each has its own."""
        return Evaluation({"best_of_each_language": self.best.facts()} if self.best else {})

    def _models(
        self, fitted: Fitted[ChoiceArguments, ChoiceData, ChoiceParts]
    ) -> Iterator[tuple[set[str], ChoiceParts]]:
        """Languages, and the model to test them with."""
        tested = {config for tests in fitted.data.tests.values() for config in tests}
        own = self.best.folders() if self.best else {}
        for folder, languages in own.items():
            yield set(languages), load_choice_model(folder)
            tested -= set(languages)
        if tested:
            yield tested, fitted.parts

    def show(self, record: Record) -> None:
        print_accuracies(record)


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train multiple_choice` uses it too."""
    return make_dataclass_parser((ChoiceArguments, ChoiceTrainingArguments), MULTIPLE_CHOICE.name, __doc__ or "")


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence(
        MULTIPLE_CHOICE.name, lambda: train(MultipleChoice(), *parse_with_config(make_parser(), argv))
    )


if __name__ == "__main__":
    sys.exit(main())
