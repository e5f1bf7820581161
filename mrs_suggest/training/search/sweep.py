"""Several runs of one trainer with other values of some options, and which was the best on validation.

Each run is in `OUTPUT_DIR/NUMBER`, one process after the other, without the test split (`--skip_test`). A finished one
is not run again, an interrupted one is resumed; what is tried depends on the file alone. `sweep.json` in OUTPUT_DIR
holds each run's values and its best figure on validation, the only one that counts, and the command that trains with
the best values and tests. The file is described in `mrs_suggest/training/search/sweep_file.py`.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mrs_suggest.common.arguments import words_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.record import as_json, read_record, whole_checkpoints
from mrs_suggest.training.search.pruning import TRIAL
from mrs_suggest.training.search.sweep_file import Sweep, Values
from mrs_suggest.training.search.sweep_study import Study

RESULT, VALUES = "sweep.json", "values.json"


@dataclass(frozen=True)
class SweepRun:
    """How the runs of a sweep are started.

    Args:
        trainer: its name, for `mrs train`.
        arguments: the options that all runs share, without `--output_dir`.
        output: the folder of the sweep.
        say: tells a line.
    """

    trainer: str
    sweep: Sweep
    arguments: Sequence[str]
    output: Path
    say: Callable[[str], object]

    def result(self) -> Record:
        """Run what is not finished, and write and return the result.

        Raises:
            InputError: a run failed, or the folder holds runs with other values.
        """
        self.output.mkdir(parents=True, exist_ok=True)
        found: list[Record] = []
        study = Study(self.sweep, self.output) if self.sweep.needs_study else None
        with tqdm(total=self.sweep.count, desc="sweep", unit=" runs", disable=None) as bar:
            for number, values in self._trials(study):
                folder = self.output / str(number)
                self._run(number, values, folder, study)
                record = read_record(folder)
                found.append({"run": number, "values": values, "steps": record["steps"], **_validation(record)})
                if study is not None:
                    study.tell(number, found[-1])
                bar.update()
                bar.set_postfix_str(_told_best(found), refresh=False)
        result = _result(found, self.sweep)
        result["command"] = self._command(result)
        atomic_write(self.output / RESULT, as_json(result))
        return result

    def _trials(self, study: Study | None) -> Iterator[tuple[int, Values]]:
        if study is None:
            yield from enumerate(self.sweep.trials, start=1)
        else:
            for number in range(1, self.sweep.count + 1):
                yield number, study.values(number)

    def _run(self, number: int, values: Values, folder: Path, study: Study | None) -> None:
        """Run a trial, or go on with it; nothing where it has ended."""
        note = self.output / f"{number}.{VALUES}"
        _require_same(folder, note, {"values": values, "arguments": [*self.arguments, *self.sweep.words()]})
        if (folder / "run.json").is_file():
            return
        told = f"run {number} of {self.sweep.count} ({', '.join(f'{key} {value}' for key, value in values.items())})"
        self.say(told)
        resume = ["--resume_from_checkpoint", "last"] if whole_checkpoints(folder) else []
        again = ["--overwrite", "true"] if not resume and folder.exists() else []
        options = [*self.arguments, *self.sweep.words(), *words_of(values), "--skip_test", "true"]
        words = ["train", self.trainer, *options, "--output_dir", str(folder), *resume, *again]
        own = {TRIAL: study.address(number)} if study is not None and self.sweep.halves else {}
        command = [sys.executable, "-m", "mrs_suggest.cli.main", *words]
        code = subprocess.run(command, check=False, env={**os.environ, **own}).returncode
        if code:
            raise InputError(f"--sweep: {told} failed with exit code {code}; the same command goes on with it.")

    def _command(self, result: Record) -> str:
        """What trains with the best values, and tests."""
        values = result["runs"][result["best"] - 1]["values"]
        words = ["mrs", "train", self.trainer, *self.arguments, *self.sweep.words(), *words_of(values)]
        return shlex.join([*words, "--output_dir", str(self.output / "best")])


def run_sweep(
    trainer: str, sweep: Sweep, arguments: Sequence[str], output: Path, say: Callable[[str], object]
) -> Record:
    """Run what is not finished of a sweep, and write and return the result; see `SweepRun`."""
    return SweepRun(trainer, sweep, arguments, output, say).result()


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
        raise InputError(
            "--sweep: a run kept no best checkpoint; leave --load_best_model_at_end and --eval_strategy no out."
        )
    figures: Record = {
        "metric": arguments["metric_for_best_model"],
        "value": record["best_metric"],
        "greater_is_better": arguments["greater_is_better"],
        "best_step": record.get("best_step"),
    }
    return figures | ({"by_language": {code: entry["accuracy"] for code, entry in own.items()}} if own else {})


def _result(found: list[Record], sweep: Sweep) -> Record:
    """The runs, and the number of the best, or of the first of equals; by language, where each has one."""
    for run in found:
        if sweep.halves:
            run["stopped_early"] = run["steps"] < sweep.max_steps
    result: Record = {"method": sweep.method, "seed": sweep.seed, "runs": found, "best": _best(found)["run"]}
    if languages := found[0].get("by_language"):
        result["best_by_language"] = {
            code: max(found, key=lambda run: run["by_language"][code])["run"] for code in languages
        }
    return result


def _best(found: Sequence[Record]) -> Record:
    sign = 1 if found[0]["greater_is_better"] else -1
    return max(found, key=lambda run: sign * run["value"])


def _told_best(found: Sequence[Record]) -> str:
    best = _best(found)
    return f"best {best['metric']} {best['value']:.4g} (run {best['run']})"


def result_rows(result: Record) -> tuple[list[str], list[list[str]]]:
    """The heads and rows of the table of runs, the best first."""
    sign = -1 if result["runs"][0]["greater_is_better"] else 1
    runs = sorted(result["runs"], key=lambda run: (sign * run["value"], run["run"]))
    options: list[str] = list(runs[0]["values"])
    stops = any("stopped_early" in run for run in runs)
    heads = ["run", *options, runs[0]["metric"], "best step", *(["steps"] if stops else [])]
    rows = []
    for run in runs:
        row: list[Any] = [run["run"], *(_short(run["values"][name]) for name in options), f"{run['value']:.4g}"]
        row += [run["best_step"], *([f"{run['steps']}{', stopped' * run['stopped_early']}"] if stops else [])]
        rows.append([str(value) for value in row])
    return heads, rows


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
