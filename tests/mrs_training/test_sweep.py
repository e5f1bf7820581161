"""Sweeps: what is tried, what is run again, and that validation alone decides."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mrs_cli.train import main
from mrs_core.errors import InputError
from mrs_training.sweep import read_sweep, run_sweep

GRID = "options:\n  learning_rate: [1.0e-5, 3.0e-5]\n  dropout: [0, 0.1]\n"


def sweep_file(folder: Path, text: str = GRID) -> Path:
    (folder / "sweep.yaml").write_text(text, encoding="utf-8")
    return folder / "sweep.yaml"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Stand for the runs: note their commands, and write records whose test figures contradict their validation."""
    started: list[list[str]] = []

    def run(command: list[str], check: bool) -> Any:
        words = command[3:]
        started.append(words)
        if "fail" in words:
            return SimpleNamespace(returncode=2)
        rate, drop = (float(words[words.index(f"--{name}") + 1]) for name in ("learning_rate", "dropout"))
        folder = Path(words[words.index("--output_dir") + 1])
        folder.mkdir(parents=True, exist_ok=True)
        validation = rate * 1e4 + drop
        record = {
            "trainer": "x", "best_metric": validation,
            "arguments": {"metric_for_best_model": "accuracy", "greater_is_better": True},
            "metrics": {"systems": {"full": {"et": {"accuracy": 1 - validation}}},
                        "best_of_each_language": {"et": {"accuracy": drop}, "ht": {"accuracy": -drop}}},
        }  # fmt: skip
        (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr(subprocess, "run", run)
    return started


def test_validation_chooses_and_finished_runs_are_skipped(tmp_path: Path, runs: list[list[str]]) -> None:
    sweep, said = read_sweep(sweep_file(tmp_path)), []
    result = run_sweep("x", sweep, ["--seed", "1"], tmp_path / "out", said.append)
    assert [run["values"] for run in result["runs"]] == sweep.trials
    assert sweep.trials[3] == {"learning_rate": 3e-5, "dropout": 0.1}
    assert (result["best"], result["best_by_language"]) == (4, {"et": 2, "ht": 1})
    assert runs[0][:4] == ["train", "x", "--seed", "1"]
    assert len(runs) == len(said) == 4
    assert json.loads((tmp_path / "out" / "sweep.json").read_text(encoding="utf-8")) == result
    (tmp_path / "out" / "2" / "run.json").unlink()
    (tmp_path / "out" / "2" / "checkpoint-10").mkdir()
    (tmp_path / "out" / "2" / "checkpoint-10" / "trainer_state.json").write_text("{}")
    assert run_sweep("x", sweep, ["--seed", "1"], tmp_path / "out", said.append) == result
    assert len(runs) == 5
    assert runs[4][-2:] == ["--resume_from_checkpoint", "last"]
    with pytest.raises(InputError, match="run 1 had other options; choose another folder"):
        run_sweep("x", sweep, ["--seed", "2"], tmp_path / "out", said.append)


def test_a_failed_run_ends_the_sweep(tmp_path: Path, runs: list[list[str]]) -> None:
    with pytest.raises(InputError, match=r"run 1 of 4 \(learning_rate 1e-05, dropout 0\) failed with exit code 2"):
        run_sweep("x", read_sweep(sweep_file(tmp_path)), ["fail"], tmp_path / "out", print)
    assert not (tmp_path / "out" / "sweep.json").exists()


def test_random_trials_are_different_and_seeded(tmp_path: Path) -> None:
    path = sweep_file(tmp_path, f"method: random\ntrials: 3\nseed: 5\n{GRID}")
    trials = read_sweep(path).trials
    assert len({json.dumps(one) for one in trials}) == 3
    assert read_sweep(path).trials == trials


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: [", "is not valid YAML"),
        ("method: grid", "expected `options`, a mapping of options to lists of values"),
        (GRID + "runs: 2", "unknown key 'runs'; expected method, options, trials, seed"),
        ("options: {dropout: 0.1}", "dropout: expected a list of values, found 0.1"),
        ("options: {output_dir: [a]}", "output_dir is not an option to search"),
        ("method: best\n" + GRID, "method: expected one of grid, random, found 'best'"),
        ("method: random\n" + GRID, "trials: needed with `method: random`"),
        ("method: random\ntrials: 9\n" + GRID, "trials: expected 1 to 4, found 9"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        read_sweep(sweep_file(tmp_path, text))


def test_a_wrong_option_is_refused_before_anything_runs(tmp_path: Path, runs: list[list[str]]) -> None:
    path = sweep_file(tmp_path, "options: {learning: [1]}")
    with pytest.raises(InputError, match="unknown option '--learning'"):
        main(["multiple_choice", "--sweep", str(path), "--use_cpu", "true", "--output_dir", str(tmp_path / "out")])
    assert runs == []
