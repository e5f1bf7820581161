"""Fine-tune an encoder on XGLUE's understanding tasks (Liang et al. 2020, section 6), and test it in all languages.

    accelerate launch trainers/understanding.py --task xnli --data DIR               # a small model from scratch
    accelerate launch trainers/understanding.py --config trainers/configs/understanding/xnli.yaml --data DIR
    accelerate launch trainers/understanding.py --mode multitask --tasks xnli pawsx --data DIR

DIR is a folder that `mrs data prepare xglue` wrote. The defaults are the paper's for sentence classification; the YAML
files have those of each task.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

from torch import nn

from mrs_datasets.readers.xglue_files import predictions_path
from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.models.retrieval.tiny import build_tiny
from mrs_suggest.models.understanding.text_rows import say
from mrs_suggest.models.understanding.understanding_start import UnderstandingParts, build_understanding, has_head
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.fit import has_steps
from mrs_suggest.training.launch import train
from mrs_suggest.training.options import TINY
from mrs_suggest.training.recipe import Evaluation, Fitted, Recipe
from mrs_suggest.training.understanding.card import print_scores
from mrs_suggest.training.understanding.data import UnderstandingData, load_understanding_data
from mrs_suggest.training.understanding.families import UNDERSTANDING
from mrs_suggest.training.understanding.figures import Predictions, figures_of, write_predictions
from mrs_suggest.training.understanding.options import (
    METRICS,
    MULTITASK,
    STEPS,
    WITHOUT_EFFECT,
    UnderstandingArguments,
    UnderstandingTrainingArguments,
    require_sound_understanding,
)
from mrs_suggest.training.understanding.reading import predictions_of, rows_of
from mrs_suggest.training.understanding.training import collator_of, make_understanding_trainer

if TYPE_CHECKING:
    from transformers import HfArgumentParser, Trainer, TrainingArguments

PREDICTIONS = "predictions"  # in the run's folder: a submission, TASK/LANG.prediction


class UnderstandingRecipe(Recipe[UnderstandingArguments, UnderstandingData, UnderstandingParts]):
    """A model for understanding tasks in a run."""

    family, metrics, steps = UNDERSTANDING, METRICS, STEPS
    lower_is_better = ("loss",)
    without_effect = WITHOUT_EFFECT
    resume_keys = (
        "mode", "task", "tasks", "pivot", "train", "sampling_alpha", "length_window", "max_tokens", "window_overlap",
        "max_train_examples", "vocabulary",
    )  # fmt: skip

    def require_sound(self, options: UnderstandingArguments, training: TrainingArguments) -> None:
        require_sound_understanding(options, training)

    def load(self, options: UnderstandingArguments, training: TrainingArguments) -> UnderstandingData:
        return load_understanding_data(options, training.seed)

    def resume_identity(self, options: UnderstandingArguments, facts: Record) -> Record:
        own = {code: one["content_hash"] for code, one in facts["data"].get("train", {}).items()}
        return {**super().resume_identity(options, facts), "own data": own, "validation": facts["plan"]["validation"]}

    def build(
        self, options: UnderstandingArguments, training: TrainingArguments, data: UnderstandingData
    ) -> UnderstandingParts:
        heads = {task.name: task.head for task in options.chosen()}
        with tempfile.TemporaryDirectory() as folder:
            name, revision = options.model_name_or_path, options.model_revision
            if name == TINY:
                build_tiny(data.texts(), Path(folder), training.seed, options.vocabulary)
                name = folder
            parts = build_understanding(
                name,
                revision,
                heads=heads,
                shared=options.mode == MULTITASK,
                max_tokens=options.max_tokens,
                seed=training.seed,
            )
            if not has_steps(training):
                for task, head in heads.items():
                    if not has_head(name, task, head, revision):
                        raise InputError(
                            f"--model_name_or_path {options.model_name_or_path}: has no head for {task}, so there is "
                            "nothing to test without training; leave --max_steps out."
                        )
        return parts

    def make_trainer(
        self,
        parts: UnderstandingParts,
        options: UnderstandingArguments,
        training: TrainingArguments,
        data: UnderstandingData,
    ) -> Trainer:
        return make_understanding_trainer(parts, options, training, data)

    def saves_memory(self, options: UnderstandingArguments, training: TrainingArguments, trains: bool) -> str:
        return super().saves_memory(options, training, trains) + ", or --max_tokens"

    def save(self, parts: UnderstandingParts, folder: Path) -> None:
        parts.save(folder)

    def save_beside_adapter(self, parts: UnderstandingParts, folder: Path) -> None:
        parts.tokenizer.save_pretrained(folder)

    def evaluate(self, fitted: Fitted[UnderstandingArguments, UnderstandingData, UnderstandingParts]) -> Evaluation:
        """The scores on the test split of each task and language, and the files of a submission."""
        parts, tests, batch = fitted.parts, fitted.data.test, fitted.training.per_device_eval_batch_size
        cast(nn.Module, parts.model).to(fitted.training.device)
        predictions: Predictions = {}
        milliseconds: dict[str, float] = {}
        files = {}
        for name, of in tests.items():
            started = time.time()
            for code, part in of.items():
                rows = rows_of(part, parts, fitted.options.window_overlap)
                said = say(parts.model, collator_of(parts, name), rows, batch, part.task.kind)
                predicted = predictions_of(part, parts.heads[name], rows, said)
                predictions.setdefault(name, {})[code] = predicted
                place = predictions_path(PREDICTIONS, name, code).as_posix()
                files[place] = partial(write_predictions, part=part, predictions=predicted)
            milliseconds[name] = 1000 * (time.time() - started) / sum(map(len, of.values()))
        return Evaluation(figures_of(predictions, tests), milliseconds, files, f"{PREDICTIONS}/TASK/LANG.prediction")

    def show(self, record: Record) -> None:
        print_scores(record)


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train understanding` uses it too."""
    return make_dataclass_parser(
        (UnderstandingArguments, UnderstandingTrainingArguments), UNDERSTANDING.name, __doc__ or ""
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence(
        UNDERSTANDING.name, lambda: train(UnderstandingRecipe(), *parse_with_config(make_parser(), argv))
    )


if __name__ == "__main__":
    sys.exit(main())
