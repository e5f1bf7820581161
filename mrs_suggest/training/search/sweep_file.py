"""The file of a sweep: which options have which values, and how they are searched.

method: grid                 all combinations (default); `random`; `halving`: random, and bad runs end early
                             (successive halving); `tpe`: later runs near the good ones (Bergstra et al. 2011)
trials: 12                   runs, of all methods but grid
seed: 0                      of all methods but grid
reduction: 3                 halving: one run in so many goes on to so many times the steps
min_steps: 50                halving: the steps of every run; each run's schedule is that of `max_steps`
max_steps: 450
options:
  learning_rate: {low: 1.0e-6, high: 1.0e-4, log: true}
  layers: {low: 2, high: 6}                    whole numbers, both ends included
  pooling: {choices: [mean, cls]}
  dropout: [0, 0.1]                            the same as choices; the only form that grid takes
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from mrs_suggest.common.arguments import words_of
from mrs_suggest.common.errors import InputError

GRID, RANDOM, HALVING, TPE = METHODS = ("grid", "random", "halving", "tpe")
HALVES = ("reduction", "min_steps", "max_steps")
KEYS = ("method", "options", "trials", "seed", *HALVES)
REDUCTION = 3  # Li et al. 2020 use 3 or 4
RANGE = ("low", "high", "log")
NOT_SWEPT = (
    "output_dir", "config", "overwrite", "resume_from_checkpoint", "push_to_hub", "hub_model_id", "skip_test",
    "estimate",
)  # fmt: skip
DRAWS = 1000  # of a value that was not drawn before
Values = dict[str, Any]


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, whole ones if both are; `log`: evenly on the logarithmic scale."""

    low: float
    high: float
    log: bool = False

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""
        return isinstance(self.low, int) and isinstance(self.high, int)

    def draw(self, chance: random.Random) -> float:
        """A value, of three significant digits where it is not whole: what the command line says is what is run."""
        if self.whole and not self.log:
            return chance.randint(int(self.low), int(self.high))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = chance.uniform(low, high)
        value = math.exp(value) if self.log else value
        return round(value) if self.whole else min(max(float(f"{value:.3g}"), self.low), self.high)


Space = Mapping[str, list[Any] | Range]


@dataclass(frozen=True)
class Sweep:
    """What is tried.

    Attributes:
        trials: the values of each run, in order; with `tpe` those of runs that show whether the values are valid.
        count: how many runs there are.
        space: option -> its values.
        min_steps, max_steps, reduction: of successive halving, else 0.
    """

    trials: list[Values]
    method: str = GRID
    count: int = 0
    seed: int = 0
    space: Space = field(default_factory=lambda: MappingProxyType({}))
    min_steps: int = 0
    max_steps: int = 0
    reduction: int = 0

    @property
    def halves(self) -> bool:
        """Whether bad runs end early."""
        return self.method == HALVING

    @property
    def needs_study(self) -> bool:
        """Whether Optuna decides."""
        return self.method in (HALVING, TPE)

    def words(self) -> list[str]:
        """The options that the method itself gives to each run."""
        if not self.halves:
            return []
        every = {"eval_strategy": "steps", "save_strategy": "steps"}
        steps = {"max_steps": self.max_steps, "eval_steps": self.min_steps, "save_steps": self.min_steps}
        return words_of({**steps, **every})


