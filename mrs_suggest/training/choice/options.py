"""The options of the multiple-choice task."""

from dataclasses import dataclass
from typing import ClassVar

from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.models.understanding.choice_start import DEFAULTS, HEADS, MAX_TOKENS
from mrs_suggest.models.understanding.multiple_choice import INPUTS, POOLINGS
from mrs_suggest.training.choice.setups import ENGLISH_PROMPTS, PROMPTS, SETUPS, TARGET, setup_of
from mrs_suggest.training.options import (
    LIMITS,
    LoraArguments,
    TrainerDefaults,
    option,
    require_one_of,
    sound,
    trains_lora,
)

FULL, TRANSLATION = "full", "translation"
MASKED = ("full", "nop", "noq", "nopq")  # nothing, the premise, the prompt, or both are hidden (section 4.3)
VIEWS = (*MASKED, TRANSLATION)
QUESTIONS = ("files", "corrected")
METRICS = ("accuracy", "loss")
STEPS = 1000  # ours: the most updates where neither epochs nor steps are given; patience ends most runs before
WITHOUT_EFFECT = {
    "train_sampling_strategy": "batches are drawn at random",
    "label_smoothing_factor": "the loss is the paper's cross-entropy",
}


@dataclass
class ChoiceArguments(LoraArguments):
    """Model, data and what is evaluated. Defaults are the paper's (section 4.1, appendix C) unless they say `ours`."""

    advanced: ClassVar[tuple[str, ...]] = ("encoder_dropout", "vocabulary")
    least: ClassVar[dict[str, int]] = {"vocabulary": 100, **LIMITS}
    data: str = option("", "training data: a prepared folder, or a hub id (also ORG/NAME@REVISION)")
    setup: str | None = option(
        None, f"{', '.join(SETUPS)} (paper, Table 4); default: --train, --validation and --languages"
    )
    test_data: str | None = option(
        None, "test data, and validation data in languages other than those of training (default: --data)"
    )
    train: list[str] = option(["en"], "configs to train on (paper: en)")
    validation: str | None = option(
        None,
        "source: one checkpoint, chosen in the languages of training; target: one for each tested "
        "language, chosen in it; default: the setup's, else source",
    )
    languages: list[str] = option(["all"], "languages to test on, or `all` in the data")
    view: str = option(
        FULL,
        "texts that the model sees, in training and tests: full; nop, without the premise; noq, without "
        "the prompt; nopq, without both (paper, 4.3)",
    )
    test_views: list[str] = option(
        [], f"further tests in addition to --view: {', '.join(VIEWS)}; translation: test sets translated to English"
    )
    questions: str = option(
        QUESTIONS[0], "files: the questions as published; corrected: the question of most languages, if they disagree"
    )
    prompts: str = option(ENGLISH_PROMPTS, f"{' or '.join(PROMPTS)}: the language of the prompts")
    head: str | None = option(
        None,
        f"{' or '.join(HEADS)} (default: {DEFAULTS['head']}, or that of the checkpoint): ours, after "
        "the paper, or transformers' for the architecture",
    )
    pooling: str | None = option(
        None, f"{' or '.join(POOLINGS)} (default: {DEFAULTS['pooling']}; paper, for USE: mean)"
    )
    input: str | None = option(None, f"{' or '.join(INPUTS)} (default: {DEFAULTS['input']}; paper, for USE: single)")
    frozen_encoder: bool = option(False, "train the head alone (paper, for USE, at rates of 1e-3 to 1e-5)")
    dropout: float | None = option(None, "on the encoder's vector and in the head (default: .1; paper: 0 or .1)")
    encoder_dropout: float | None = option(None, "inside the encoder; default: the checkpoint's")
    max_tokens: int | None = option(None, f"longer inputs are cut (default: {MAX_TOKENS}, or the checkpoint's; ours)")
    vocabulary: int = option(VOCABULARY, "largest vocabulary of `tiny`")
    patience: int = option(10, "stop after this many evaluations without improvement (paper: 10); 0: never")
    max_train_examples: int | None = option(None, "limit per config; a seeded sample")
    max_validation_examples: int | None = option(None, "limit per language; a seeded sample")
    max_test_examples: int | None = option(None, "limit per language; a seeded sample")


@dataclass
class ChoiceTrainingArguments(TrainerDefaults, TrainingArguments):
    """The library's own arguments with the paper's values for COPA as defaults (appendix C)."""

    output_dir: str | None = option("build/multiple_choice", "the folder of the run")
    per_device_train_batch_size: int = option(8, "questions per batch and device (paper: 4, 8)")
    per_device_eval_batch_size: int = option(32, "questions per batch; affects memory only")
    num_train_epochs: float = option(0.0, f"passes over the questions; 0: at most {STEPS:,} steps (ours)")
    learning_rate: float = option(1e-5, "learning rate (paper: 5e-6, 1e-5 or 3e-5)")
    lr_scheduler_type: str = option("constant", "schedule (paper: no warm-up, no decay named)")
    warmup_steps: float = option(0, "steps, or a share of them if below 1 (paper: none)")
    weight_decay: float = option(0.0, "weight decay (paper: none)")
    adam_epsilon: float = option(1e-8, "epsilon of Adam (paper: 1e-8)")
    max_grad_norm: float = option(1.0, "norm at which gradients are clipped (paper: 1)")
    logging_steps: float = option(10, "steps between two points of the loss curve")
    eval_steps: float | None = option(10, "steps between two evaluations (paper: 10 for COPA, 500 for SIQA)")
    save_strategy: str = option("steps", "no, steps, epoch or best")
    save_steps: float = option(10, "steps between two checkpoints; must equal eval_steps")
    save_total_limit: int | None = option(1, "checkpoints kept in addition to the best one")
    metric_for_best_model: str | None = option(METRICS[0], "the validation metric that picks the checkpoint")


def validates_on(options: ChoiceArguments) -> str:
    """`source` or `target`: the option's, else the setup's."""
    setup = setup_of(options.setup)
    return options.validation or (setup.validation if setup else "source")


def sound_choice(options: ChoiceArguments, training: TrainingArguments) -> ChoiceArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    setup = setup_of(options.setup)
    options = sound(options, training, METRICS, WITHOUT_EFFECT)
    if not options.data:
        raise InputError(
            "--data: missing; pass a folder that `mrs data prepare xcopa` or `mrs data prepare siqa` wrote."
        )
    for name, allowed in (("view", MASKED), ("questions", QUESTIONS), ("prompts", PROMPTS)):
        require_one_of(name, getattr(options, name), allowed)
    for view in options.test_views:
        require_one_of("test_views", view, VIEWS)
    if options.validation is not None:
        require_one_of("validation", options.validation, ("source", TARGET))
        if setup and options.validation != setup.validation:
            raise InputError(
                f"--validation {options.validation}: --setup {setup.name} chooses by {setup.validation}; leave one out."
            )
    if trains_lora(options) and options.frozen_encoder:
        raise InputError("--peft lora: trains parts of the encoder, which --frozen_encoder freezes; leave one out.")
    if validates_on(options) == TARGET and not training.load_best_model_at_end:
        raise InputError(
            "--validation target: keeps the best checkpoint of each language; leave --load_best_model_at_end and "
            "--eval_strategy no out."
        )
    return options
