"""The options that all trainers share: data, setting, batches, adapters, and when to stop."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from mrs_core.baselines import require_no_revision
from mrs_core.errors import InputError, first_line
from mrs_core.hub import split_revision
from mrs_models.tiny import VOCABULARY
from mrs_training.sampling import BATCHES, WINDOW

if TYPE_CHECKING:
    from transformers import TrainingArguments

TINY = "tiny"
# Options of the libraries' trainers that something of ours takes the place of.
WITHOUT_EFFECT = {
    "auto_find_batch_size": "the size of a batch is fixed by --per_device_train_batch_size",
    "data_seed": "--seed draws the batches",
    "train_sampling_strategy": "see --batches and --length_window",
    "bf16_full_eval": "evaluation is in the model's precision",
    "fp16_full_eval": "evaluation is in the model's precision",
    "predict_with_generate": "every evaluation generates",
    "generation_num_beams": "see --beams",
    "generation_max_length": "see --max_tokens",
    "generation_config": "see --beams and the options beside it",
    "prompts": "messages and replies are encoded as they are, in training and after it",
    "logging_nan_inf_filter": "a run ends at the first loss that is no finite number",
    "save_only_model": "such a checkpoint cannot be resumed",
    "batch_sampler": "see --batches and --sampling_alpha",
    "multi_dataset_batch_sampler": "see --batches and --sampling_alpha",
    "router_mapping": "messages and replies each have their encoder",
    "per_device_eval_batch_size": "evaluation has its own batches",
    "sortish_sampler": "see --length_window",
}
ADAPTERS = ("none", "lora")


@dataclass
class SharedArguments:
    """Where training pairs come from, how they are drawn, and what is evaluated."""

    data: str = field(
        default="sample", metadata={"help": "a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`"}
    )
    data_revision: str | None = field(default=None, metadata={"help": "revision of a hub data set"})
    setting: str | None = field(
        default=None,
        metadata={
            "help": "monolingual, zero_shot, mt or multilingual (paper, section 3.2): what is trained, validated and "
            "tested on; without it, --languages are all three"
        },
    )
    languages: list[str] = field(
        default_factory=lambda: ["all"], metadata={"help": "languages to test on, or `all` that the data have"}
    )
    train: list[str] | None = field(
        default=None, metadata={"help": "training sources in place of the setting's, such as `en mt-es`"}
    )
    validation: list[str] | None = field(
        default=None, metadata={"help": "languages that choose the checkpoint, in place of the setting's"}
    )
    sampling_alpha: float | None = field(
        default=None,
        metadata={"help": "sources are drawn by n^alpha: 0 equal sizes (multilingual), .3 (XGLUE), 1 by size (others)"},
    )
    batches: str = field(
        default=BATCHES[0], metadata={"help": "language: one in each batch, as in the official code; or mixed"}
    )
    length_window: int = field(
        default=WINDOW, metadata={"help": "steps whose examples are sorted by length together; 0: not sorted"}
    )
    model_name_or_path: str = field(
        default=TINY,
        metadata={"help": "a hub id (also ORG/NAME@REVISION), a folder, or `tiny` (built and trained from scratch)"},
    )
    model_revision: str | None = field(default=None, metadata={"help": "revision of a hub model"})
    vocabulary: int = field(default=VOCABULARY, metadata={"help": "largest vocabulary of `tiny`"})
    freeze_embeddings: bool = field(default=False, metadata={"help": "freeze the embeddings (paper, 4.3: yes)"})
    peft: str = field(default="none", metadata={"help": "none, or lora: train adapters of low rank (Hu et al. 2022)"})
    lora_rank: int = field(default=16, metadata={"help": "rank of the adapters"})
    lora_alpha: float = field(default=32.0, metadata={"help": "their scale is lora_alpha / lora_rank"})
    lora_dropout: float = field(default=0.05, metadata={"help": "dropout before the adapters"})
    patience: int = field(
        default=0, metadata={"help": "stop after so many evaluations without a better one; 0: never (paper)"}
    )
    max_train_examples: int | None = field(default=None, metadata={"help": "a seeded sample of each source"})
    max_validation_examples: int | None = field(default=10_000, metadata={"help": "of each language; a seeded sample"})
    max_test_examples: int | None = field(
        default=100_000, metadata={"help": "of each language; a seeded sample (TF-IDF takes 10 ms an example)"}
    )
    overwrite: bool = field(default=False, metadata={"help": "replace a finished run in --output_dir"})


Options = TypeVar("Options", bound=SharedArguments)


def require_sound(
    options: SharedArguments,
    training: TrainingArguments,
    metrics: tuple[str, ...],
    without_effect: Mapping[str, str] | None = None,
) -> None:
    """Refuse what the libraries would stumble over later, before anything is replaced.

    Args:
        without_effect: options of the trainer that this family has no use for, and why.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and training.world_size == 1:
        raise InputError("several processes were launched, but each believes it is alone; on CPUs pass --use_cpu true.")
    require_least(training, "per_device_train_batch_size", 1)
    require_least(training, "gradient_accumulation_steps", 1)
    require_least(options, "vocabulary", 100)
    require_least(options, "patience", 0)
    require_least(options, "length_window", 0)
    require_least(options, "lora_rank", 1)
    for name, value, allowed in (
        ("metric_for_best_model", training.metric_for_best_model, metrics),
        ("batches", options.batches, BATCHES),
        ("peft", options.peft, ADAPTERS),
    ):
        if value not in allowed:
            raise InputError(f"--{name}: expected one of {', '.join(allowed)}, found {value!r}.")
    for name in ("max_train_examples", "max_validation_examples", "max_test_examples"):
        if getattr(options, name) is not None:
            require_least(options, name, 1)
    require_least(training, "seed", 0)
    if not 0 <= training.label_smoothing_factor < 1:
        raise InputError(
            f"--label_smoothing_factor: expected 0 or more and less than 1, found {training.label_smoothing_factor:g}."
        )
    if training.n_gpu > 1:
        raise InputError(
            f"one process sees {training.n_gpu} GPUs: start one for each with `torchrun --nproc_per_node "
            f"{training.n_gpu}` or `accelerate launch`, or choose one with CUDA_VISIBLE_DEVICES."
        )
    if training.fp16 and training.device.type == "cpu":
        raise InputError("--fp16 true: needs a GPU, and this run is on the CPU; pass --fp16 false, or --bf16 true.")
    for name, reason in {**WITHOUT_EFFECT, **(without_effect or {})}.items():
        if name in {field.name for field in fields(training)} and _given(training, name):
            raise InputError(f"--{name}: has no effect here: {reason}; leave it out.")
    by_steps = training.eval_strategy == "steps"
    if training.load_best_model_at_end and by_steps and training.eval_steps != training.save_steps:
        raise InputError(
            f"--save_steps {training.save_steps:g}: must equal --eval_steps, which is {training.eval_steps}, so that "
            "the best model is among the checkpoints; pass the same for both, or --load_best_model_at_end false."
        )
    if options.peft != "none" and (options.freeze_embeddings or getattr(options, "freeze_layers", False)):
        raise InputError("--peft lora: freezes all but the adapters already; leave the --freeze options out.")
    if options.peft == "none":
        for name in ("lora_rank", "lora_alpha", "lora_dropout"):
            if _given(options, name):
                raise InputError(f"--{name}: has no effect without --peft lora; pass that too, or leave it out.")
    if options.patience and not training.load_best_model_at_end:
        raise InputError("--patience needs --load_best_model_at_end true: it keeps the best checkpoint.")
    if options.peft != "none" and options.model_name_or_path == TINY:
        raise InputError("--peft lora adapts a trained model, and `tiny` is none; pass --model_name_or_path.")
    _require_integrations(list(training.report_to or ()))  # the library has made a list of it


