"""The options of the multiple-choice task."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.models.understanding.choice_start import DEFAULTS, HEADS, MAX_TOKENS
from mrs_suggest.models.understanding.multiple_choice import INPUTS, POOLINGS
from mrs_suggest.training.choice.prompts import ENGLISH_PROMPTS, PROMPTS
from mrs_suggest.training.choice.setups import SETUPS, TARGET, setup_of
from mrs_suggest.training.options import (
    LoraArguments,
    TrainerDefaults,
    require_least,
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
    "data_seed": "--seed draws the batches",
    "train_sampling_strategy": "batches are drawn at random",
    "bf16_full_eval": "validation has the precision of training (--bf16), the test that of the model",
    "fp16_full_eval": "validation has the precision of training (--fp16), the test that of the model",
    "label_smoothing_factor": "the loss is the paper's cross-entropy",
}


@dataclass
class ChoiceArguments(LoraArguments):
    """Model, data and what is evaluated. Defaults are the paper's (section 4.1, appendix C) unless they say `ours`."""

    advanced: ClassVar[tuple[str, ...]] = ("test_data_revision", "encoder_dropout", "vocabulary")
    data: str = field(
        default="", metadata={"help": "what is trained on: a prepared folder, or a hub id (also ORG/NAME@REVISION)"}
    )
    setup: str | None = field(
        default=None,
        metadata={"help": f"{', '.join(SETUPS)} (paper, Table 4); default: --train, --validation and --languages"},
    )
    test_data: str | None = field(
        default=None,
        metadata={"help": "what is tested on, and validated on where that is another language; default: --data"},
    )
    test_data_revision: str | None = field(default=None, metadata={"help": "revision of a hub data set"})
    train: list[str] = field(default_factory=lambda: ["en"], metadata={"help": "configs to train on (paper: en)"})
    validation: str | None = field(
        default=None,
        metadata={"help": "source: one checkpoint, chosen in the languages of training; target: one for each tested "
                          "language, chosen in it; default: the setup's, else source"},
    )  # fmt: skip
    languages: list[str] = field(
        default_factory=lambda: ["all"], metadata={"help": "languages to test on, or `all` in the data"}
    )
    view: str = field(
        default=FULL,
        metadata={"help": "what the model sees, in training and tests: full; nop, without the premise; noq, without "
                          "the prompt; nopq (paper, 4.3)"},
    )  # fmt: skip
    test_views: list[str] = field(
        default_factory=list,
        metadata={
            "help": f"tests in addition to --view, of {', '.join(VIEWS)}; translation: test sets translated to English"
        },
    )
    questions: str = field(
        default=QUESTIONS[0],
        metadata={"help": "files: the questions as published; corrected: with the majority of the languages, where "
                          "they disagree"},
    )  # fmt: skip
    prompts: str = field(
        default=ENGLISH_PROMPTS, metadata={"help": f"{' or '.join(PROMPTS)}: the language of the prompts"}
    )
    head: str | None = field(
        default=None,
        metadata={"help": f"{' or '.join(HEADS)} (default: {DEFAULTS['head']}, or that of the checkpoint): ours, after "
                          "the paper, or transformers' for the architecture"},
    )  # fmt: skip
    pooling: str | None = field(
        default=None,
        metadata={"help": f"{' or '.join(POOLINGS)} (default: {DEFAULTS['pooling']}; paper, for USE: mean)"},
    )
    input: str | None = field(
        default=None, metadata={"help": f"{' or '.join(INPUTS)} (default: {DEFAULTS['input']}; paper, for USE: single)"}
    )
    frozen_encoder: bool = field(
        default=False, metadata={"help": "train the head alone (paper, for USE, at rates of 1e-3 to 1e-5)"}
    )
    dropout: float | None = field(
        default=None, metadata={"help": "on the encoder's vector and in the head (default: .1; paper: 0 or .1)"}
    )
    encoder_dropout: float | None = field(
        default=None, metadata={"help": "inside the encoder; default: the checkpoint's"}
    )
    max_tokens: int | None = field(
        default=None, metadata={"help": f"longer inputs are cut (default: {MAX_TOKENS}, or the checkpoint's; ours)"}
    )
    vocabulary: int = field(default=VOCABULARY, metadata={"help": "largest vocabulary of `tiny`"})
    patience: int = field(
        default=10, metadata={"help": "stop after this many evaluations without improvement (paper: 10); 0: never"}
    )
    max_train_examples: int | None = field(default=None, metadata={"help": "limit per config; a seeded sample"})
    max_validation_examples: int | None = field(default=None, metadata={"help": "limit per language; a seeded sample"})
    max_test_examples: int | None = field(default=None, metadata={"help": "limit per language; a seeded sample"})


