"""A run of a generation task: a source text in, one text out (XGLUE, Liang et al. 2020, sections 2.2.3 and 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.generation.card import print_scores
from mrs_suggest.training.generation.data import TextData, load_text_data
from mrs_suggest.training.generation.families import TASK_GENERATION
from mrs_suggest.training.generation.model import GeneratorMethods, build_generator, make_pair_trainer
from mrs_suggest.training.generation.options import (
    MODES,
    MULTILANGUAGE,
    STEPS,
    GenerationArguments,
    require_own_options,
    resolved_search,
)
from mrs_suggest.training.generation.tasks import PREDICTIONS, TextTask
from mrs_suggest.training.generation.training import TextTrainer, answer_tests
from mrs_suggest.training.options import FROM_SCRATCH, require_one_of
from mrs_suggest.training.recipe import Evaluation, Fitted, Recipe
from mrs_suggest.training.reply.generation.generation_training import encode_pairs
from mrs_suggest.training.reply.options import require_sound
from mrs_suggest.training.sampling import make_sampler, require_alpha

if TYPE_CHECKING:
    from transformers import Trainer, TrainingArguments


class TaskGeneration(GeneratorMethods, Recipe[GenerationArguments, TextData, Generator]):
    """A generator of another task than replies in a run; no baseline of replies is compared with it.

    Args:
        task: a row of the table of tasks.
    """

    family, steps = TASK_GENERATION, STEPS
    lower_is_better = ("perplexity", "loss")
    resume_keys = (
        "task", "decoder", "decoder_layers", "keep_pieces", "sampling_alpha", "batches", "length_window",
        "message_tokens", "reply_tokens", "max_train_examples", "freeze_embeddings", "freeze_decoder_layers",
        "force_language_token",
    )  # fmt: skip

    def __init__(self, task: TextTask) -> None:
        self.task = task
        self.metrics = (task.metric, "perplexity", "loss")
        self.curves = {task.metric: f"{task.name}, {task.metric.upper()}"}

    def require_sound(self, options: GenerationArguments, training: TrainingArguments) -> None:
        require_sound(options, training, self.metrics, self.without_effect)
        require_own_options(options)
        if options.setting is not None:
            raise InputError(f"--setting: belongs to replies; with --task {options.task} pass --mode and --pivot.")
        if options.data == "sample":
            raise InputError("--data: missing; pass a folder that `mrs data prepare xglue` wrote.")
        if options.mode is not None:
            require_one_of("mode", options.mode, MODES)
        if options.mode == MULTILANGUAGE and options.pivot is not None:
            raise InputError("--pivot: --mode multilanguage trains on all languages; leave the option out.")
        if options.sampling_alpha is not None:
            require_alpha(options.sampling_alpha)
        self.task.signature("en")  # now, not after training

    def resolved(self, options: GenerationArguments) -> GenerationArguments:
        return resolved_search(options, 1)

    def load(self, options: GenerationArguments, training: TrainingArguments) -> TextData:
        return load_text_data(self.task, options, training.seed)

    def resume_identity(self, options: GenerationArguments, facts: Record) -> Record:
        plan, data = facts["plan"], facts["data"]
        return {
            **super().resume_identity(options, facts),
            **{name: plan[name] for name in ("mode", "train", "validation")},
            "own_files": data.get("own_files"),
            "vocabulary": options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
        }

    def build(self, options: GenerationArguments, training: TrainingArguments, data: TextData) -> Generator:
        return build_generator(options, training, data.texts(), data.languages)

    def make_trainer(
        self, parts: Generator, options: GenerationArguments, training: TrainingArguments, data: TextData
    ) -> Trainer:
        with training.main_process_first(local=False):  # one rank fills the cache, the others read it
            rows, lengths = encode_pairs([(found, language) for language, found in data.train.items()], parts.coder)
        sizes = [len(found) for found in data.train.values()]
        sampler = make_sampler(sizes, options, training, data.sampling_alpha, lengths)
        trainer = make_pair_trainer(TextTrainer, parts, training, rows, sampler)
        trainer.task, trainer.validation = self.task, data.validation
        return trainer

    def evaluate(self, fitted: Fitted[GenerationArguments, TextData, Generator]) -> Evaluation:
        """Score on the test split of each language, beside a baseline that copies the beginning of the source."""
        tested = answer_tests(fitted.parts, fitted.data)
        figures = {**tested.figures, "language_tokens": fitted.parts.coder.row.name}
        return Evaluation(figures, tested.milliseconds, tested.files(), f"{PREDICTIONS}/{self.task.name}/")

    def show(self, record: Record) -> None:
        print_scores(record)
