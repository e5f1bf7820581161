"""Sweeps: what is tried, what is run again, and that validation alone decides."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrs_suggest.cli.train import main
from mrs_suggest.common.errors import InputError

pytest.importorskip("optuna")
from mrs_suggest.training.sweep import TRIAL, read_sweep, run_sweep

GRID = "options:\n  learning_rate: [1.0e-5, 3.0e-5]\n  dropout: [0, 0.1]\n"
RANGES = """method: random
trials: 30
options:
  learning_rate: {low: 1.0e-6, high: 1.0e-2, log: true}
  layers: {low: 2, high: 4}
  dropout: {low: 0, high: 0.5}
  pooling: {choices: [mean, cls]}
"""
from tests.cases import cases  # noqa: E402

Runs = Callable[..., dict[str, Any]]


def sweep_file(folder: Path, text: str = GRID) -> Path:
    (folder / "sweep.yaml").write_text(text, encoding="utf-8")
    return folder / "sweep.yaml"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stand for the runs: note their commands, and write records whose test figures contradict their validation."""
    started: list[list[str]] = []

    def run(command: list[str], check: bool, env: dict[str, str]) -> Any:
        words = command[3:]
        assert TRIAL not in env
        started.append(words)
        if "fail" in words:
            return SimpleNamespace(returncode=2)
        rate, drop = (float(words[words.index(f"--{name}") + 1]) for name in ("learning_rate", "dropout"))
        folder = Path(words[words.index("--output_dir") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        validation = rate * 1e4 + drop
        record = {
            "trainer": "x", "best_metric": validation, "steps": 9, "best_step": 3,
            "arguments": {"metric_for_best_model": "accuracy", "greater_is_better": True},
            "metrics": {"systems": {"full": {"et": {"accuracy": 1 - validation}}},
                        "best_of_each_language": {"et": {"accuracy": drop}, "ht": {"accuracy": -drop}}},
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    return started


@pytest.fixture
def sweep(tmp_path: Path, started: list[list[str]]) -> Runs:
    """Return a function that runs a sweep in a folder and gives its result."""

    def run(text: str = GRID, folder: str = "out", words: tuple[str, ...] = ("--seed", "1")) -> dict[str, Any]:
        return run_sweep("x", read_sweep(sweep_file(tmp_path, text)), words, tmp_path / folder)

    return run


def test_validation_chooses_and_finished_runs_are_skipped(
    tmp_path: Path, sweep: Runs, started: list[list[str]]
) -> None:
    result = sweep()
    tried = {run["run"]: tuple(run["values"].values()) for run in result["runs"]}
    assert sorted(tried.values()) == [(1e-5, 0), (1e-5, 0.1), (3e-5, 0), (3e-5, 0.1)]
    assert tried[result["best"]] == (3e-5, 0.1)
    chosen = result["best_by_language"]
    assert (tried[chosen["et"]][1], tried[chosen["ht"]][1]) == (0.1, 0)
    assert started[0][:4] == ["train", "x", "--seed", "1"]
    assert all(words[words.index("--skip_test") + 1] == "true" for words in started)
    best = "--learning_rate 3e-05 --dropout 0.1"
    assert result["command"] == f"mrs train x --seed 1 {best} --output_dir {tmp_path / 'out' / 'best'}"
    assert json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8")) == result
    assert sweep() == result
    assert len(started) == 4
    with pytest.raises(InputError, match="its sweep had other options; choose another folder"):
        sweep(words=("--seed", "2"))


def test_an_interrupted_sweep_resumes_its_run(tmp_path: Path, sweep: Runs, started: list[list[str]]) -> None:
    with pytest.raises(InputError, match=r"run 1 \(learning_rate \S+, dropout \S+\) failed with exit code 2"):
        sweep(words=("fail",))
    assert not (tmp_path / "out" / "sweep.json").exists()
    (tmp_path / "out" / "1" / "checkpoint-10").mkdir(parents=True)
    (tmp_path / "out" / "1" / "checkpoint-10" / "trainer_state.json").write_text("{}")
    with pytest.raises(InputError, match="exit code 2"):
        sweep(words=("fail",))
    assert started[1] == [*started[0], "--resume_from_checkpoint", "last"]


@pytest.mark.parametrize("text", [RANGES, RANGES.replace("random", "tpe"), f"method: random\ntrials: 3\n{GRID}"])
def test_values_follow_from_the_seed(sweep: Runs, text: str) -> None:
    text = text.replace("30", "5")
    every = [sweep(text + f"seed: {seed}\n", folder)["runs"] for seed, folder in ((4, "a"), (4, "b"), (5, "c"))]
    values = [[run["values"] for run in runs] for runs in every]
    assert values[0] == values[1] != values[2]
    assert len({json.dumps(one) for one in values[0]}) == len(values[0])


HALVING = """method: halving
trials: 3
reduction: 2
min_steps: 2
max_steps: 4
options:
  learning_rate: [1.0e-3, 1.0e-6, 3.0e-6]
"""


@pytest.mark.parametrize(("base", "change", "told"), cases(__file__, "test_a_wrong_file_is_told"))
def test_a_wrong_file_is_told(tmp_path: Path, base: str, change: str | dict[str, str], told: str) -> None:
    """`change` is what is appended to a text of this module, or what is replaced in it."""
    text = {"GRID": GRID, "RANGES": RANGES, "HALVING": HALVING, "": ""}[base]
    for old, new in change.items() if isinstance(change, dict) else ():
        assert old in text
        text = text.replace(old, new)
    text += change if isinstance(change, str) else ""
    with pytest.raises(InputError, match=told):
        read_sweep(sweep_file(tmp_path, text))


def test_what_cannot_be_swept_is_refused_before_anything_runs(tmp_path: Path, started: list[list[str]]) -> None:
    for text, words, told in (
        ("options: {learning: [1]}", [], "learning"),
        ("options: {learning_rate: [1.0e-5, x]}", [], "learning"),
        (GRID, ["--eval_strategy", "no", "--save_strategy", "no"], "--sweep: compares best checkpoints"),
        (GRID, ["--load_best_model_at_end", "false"], "--sweep: compares best checkpoints"),
    ):
        path, out = sweep_file(tmp_path, text), str(tmp_path / "out")
        with pytest.raises(InputError, match=told):
            main(["multiple_choice", "--sweep", str(path), "--use_cpu", "true", "--output_dir", out, *words])
    assert started == []