@dataclass
class ChoiceTrainingArguments(TrainerDefaults, TrainingArguments):
    """The library's own arguments with the paper's values for COPA as defaults (appendix C)."""

    output_dir: str | None = field(default="build/multiple_choice", metadata={"help": "the folder of the run"})
    per_device_train_batch_size: int = field(
        default=8, metadata={"help": "questions per batch and device (paper: 4, 8)"}
    )
    per_device_eval_batch_size: int = field(default=32, metadata={"help": "questions per batch; affects memory only"})
    num_train_epochs: float = field(
        default=0.0, metadata={"help": f"passes over the questions; 0: at most {STEPS:,} steps (ours)"}
    )
    learning_rate: float = field(default=1e-5, metadata={"help": "learning rate (paper: 5e-6, 1e-5 or 3e-5)"})
    lr_scheduler_type: str = field(
        default="constant", metadata={"help": "schedule (paper: no warm-up, no decay named)"}
    )
    warmup_steps: float = field(default=0, metadata={"help": "steps, or a share of them if below 1 (paper: none)"})
    weight_decay: float = field(default=0.0, metadata={"help": "weight decay (paper: none)"})
    adam_epsilon: float = field(default=1e-8, metadata={"help": "epsilon of Adam (paper: 1e-8)"})
    max_grad_norm: float = field(default=1.0, metadata={"help": "norm at which gradients are clipped (paper: 1)"})
    logging_steps: float = field(default=10, metadata={"help": "steps between two points of the loss curve"})
    eval_steps: float | None = field(
        default=10, metadata={"help": "steps between two evaluations (paper: 10 for COPA, 500 for SIQA)"}
    )
    save_strategy: str = field(default="steps", metadata={"help": "no, steps, epoch or best"})
    save_steps: float = field(default=10, metadata={"help": "steps between two checkpoints; must equal eval_steps"})
    save_total_limit: int | None = field(default=1, metadata={"help": "checkpoints kept in addition to the best one"})
    metric_for_best_model: str | None = field(
        default=METRICS[0], metadata={"help": "the validation metric that picks the checkpoint"}
    )
    remove_unused_columns: bool = field(default=False, metadata={"help": "keep false: batches are ours"})


def validates_on(options: ChoiceArguments) -> str:
    """`source` or `target`: the option's, else the setup's."""
    setup = setup_of(options.setup)
    return options.validation or (setup.validation if setup else "source")


def sound_choice(options: ChoiceArguments, training: TrainingArguments) -> ChoiceArguments:
    """The options, once they are known to go together.

    Raises:
        InputError: it names the option.
    """
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
    require_least(options, "vocabulary", 100)
    for name in ("max_train_examples", "max_validation_examples", "max_test_examples"):
        if getattr(options, name) is not None:
            require_least(options, name, 1)
    if trains_lora(options) and options.frozen_encoder:
        raise InputError("--peft lora: trains parts of the encoder, which --frozen_encoder freezes; leave one out.")
    if validates_on(options) == TARGET and not training.load_best_model_at_end:
        raise InputError(
            "--validation target: keeps the best checkpoint of each language; leave --load_best_model_at_end and "
            "--eval_strategy no out."
        )
    return options
