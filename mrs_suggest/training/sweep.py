"""Sweeps: several runs of one trainer with other values of some options; validation says which was the best.

The file of a sweep:

method: grid                 all combinations (default); `random`; `halving`: random, and bad runs end early
                             (successive halving); `tpe`: later runs near the good ones (Bergstra et al. 2011)
trials: 12                   runs, of all methods but grid
seed: 0
reduction: 3                 halving: one run in so many continues to so many times the steps
min_steps: 50                halving: the steps of every run; each run's schedule is that of `max_steps`
max_steps: 450
options:
  learning_rate: {low: 1.0e-6, high: 1.0e-4, log: true}
  layers: {low: 2, high: 6}                    whole numbers, both ends included
  pooling: {choices: [mean, cls]}
  dropout: [0, 0.1]                            the same as choices; the only form that grid takes

Each run is in `OUTPUT_DIR/NUMBER`, one process after the other, without the test split (`--skip_test`). Optuna chooses
the values, ends bad runs, and keeps `sweep.journal`: a finished run is not run again, an interrupted one is resumed.
`sweep.json` has each run's values and best figure on validation, and the command that trains with the best and tests.
"""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from tqdm import tqdm
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.arguments import words_of
from mrs_suggest.common.errors import InputError, extra_needed, first_problem
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.saved.record import Record, as_json, read_record
from mrs_suggest.training.record import whole_checkpoints

if TYPE_CHECKING:
    import optuna

TRIAL = "MRS_SWEEP_TRIAL"  # the environment variable of a run that may end early: JOURNAL:NUMBER
JOURNAL = "sweep.journal"
NOT_SWEPT = {
    "output_dir", "config", "overwrite", "resume_from_checkpoint", "push_to_hub", "hub_model_id", "skip_test",
    "estimate",
}  # fmt: skip
SET_BY_HALVING = {"max_steps", "num_train_epochs", "eval_steps", "save_steps", "eval_strategy", "save_strategy"}


