"""The options of the understanding tasks."""

from dataclasses import dataclass
from typing import ClassVar

from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.models.understanding.understanding_start import LEAST_TOKENS, MAX_TOKENS
from mrs_suggest.training.options import LIMITS, LoraArguments, TrainerDefaults, option, require_one_of, sound
from mrs_suggest.training.sampling import WINDOW, require_alpha
from mrs_suggest.training.understanding.tasks import UNDERSTANDING_TASKS, Understanding, understanding_task

PIVOT, MULTILANGUAGE, MULTITASK = MODES = ("pivot", "multilanguage", "multitask")
SOURCE, ALL = VALIDATIONS = ("source", "all")
METRICS = ("score", "loss")
STEPS = 1000  # ours: where neither epochs nor steps are given
OVERLAP = 128  # BERT's run_squad.py moves its windows by as much
WITHOUT_EFFECT = {
    "train_sampling_strategy": "see --length_window",
    "label_smoothing_factor": "the loss is cross-entropy without it",
}


@dataclass
class UnderstandingArguments(LoraArguments):
    """Tasks, languages, data and model. Defaults are XGLUE's (sections 6.1 and 6.3) unless they say `ours`."""

    advanced: ClassVar[tuple[str, ...]] = ("length_window", "window_overlap", "vocabulary")
    least: ClassVar[dict[str, int]] = {
        "length_window": 0, "window_overlap": 0, "vocabulary": 100, "max_tokens": LEAST_TOKENS, **LIMITS,
    }  # fmt: skip
    data: str = option("", "the folder that `mrs data prepare xglue` wrote, or a hub id (also ORG/NAME@REVISION)")
    mode: str = option(
        PIVOT,
        "pivot: train on one language (6.3.1); multilanguage: on several (6.3.2); multitask: on "
        "several tasks together, one encoder with a head each (6.3.3)",
    )
    task: str | None = option(None, f"{', '.join(name.lower() for name in UNDERSTANDING_TASKS)}")
    tasks: list[str] = option([], "tasks of --mode multitask (6.3.3: xnli pawsx nc qam qadsm)")
    pivot: str = option("en", "the language of training (paper: en)")
    train: list[str] = option(
        [],
        "LANG=FILE_OR_FOLDER ...: training data added to those of --data, Parquet or JSON lines with "
        "the task's columns, or a prepared folder with its config",
    )
    languages: list[str] = option(["all"], "languages to test on, or `all` in the data")
    validation: str = option(
        SOURCE,
        "languages that choose the checkpoint: source, those of training, so that the others are "
        "zero-shot (ours); all, the validation splits of all tested languages (6.1)",
    )
    sampling_alpha: float = option(
        1.0, "sources are drawn by size^alpha (1: by size, as in 6.3.3's merged data; 0: equally)"
    )
    length_window: int = option(WINDOW, "sort rows by length in windows of this many batches (ours); 0: do not sort")
    max_tokens: int | None = option(None, f"tokens of a row (default: {MAX_TOKENS}, 6.1, or the encoder's limit)")
    window_overlap: int = option(
        OVERLAP, "tokens that two windows of a longer sentence or text share, at most half a row (ours)"
    )
    vocabulary: int = option(VOCABULARY, "largest vocabulary of `tiny`")
    max_train_examples: int | None = option(None, "limit per task and language; a seeded sample")
    max_validation_examples: int | None = option(None, "limit per task and language; a seeded sample")
    max_test_examples: int | None = option(None, "limit per task and language; a seeded sample")

    def chosen(self) -> list[Understanding]:
        """The tasks of the run; InputError if none is given, one is unknown, or the option is that of another mode."""
        if self.mode == MULTITASK:
            if self.task or not self.tasks:
                raise InputError("--mode multitask: name its tasks, as in --tasks xnli pawsx, and leave --task out.")
            return [*dict.fromkeys(understanding_task(name, "--tasks") for name in self.tasks)]
        if self.tasks or not self.task:
            raise InputError(
                f"--mode {self.mode}: trains one task; pass it as --task xnli"
                + (", or --mode multitask for several." if self.tasks else ".")
            )
        return [understanding_task(self.task, "--task")]


@dataclass
class UnderstandingTrainingArguments(TrainerDefaults, TrainingArguments):
    """The library's own arguments with the paper's values for sentence classification as defaults (section 6.1)."""

    output_dir: str | None = option("build/understanding", "the folder of the run")
    per_device_train_batch_size: int = option(32, "rows per batch and device (6.1: 32; MLQA 12)")
    per_device_eval_batch_size: int = option(64, "rows at a time; affects memory only")
    num_train_epochs: float = option(10.0, "passes over the training data (6.1: 10; NER and POS 20, MLQA 2)")
    learning_rate: float = option(5e-6, "peak rate (6.1: 5e-6; POS 2e-5, MLQA 3e-5)")
    lr_scheduler_type: str = option("linear", "schedule (6.1 names a warm-up alone; BERT: linear)")
    warmup_steps: float = option(0.1, "steps, or a share of them if below 1 (6.1: a warm-up; BERT's share: .1)")
    weight_decay: float = option(0.0, "weight decay (6.1: Adam, no decay named)")
    eval_strategy: str = option("epoch", "no, steps or epoch (6.1: epoch)")
    save_strategy: str = option("epoch", "no, steps or epoch; must equal eval_strategy")
    metric_for_best_model: str | None = option(METRICS[0], "the validation metric that picks the checkpoint")


def sound_understanding(options: UnderstandingArguments, training: TrainingArguments) -> UnderstandingArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    if training.max_steps == 0:
        training.num_train_epochs = 0.0  # whose default would train, where the other trainers only test
    options = sound(options, training, METRICS, WITHOUT_EFFECT)
    require_one_of("mode", options.mode, MODES)
    require_one_of("validation", options.validation, VALIDATIONS)
    options.chosen()
    if not options.data:
        raise InputError("--data: missing; pass a folder that `mrs data prepare xglue` wrote.")
    if options.mode == MULTITASK and options.train:
        raise InputError("--train: names data of one task, and --mode multitask takes those of --data; leave it out.")
    if options.mode == MULTILANGUAGE and options.pivot != "en":
        raise InputError("--pivot: --mode multilanguage trains on all languages; leave the option out.")
    require_alpha(options.sampling_alpha)
    return options
