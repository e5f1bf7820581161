"""The options of a run of any task: data, model, adapters, and when to stop."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import InputError, MissingExtraError, first_line, require_least, run_with_sentence
from mrs_suggest.common.hub.baselines import require_no_revision
from mrs_suggest.common.hub.hub import split_revision
from mrs_suggest.models.starting_points import FROM_SCRATCH, TINY

if TYPE_CHECKING:
    from transformers import HfArgumentParser, TrainingArguments

    Names = str | list[str] | None  # as the library has it
else:
    Names = list[str]

# Options of the library's trainer that have no effect here, and why.
WITHOUT_EFFECT = {
    "data_seed": "--seed draws the batches",
    "bf16_full_eval": "an evaluation has the precision of the model, or that of training (--bf16)",
    "fp16_full_eval": "an evaluation has the precision of the model, or that of training (--fp16)",
    "auto_find_batch_size": "the size of a batch is fixed by --per_device_train_batch_size",
    "logging_nan_inf_filter": "a run stops at the first loss that is not finite",
    "save_only_model": "such a checkpoint cannot be resumed",
}
ADAPTERS = ("none", "lora")
LIMITS = dict.fromkeys(("max_train_examples", "max_validation_examples", "max_test_examples"), 1)
# The settings of the library's trainers that are options; all others are set by `trainer:` in YAML, or by `--set`.
SHOWN = (
    "output_dir", "global_batch_size", "per_device_train_batch_size", "per_device_eval_batch_size",
    "num_train_epochs", "max_steps", "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay",
    "label_smoothing_factor", "seed", "bf16", "fp16", "use_cpu", "logging_steps", "eval_strategy", "eval_steps",
    "save_strategy", "save_steps", "save_total_limit", "load_best_model_at_end", "metric_for_best_model", "report_to",
    "resume_from_checkpoint", "push_to_hub", "hub_model_id", "hub_private_repo",
)  # fmt: skip
TRACKERS = ("tensorboard", "wandb", "trackio", "mlflow")  # packages, each an extra of its name


def option(default: Any, text: str) -> Any:
    """An option: a field of a dataclass with its default, of which each object has a copy, and its help text."""
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata={"help": text})
    return field(default=default, metadata={"help": text})


@dataclass
class RunArguments:
    """The options of every trainer.

    Attributes:
        advanced: options that the help only names; those of the bases are added, as for `least`.
        least: the smallest values of options; None is allowed, too.
        scratch: the names of models that the trainer builds.
    """

    advanced: ClassVar[tuple[str, ...]] = ("data_revision", "model_revision")
    least: ClassVar[dict[str, int]] = {"patience": 0}
    scratch: ClassVar[tuple[str, ...]] = (TINY,)

    data: str = option("sample", "a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    data_revision: str | None = option(None, "revision of a hub data set")
    model_name_or_path: str = option(
        TINY, "a hub id (also ORG/NAME@REVISION), a folder, or `tiny` (built and trained from scratch)"
    )
    model_revision: str | None = option(None, "revision of a hub model")
    patience: int = option(0, "stop after this many evaluations without improvement; 0: never (paper)")
    overwrite: bool = option(False, "replace a finished run in --output_dir")
    skip_test: bool = option(False, "leave the test split out: the run ends with its figures on validation")
    estimate: bool = option(
        False, "run a few steps, print estimated parameters, memory, speed and total time, then exit"
    )


@dataclass
class LoraArguments(RunArguments):
    """Those of one that can train adapters instead of the whole model; its trainer needs `OurTrainer` as a base."""

    advanced: ClassVar[tuple[str, ...]] = ("lora_alpha", "lora_dropout")
    least: ClassVar[dict[str, int]] = {"lora_rank": 1}
    peft: str = option("none", "none, or lora: train low-rank adapters (Hu et al. 2022)")
    lora_rank: int = option(16, "rank of the adapters")
    lora_alpha: float = option(32.0, "their scale is lora_alpha / lora_rank")
    lora_dropout: float = option(0.05, "dropout before the adapters")


@dataclass
class TrainerDefaults:
    """Defaults shared by all trainers that differ from the library's; listed before its arguments."""

    global_batch_size: int | None = option(None, "examples per step of all processes together: each takes its share")
    eval_strategy: str = option("steps", "no, steps or epoch; must equal save_strategy")
    save_strategy: str = option("steps", "no, steps or epoch")
    save_total_limit: int | None = option(2, "checkpoints kept: the best and the last")
    load_best_model_at_end: bool = option(True, "keep the best checkpoint")
    logging_steps: float = option(20, "steps between two points of the loss curve")
    remove_unused_columns: bool = option(False, "keep false: batches are ours")
    report_to: Names = option(["none"], "none, tensorboard, wandb, trackio, mlflow: one or several")

    def __post_init__(self) -> None:
        import torch  # here, since a model's card names options without it
        from accelerate.utils import get_int_from_env

        own: Any = self  # with the library's arguments
        if own.bf16 and not torch.accelerator.is_available():
            own.use_cpu = True  # which the library itself wants to be told
        most, total = own.per_device_train_batch_size, self.global_batch_size
        if most > 0 and total is not None:
            processes = get_int_from_env(["WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MV2_COMM_WORLD_SIZE"], 1)
            share, rest = divmod(total, processes)
            size = min(most, share)
            if share < 1 or rest or share % size:
                raise InputError(
                    f"--global_batch_size {total:,}: {processes:,} process{'es' * (processes != 1)} with batches "
                    f"of at most {most:,} (--per_device_train_batch_size) cannot share it equally; change one of the "
                    "three numbers."
                )
            if own.gradient_accumulation_steps not in (1, share // size):
                raise InputError("--gradient_accumulation_steps: follows from --global_batch_size; leave one out.")
            own.per_device_train_batch_size, own.gradient_accumulation_steps = size, share // size
        super().__post_init__()  # type: ignore[misc]


def added_options(kind: type) -> tuple[str, ...]:
    """The options that a class adds to those of its bases."""
    return tuple(field.name for field in fields(kind) if field.name in kind.__annotations__)


LORA_OPTIONS = added_options(LoraArguments)
Arguments = TypeVar("Arguments", bound=RunArguments)


def sound(
    options: Arguments,
    training: TrainingArguments,
    metrics: Sequence[str],
    without_effect: Mapping[str, str] | None = None,
) -> Arguments:
    """The options with `--model_name_or_path ORG/NAME@REVISION` split, once the libraries would not fail with them.

    Args:
        without_effect: options of the library's trainer that have no effect for the task or model, and why.
    """
    for name in training.report_to or ():
        if name in TRACKERS and importlib.util.find_spec(name) is None:
            raise MissingExtraError(name, name, f"--report_to {name}")
    training.load_best_model_at_end &= training.eval_strategy != "no"  # without evaluations, no checkpoint is the best
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and training.world_size == 1:
        raise InputError("several processes were launched, but they are not connected; on CPUs pass --use_cpu true.")
    require_least(training, 1, "per_device_train_batch_size", "gradient_accumulation_steps")
    require_least(training, 0, "seed")
    for kind in type(options).__mro__:
        for name, least in vars(kind).get("least", {}).items():
            require_least(options, least, name)
    require_one_of("metric_for_best_model", training.metric_for_best_model, metrics)
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
        if name in {field.name for field in fields(training)} and is_given(training, name):
            raise InputError(f"--{name}: has no effect here: {reason}; leave it out.")
    keeps_best = training.load_best_model_at_end
    if keeps_best and training.eval_strategy == "steps" and training.eval_steps != training.save_steps:
        raise InputError(
            f"--save_steps {training.save_steps:g}: must equal --eval_steps, which is {training.eval_steps}, so that "
            "the best model is among the checkpoints; pass the same for both, or --load_best_model_at_end false."
        )
    if options.patience and not keeps_best:
        if training.eval_strategy != "no":
            raise InputError("--patience needs --load_best_model_at_end true: it keeps the best checkpoint.")
        if is_given(options, "patience"):
            raise InputError("--patience: counts evaluations, which --eval_strategy no disables; leave one out.")
    if isinstance(options, LoraArguments):
        _require_sound_lora(options)
    return with_model_revision(options)


def has_steps(training: TrainingArguments) -> bool:
    """Whether there is anything to train: `--max_steps 0` alone evaluates and exports a model as it is."""
    return training.num_train_epochs > 0 or training.max_steps != 0


def _require_sound_lora(options: LoraArguments) -> None:
    require_one_of("peft", options.peft, ADAPTERS)
    if options.peft == "none":
        for name in LORA_OPTIONS:
            if is_given(options, name):
                raise InputError(f"--{name}: has no effect without --peft lora; pass that too, or leave it out.")
    elif options.model_name_or_path in FROM_SCRATCH:
        raise InputError(
            f"--peft lora adapts a trained model, and `{options.model_name_or_path}` is untrained; pass "
            "--model_name_or_path."
        )
    if not options.lora_alpha > 0:  # refuses NaN too
        raise InputError(f"--lora_alpha: expected more than 0, found {options.lora_alpha}.")
    if not 0 <= options.lora_dropout < 1:
        raise InputError(f"--lora_dropout: expected 0 or more and less than 1, found {options.lora_dropout}.")


def trains_lora(options: RunArguments) -> bool:
    return isinstance(options, LoraArguments) and options.peft == "lora"


def require_integrations(names: Sequence[str]) -> None:
    """Refuse an integration that is not known, not installed or not set up: each raises an error when it is created."""
    from transformers.integrations import get_reporting_integration_callbacks

    for name in names:
        reason = None
        with redirect_stderr(io.StringIO()):  # MLflow's complains when it is discarded half initialized
            try:
                for callback in get_reporting_integration_callbacks([name]):
                    callback()
            except (ValueError, RuntimeError, ImportError) as error:
                reason = first_line(error)
        if reason:
            raise InputError(f"--report_to {name}: {reason}.")


def with_model_revision(options: Arguments) -> Arguments:
    """The options with `--model_name_or_path ORG/NAME@REVISION` split into name and `--model_revision`.

    Raises:
        InputError: the two name different revisions, or a revision is given for something that is not on the hub.
    """
    name, revision = options.model_name_or_path, options.model_revision
    if name in FROM_SCRATCH and name not in options.scratch:
        raise InputError(f"--model_name_or_path {name}: only for `mrs train generation`; pass another model.")
    if name in FROM_SCRATCH or Path(name).exists():
        what = "is built here" if name in FROM_SCRATCH else "is a folder"
        require_no_revision(f"--model_name_or_path {name}", revision, what)
        return options
    name, revision = split_revision(name, revision)
    return replace(options, model_name_or_path=name, model_revision=revision)


def is_given(options: RunArguments | TrainingArguments, name: str) -> bool:
    """Whether an option differs from its default."""
    field = next(field for field in fields(options) if field.name == name)
    default = field.default if field.default_factory is MISSING else field.default_factory()
    value = getattr(options, name)
    return bool(value != default and value is not None and value != {})


def own_files(values: Sequence[str] | None, example: str) -> dict[str, str]:
    """Language -> file or folder, of `--train LANG=FILE ...`; `example` is the one that an error names."""
    found: dict[str, str] = {}
    for value in values or ():
        language, equals, place = value.partition("=")
        if not (language and equals and place):
            raise InputError(f"--train {value}: expected LANG=FILE, such as {example}.")
        if language in found:
            raise InputError(f"--train {value}: {language} is named twice; put all of its rows into one file.")
        found[language] = place
    return found


def asked_languages(asked: Sequence[str], have: Sequence[str], data: str, what: str) -> list[str]:
    """The values of `--languages`, `all` of those that the data have; InputError for others, which have no `what`."""
    if list(asked) == ["all"]:
        return list(have)
    for code in asked:
        if code not in have:
            raise InputError(f"--languages {code}: {data} has no {what}; it has {' '.join(have) or 'none'}.")
    return list(dict.fromkeys(asked))


def require_one_of(name: str, value: str | None, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise InputError(f"--{name}: expected one of {', '.join(allowed)}, found {value!r}.")


def trainer_command(
    name: str,
    about: str | None,
    kinds: tuple[type, type],
    train: Callable[[Any, Any], object],
    bare: Sequence[str] = (),
) -> tuple[Callable[[], HfArgumentParser], Callable[..., int]]:
    """The parser of a trainer's options, and its `main`, which parses, trains and returns the exit code.

    Args:
        kinds: the dataclasses of our options and of the library's.
        bare: the options of a command line without any.
    """
    make_parser = partial(make_dataclass_parser, kinds, f"mrs train {name}", about or "", SHOWN)

    def main(argv: Sequence[str] | None = None) -> int:
        given = list(sys.argv[1:] if argv is None else argv) or bare
        return run_with_sentence(f"mrs train {name}", lambda: train(*parse_with_config(make_parser(), given)))

    return make_parser, main