def _require_integrations(names: Sequence[str]) -> None:
    """Refuse an integration that is not known, not installed or not set up: each says so when it is made."""
    from transformers.integrations import get_reporting_integration_callbacks

    for name in names:
        reason = None
        with redirect_stderr(io.StringIO()):  # MLflow's complains as it is thrown away half made
            try:
                for callback in get_reporting_integration_callbacks([name]):
                    callback()
            except (ValueError, RuntimeError, ImportError) as error:
                reason = first_line(error)
        if reason:
            raise InputError(f"--report_to {name}: {reason}.")


def with_model_revision(options: Options) -> Options:
    """The options with `--model_name_or_path ORG/NAME@REVISION` taken apart into name and `--model_revision`.

    Raises:
        InputError: the two name different revisions, or a revision was asked for of what is no repository of the hub.
    """
    name, revision = options.model_name_or_path, options.model_revision
    if name == TINY or Path(name).exists():
        require_no_revision(
            f"--model_name_or_path {name}", revision, "is built here" if name == TINY else "is a folder"
        )
        return options
    name, revision = split_revision(name, revision)
    return replace(options, model_name_or_path=name, model_revision=revision)


def _given(options: SharedArguments | TrainingArguments, name: str) -> bool:
    """Whether an option differs from its default."""
    field = next(field for field in fields(options) if field.name == name)
    value = getattr(options, name)
    return bool(value != field.default and value is not None and value != {})


def require_least(options: Any, name: str, least: int) -> None:
    """Refuse a value that is too small."""
    if getattr(options, name) < least:
        raise InputError(f"--{name}: expected {least} or more, found {getattr(options, name)}.")