def read_sweep(path: Path) -> Sweep:
    """Read the file of a sweep.

    Raises:
        InputError: it is not one; the sentence names the key.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"--sweep {path}: cannot read the file ({error.strerror}).") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise InputError(f"--sweep {path}: the file is not valid YAML.") from None
    try:
        return _sweep(content)
    except ValueError as error:
        raise InputError(f"--sweep {path}: {error}") from None


def _sweep(content: Any) -> Sweep:
    if not isinstance(content, dict) or not isinstance(content.get("options"), dict) or not content["options"]:
        raise ValueError("expected `options`, a mapping of options to lists of values.")
    for key in content:
        if key not in KEYS:
            raise ValueError(f"unknown key {key!r}; expected {', '.join(KEYS)}.")
    method = content.get("method", GRID)
    if method not in METHODS:
        raise ValueError(f"method: expected one of {', '.join(METHODS)}, found {method!r}.")
    seed = _whole(content, "seed", 0, 0)
    space = {str(option): _values(str(option), values, method) for option, values in content["options"].items()}
    halving = _halving(content, method, space)
    if method == GRID:
        if "trials" in content:
            raise ValueError(f"trials: needed with `method: {RANDOM}`, {HALVING} or {TPE}, and only with these.")
        grid = [dict(zip(space, one, strict=True)) for one in itertools.product(*space.values())]  # type: ignore[arg-type]
        return Sweep(grid, GRID, len(grid), seed, space)
    if "trials" not in content:
        raise ValueError(f"trials: needed with `method: {method}`; the number of runs.")
    trials = _whole(content, "trials", 1, 0)
    return Sweep(_drawn(space, trials, seed), method, trials, seed, space, **halving)


def _halving(content: Mapping[str, Any], method: str, space: Space) -> dict[str, int]:
    """The three numbers of successive halving; none for another method."""
    if method != HALVING:
        for key in HALVES:
            if key in content:
                raise ValueError(f"{key}: belongs to `method: {HALVING}`; leave it out.")
        return {}
    for key in ("min_steps", "max_steps"):
        if key not in content:
            raise ValueError(f"{key}: needed with `method: {HALVING}`; a number of steps.")
    found = {
        "reduction": _whole(content, "reduction", 2, REDUCTION),
        "min_steps": _whole(content, "min_steps", 1, 0),
        "max_steps": _whole(content, "max_steps", 1, 0),
    }
    if found["max_steps"] < found["reduction"] * found["min_steps"]:
        raise ValueError(
            f"max_steps: expected {found['reduction']} times `min_steps` or more, found {found['max_steps']}."
        )
    for option in space:
        if option in ("max_steps", "num_train_epochs", "eval_steps", "save_steps", "eval_strategy", "save_strategy"):
            raise ValueError(f"{option} follows from `min_steps` and `max_steps` of the file; leave it out.")
    return found


def _whole(content: Mapping[str, Any], key: str, least: int, default: int) -> int:
    value = content.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{key}: expected a whole number from {least}, found {value!r}.")
    return value


def _values(option: str, values: Any, method: str) -> list[Any] | Range:
    """The list or the range that the file gives an option."""
    if option in NOT_SWEPT:
        raise ValueError(f"{option} is not an option to search; leave it out.")
    if isinstance(values, dict) and set(values) == {"choices"}:
        values = values["choices"]
    if isinstance(values, list) and values:
        return values
    if not isinstance(values, dict) or not {"low", "high"} <= set(values) <= set(RANGE):
        ranges = " or {low, high}, with or without `log: true`" if method != GRID else ""
        raise ValueError(f"{option}: expected a list of values{ranges}, found {values!r}.")
    if method == GRID:
        raise ValueError(f"{option}: a range is drawn from; pass a list, or `method: {RANDOM}`.")
    for end in ("low", "high"):
        if not isinstance(values[end], (int, float)) or isinstance(values[end], bool) or not math.isfinite(values[end]):
            raise ValueError(f"{option}: {end}: expected a number, found {values[end]!r}.")
    log = values.get("log", False)
    if not isinstance(log, bool):
        raise ValueError(f"{option}: log: expected true or false, found {log!r}.")
    if not values["low"] < values["high"]:
        raise ValueError(f"{option}: low: expected less than `high`, found {values['low']!r} and {values['high']!r}.")
    if log and values["low"] <= 0:
        raise ValueError(f"{option}: low: expected more than 0 with `log: true`, found {values['low']!r}.")
    return Range(values["low"], values["high"], log)


def _drawn(space: Space, trials: int, seed: int) -> list[Values]:
    """Different values for each run; from lists alone, as many as there are combinations.

    Raises:
        ValueError: there are fewer different ones.
    """
    chance = random.Random(seed)
    lists = [values for values in space.values() if isinstance(values, list)]
    if len(lists) == len(space):
        grid = [dict(zip(space, one, strict=True)) for one in itertools.product(*lists)]
        if trials > len(grid):
            raise ValueError(f"trials: expected 1 to {len(grid)}, found {trials}.")
        return chance.sample(grid, trials)
    found: dict[str, Values] = {}
    for _ in range(DRAWS + trials):
        one = {
            name: values.draw(chance) if isinstance(values, Range) else chance.choice(values)
            for name, values in space.items()
        }
        found.setdefault(json.dumps(one), one)
        if len(found) == trials:
            return list(found.values())
    raise ValueError(f"trials: expected at most {len(found)}, the different values of the options, found {trials}.")