def require_optuna() -> Any:
    """Optuna, without its log on every trial; MissingExtraError if it is not installed."""
    with extra_needed("optuna", "sweep", "--sweep"):
        import optuna
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def open_study(path: Path) -> optuna.Study:
    """The trials of a sweep, kept in a file that a killed process leaves readable."""
    module = require_optuna()
    storage = module.storages.JournalStorage(module.storages.journal.JournalFileBackend(str(path)))
    study: optuna.Study = module.create_study(
        study_name="sweep", storage=storage, direction="maximize", load_if_exists=True
    )
    return study


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"expected a number, found {value!r}")
    return value


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Values(Strict):
    """The values of an option: a list, or the numbers from `low` to `high`, whole ones if both are.

    Attributes:
        log: draw evenly on the logarithmic scale.
    """

    choices: list[Any] = []
    low: Annotated[Any, AfterValidator(_number)] = None
    high: Annotated[Any, AfterValidator(_number)] = None
    log: bool = Field(False, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _from_list(cls, values: Any) -> Any:
        return {"choices": values} if isinstance(values, list) else values

    @model_validator(mode="after")
    def _sound(self) -> Values:
        given = self.model_fields_set
        if not (given == {"choices"} and self.choices) and not {"low", "high"} <= given <= {"low", "high", "log"}:
            raise ValueError("expected a list of values or {low, high}, with or without `log: true`")
        if not self.choices and not self.low < self.high:
            raise ValueError(f"low: expected less than `high`, found {self.low!r} and {self.high!r}")
        if self.log and self.low <= 0:
            raise ValueError(f"low: expected more than 0 with `log: true`, found {self.low!r}")
        return self

    def distribution(self) -> Any:
        """The distribution that Optuna draws from; of a list, that of its places."""
        kinds = require_optuna().distributions
        if self.choices:
            return kinds.CategoricalDistribution(range(len(self.choices)))
        whole = isinstance(self.low, int) and isinstance(self.high, int)
        return (kinds.IntDistribution if whole else kinds.FloatDistribution)(self.low, self.high, log=self.log)


class Sweep(Strict):
    options: dict[str, Values] = Field(min_length=1)
    method: Literal["grid", "random", "halving", "tpe"] = "grid"
    trials: int | None = Field(None, ge=1, strict=True)
    seed: int = Field(0, ge=0, strict=True)
    reduction: int = Field(3, ge=2, strict=True)  # Li et al. 2020 use 3 or 4
    min_steps: int = Field(0, ge=1, strict=True)
    max_steps: int = Field(0, ge=1, strict=True)

    @model_validator(mode="after")
    def _sound(self) -> Sweep:
        ranges = [option for option, values in self.options.items() if not values.choices]
        halving = self.model_fields_set & {"reduction", "min_steps", "max_steps"}
        if (self.method == "grid") == (self.trials is not None):
            raise ValueError("trials: needed with `method: random`, halving or tpe, and only with these")
        if self.method == "grid" and ranges:
            raise ValueError(f"{ranges[0]}: a range is drawn from; pass a list, or `method: random`")
        if self.trials and 0 < self.combinations < self.trials:
            raise ValueError(f"trials: expected 1 to {self.combinations}, found {self.trials}")
        if self.method != "halving" and halving:
            raise ValueError(f"{min(halving)}: belongs to `method: halving`; leave it out")
        if self.method == "halving" and not (self.min_steps and self.max_steps):
            raise ValueError("min_steps and max_steps: needed with `method: halving`")
        if self.method == "halving" and self.max_steps < self.reduction * self.min_steps:
            raise ValueError(f"max_steps: expected {self.reduction} times `min_steps` or more, found {self.max_steps}")
        for option in self.options:
            if option in NOT_SWEPT:
                raise ValueError(f"{option} is not an option to search; leave it out")
            if self.method == "halving" and option in SET_BY_HALVING:
                raise ValueError(f"{option} follows from `min_steps` and `max_steps` of the file; leave it out")
        return self

    @property
    def combinations(self) -> int:
        """Of the listed values; 0 with a range."""
        return math.prod(len(values.choices) for values in self.options.values())

    def examples(self) -> list[Record]:
        """Values in which each listed one and both ends of each range occur, to be checked before anything runs."""
        every = {option: values.choices or [values.low, values.high] for option, values in self.options.items()}
        count = max(map(len, every.values()))
        return [{option: own[number % len(own)] for option, own in every.items()} for number in range(count)]

    def words(self) -> list[str]:
        """The options that the method itself gives to each run."""
        if self.method != "halving":
            return []
        steps = {"max_steps": self.max_steps, "eval_steps": self.min_steps, "save_steps": self.min_steps}
        return words_of({**steps, "eval_strategy": "steps", "save_strategy": "steps"})

    def sampler(self, number: int) -> Any:
        """Optuna's sampler of a run: made anew for each, so that a resumed sweep draws the same values."""
        samplers = require_optuna().samplers
        if self.method != "tpe" and self.combinations:
            places = {option: list(range(len(values.choices))) for option, values in self.options.items()}
            return samplers.GridSampler(places, seed=self.seed)  # different combinations
        kind = samplers.TPESampler if self.method == "tpe" else samplers.RandomSampler
        return kind(seed=self.seed * 1_000_003 + number)


def read_sweep(path: Path) -> Sweep:
    """Read the file of a sweep; the InputError names the key that is wrong."""
    try:
        return Sweep.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(f"--sweep {path}: cannot read the file ({error.strerror}).") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InputError(f"--sweep {path}: the file is not valid YAML.") from None
    except ValidationError as error:
        raise InputError(f"--sweep {path}: {first_problem(error)}.") from None


def run_sweep(trainer: str, sweep: Sweep, arguments: Sequence[str], output: Path) -> Record:
    """Run what is not finished of a sweep, and write and return the result.

    Raises:
        InputError: a run failed, or the folder holds another sweep.
    """
    output.mkdir(parents=True, exist_ok=True)
    study, shared = open_study(output / JOURNAL), ["train", trainer, *arguments, *sweep.words()]
    identity = {"command": shared, **sweep.model_dump(mode="json", exclude={"trials"})}
    if study.user_attrs.get("sweep", identity) != identity:
        raise InputError(f"--output_dir {output}: its sweep had other options; choose another folder.")
    study.set_user_attr("sweep", identity)
    runs: list[Record] = []
    count = sweep.trials or sweep.combinations
    with tqdm(total=count, desc="sweep", unit=" runs", disable=None) as bar:
        for number in range(1, count + 1):
            if number > len(study.trials):
                study.sampler = sweep.sampler(number)
                study.ask({option: values.distribution() for option, values in sweep.options.items()})
                study.sampler = require_optuna().samplers.RandomSampler()  # that of grids would stop Optuna's own loop
            key = f"run {number}"
            if key not in study.user_attrs:
                found = _run(shared, sweep, number, study.trials[number - 1].params, output)
                value = found["value"] if found["greater_is_better"] else -found["value"]
                study.tell(number - 1, value, skip_if_finished=True)
                study.set_user_attr(key, found)
            runs.append(study.user_attrs[key])
            best = ranked(runs)[0]
            bar.update()
            bar.set_postfix_str(f"best {best['metric']} {best['value']:.4g} (run {best['run']})", refresh=False)
    result: Record = {"method": sweep.method, "seed": sweep.seed, "runs": runs, "best": best["run"]}
    if languages := runs[0].get("by_language"):
        result["best_by_language"] = {
            code: max(runs, key=lambda run: run["by_language"][code])["run"] for code in languages
        }
    words = ["mrs", *shared, *words_of(best["values"]), "--output_dir", str(output / "best")]
    result["command"] = shlex.join(words)
    atomic_write(output / "sweep.json", as_json(result))
    return result


def _run(shared: Sequence[str], sweep: Sweep, number: int, drawn: Record, output: Path) -> Record:
    """Run a trial, or continue with it; its values and what validation says of it."""
    folder = output / str(number)
    values = {
        option: own.choices[drawn[option]] if own.choices else drawn[option] for option, own in sweep.options.items()
    }
    if not (folder / "run.json").is_file():
        told = f"run {number} ({', '.join(f'{option} {value}' for option, value in values.items())})"
        tqdm.write(told)
        resume = ["--resume_from_checkpoint", "last"] if whole_checkpoints(folder) else []
        again = ["--overwrite", "true"] if not resume and folder.exists() else []
        words = [*shared, *words_of(values), "--skip_test", "true", "--output_dir", str(folder)]
        own = {TRIAL: f"{output / JOURNAL}:{number - 1}"} if sweep.method == "halving" else {}
        command = [sys.executable, "-m", "mrs_suggest.cli.main", *words, *resume, *again]
        code = subprocess.run(command, check=False, env={**os.environ, **own}).returncode
        if code:
            raise InputError(f"--sweep: {told} failed with exit code {code}; the same command resumes it.")
    record = read_record(folder)
    if record["best_metric"] is None:
        raise InputError(
            "--sweep: a run kept no best checkpoint; leave --load_best_model_at_end and --eval_strategy no out."
        )
    found: Record = {
        "run": number,
        "values": values,
        "steps": record["steps"],
        "metric": record["arguments"]["metric_for_best_model"],
        "value": record["best_metric"],
        "greater_is_better": record["arguments"]["greater_is_better"],
        "best_step": record.get("best_step"),
    }
    if languages := record["metrics"].get("best_of_each_language"):
        found["by_language"] = {code: entry["accuracy"] for code, entry in languages.items()}
    if sweep.method == "halving":
        found["stopped_early"] = record["steps"] < sweep.max_steps
    return found


def ranked(runs: Sequence[Record]) -> list[Record]:
    """The runs of a result, the best on validation first; of equal ones, the first."""
    sign = -1 if runs[0]["greater_is_better"] else 1
    return sorted(runs, key=lambda run: sign * run["value"])


def trial_of_sweep() -> TrainerCallback | None:
    """The callback of this process, where it is a trial of a sweep that ends trials early."""
    value = os.environ.get(TRIAL)
    if not value:
        return None
    path, _, number = value.rpartition(":")
    return StopsWhenPruned(Path(path), int(number))


class StopsWhenPruned(TrainerCallback):
    """Reports the metric that chooses the checkpoint, and stops the run when the pruner says so.

    Asynchronous successive halving (Li et al. 2020): at `min_steps`, and at each `reduction` times as many, a trial
    continues if it is among the best 1/`reduction` of those that came so far.
    """

    def __init__(self, path: Path, number: int) -> None:
        self._path, self._number = path, number
        self._trial: optuna.Trial | None = None

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Report and ask on the first rank, and stop on all."""
        value: float = kwargs["metrics"][f"eval_{args.metric_for_best_model}"]
        greater = value if args.greater_is_better else -value
        stops = state.is_world_process_zero and self._is_pruned(state.global_step, greater)
        if args.world_size > 1:
            from accelerate.utils import broadcast_object_list

            stops = broadcast_object_list([stops])[0]
        if stops:
            control.should_training_stop = True

    def _is_pruned(self, step: int, value: float) -> bool:
        if self._trial is None:
            optuna, study = require_optuna(), open_study(self._path)
            sweep = study.user_attrs["sweep"]
            study.pruner = optuna.pruners.SuccessiveHalvingPruner(sweep["min_steps"], sweep["reduction"])
            self._trial = optuna.Trial(study, study.trials[self._number]._trial_id)
        self._trial.report(value, step)
        return bool(self._trial.should_prune())
