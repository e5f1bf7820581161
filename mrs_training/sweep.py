"""Several runs of one trainer with other values of some options, and which was the best on validation.

A sweep is a YAML file:

    method: grid                      all combinations, or `random`: `trials` of them, different ones, drawn with `seed`
    options: OPTION: [VALUE, VALUE]   of the trainer

Each run is in `OUTPUT_DIR/NUMBER`, one process after the other. A finished one is not run again, an interrupted one is
resumed. `sweep.json` in OUTPUT_DIR holds each run's values and its best figure on validation, the only one that counts.
"""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mrs_core.arguments import words_of
from mrs_core.errors import InputError
from mrs_core.files import atomic_write
from mrs_training.card import Record
from mrs_training.run import as_json, read_record, whole_checkpoints

METHODS = ("grid", "random")
RESULT, VALUES = "sweep.json", "values.json"
KEYS = ("method", "options", "trials", "seed")
NOT_SWEPT = ("output_dir", "config", "overwrite", "resume_from_checkpoint", "push_to_hub", "hub_model_id")
Values = dict[str, Any]


@dataclass(frozen=True)
class Sweep:
    """What is tried: the values of each run, in order."""

    trials: list[Values]


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
    if not isinstance(content, dict) or not isinstance(content.get("options"), dict) or not content["options"]:
        raise InputError(f"--sweep {path}: expected `options`, a mapping of options to lists of values.")
    for key in content:
        if key not in KEYS:
            raise InputError(f"--sweep {path}: unknown key {key!r}; expected {', '.join(KEYS)}.")
    for option, values in content["options"].items():
        if option in NOT_SWEPT:
            raise InputError(f"--sweep {path}: {option} is not an option to search; leave it out.")
        if not isinstance(values, list) or not values:
            raise InputError(f"--sweep {path}: {option}: expected a list of values, found {values!r}.")
    method, seed, trials = content.get("method", METHODS[0]), content.get("seed", 0), content.get("trials")
    if method not in METHODS:
        raise InputError(f"--sweep {path}: method: expected one of {', '.join(METHODS)}, found {method!r}.")
    if (method == "random") != (trials is not None):
        raise InputError(f"--sweep {path}: trials: needed with `method: random`, and only with it.")
    names = list(content["options"])
    grid = [dict(zip(names, one, strict=True)) for one in itertools.product(*content["options"].values())]
    if trials is None:
        return Sweep(grid)
    if not isinstance(trials, int) or not 1 <= trials <= len(grid):
        raise InputError(f"--sweep {path}: trials: expected 1 to {len(grid)}, found {trials!r}.")
    return Sweep(random.Random(seed).sample(grid, trials))


def run_sweep(trainer: str, sweep: Sweep, arguments: Sequence[str], output: Path, say: Callable[[str], None]) -> Record:
    """Run what is not finished, and write and return the result.

    Args:
        trainer: its name, for `mrs train`.
        arguments: the options that all runs share, without `--output_dir`.
        output: the folder of the sweep.

    Raises:
        InputError: a run failed, or the folder holds runs with other values.
    """
    found: list[Record] = []
    for number, values in enumerate(sweep.trials, start=1):
        folder = output / str(number)
        _require_same(folder, output / f"{number}.{VALUES}", {"values": values, "arguments": list(arguments)})
        told = f"run {number} of {len(sweep.trials)} ({', '.join(f'{key} {value}' for key, value in values.items())})"
        if not (folder / "run.json").is_file():
            say(told)
            resume = ["--resume_from_checkpoint", "last"] if whole_checkpoints(folder) else []
            again = ["--overwrite", "true"] if not resume and folder.exists() else []
            words = ["train", trainer, *arguments, *words_of(values), "--output_dir", str(folder), *resume, *again]
            code = subprocess.run([sys.executable, "-m", "mrs_cli.main", *words], check=False).returncode
            if code:
                raise InputError(f"--sweep: {told} failed with exit code {code}; the same command goes on with it.")
        found.append({"run": number, "values": values, **_validation(read_record(folder))})
    result = _result(found)
    atomic_write(output / RESULT, as_json(result))
    return result


def _require_same(folder: Path, note: Path, identity: Record) -> None:
    text = as_json(identity)
    if folder.exists() and note.is_file() and json.loads(note.read_text(encoding="utf-8")) != json.loads(text):
        raise InputError(f"--output_dir {folder.parent}: run {folder.name} had other options; choose another folder.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    atomic_write(note, text)


def _validation(record: Record) -> Record:
    """What a run's validation says; its test figures stay out."""
    arguments, own = record["arguments"], record["metrics"].get("best_of_each_language")
    if record["best_metric"] is None:
        raise InputError("--sweep: a run kept no best checkpoint; leave --load_best_model_at_end out.")
    figures: Record = {
        "metric": arguments["metric_for_best_model"],
        "value": record["best_metric"],
        "greater_is_better": arguments["greater_is_better"],
    }
    return figures | ({"by_language": {code: entry["accuracy"] for code, entry in own.items()}} if own else {})


def _result(found: list[Record]) -> Record:
    """The runs, and the number of the best, or of the first of equals; by language, where each has one."""
    sign = 1 if found[0]["greater_is_better"] else -1
    result: Record = {"runs": found, "best": max(found, key=lambda run: sign * run["value"])["run"]}
    if languages := found[0].get("by_language"):
        result["best_by_language"] = {
            code: max(found, key=lambda run: run["by_language"][code])["run"] for code in languages
        }
    return result
