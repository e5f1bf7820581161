"""Sweeps: what is tried, what is run again, and that validation alone decides."""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.cli.train import main
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.search.pruning import TRIAL
from mrs_suggest.training.search.sweep import result_rows, run_sweep
from mrs_suggest.training.search.sweep_file import Range, read_sweep

GRID = "options:\n  learning_rate: [1.0e-5, 3.0e-5]\n  dropout: [0, 0.1]\n"


def sweep_file(folder: Path, text: str = GRID) -> Path:
    (folder / "sweep.yaml").write_text(text, encoding="utf-8")
    return folder / "sweep.yaml"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
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


def test_validation_chooses_and_finished_runs_are_skipped(tmp_path: Path, runs: list[list[str]]) -> None:
    sweep, said = read_sweep(sweep_file(tmp_path)), []
    result = run_sweep("x", sweep, ["--seed", "1"], tmp_path / "out", said.append)
    assert [run["values"] for run in result["runs"]] == sweep.trials
    assert sweep.trials[3] == {"learning_rate": 3e-5, "dropout": 0.1}
    assert (result["best"], result["best_by_language"]) == (4, {"et": 2, "ht": 1})
    assert runs[0][:4] == ["train", "x", "--seed", "1"]
    assert all(words[words.index("--skip_test") + 1] == "true" for words in runs)
    best = "--learning_rate 3e-05 --dropout 0.1"
    assert result["command"] == f"mrs train x --seed 1 {best} --output_dir {tmp_path / 'out' / 'best'}"
    heads, rows = result_rows(result)
    assert heads == ["run", "learning_rate", "dropout", "accuracy", "best step"]
    assert [row[0] for row in rows] == ["4", "3", "2", "1"]
    assert rows[0] == ["4", "3e-05", "0.1", "0.4", "3"]
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


RANGES = """method: random
trials: 40
options:
  learning_rate: {low: 1.0e-6, high: 1.0e-2, log: true}
  layers: {low: 2, high: 4}
  dropout: {low: 0, high: 0.5}
  pooling: {choices: [mean, cls]}
"""


def test_values_are_drawn_from_ranges(tmp_path: Path) -> None:
    trials = read_sweep(sweep_file(tmp_path, RANGES)).trials
    assert trials == read_sweep(sweep_file(tmp_path, RANGES)).trials
    assert trials != read_sweep(sweep_file(tmp_path, RANGES + "seed: 1\n")).trials
    rates = [one["learning_rate"] for one in trials]
    assert all(1e-6 <= rate <= 1e-2 for rate in rates)
    assert 10 <= sum(rate < 1e-4 for rate in rates) <= 30, "half of them on the logarithmic scale"
    assert {one["layers"] for one in trials} == {2, 3, 4}
    assert {one["pooling"] for one in trials} == {"mean", "cls"}
    assert all(float(f"{rate:.3g}") == rate for rate in rates)


@given(st.floats(1e-9, 1e3), st.floats(1.1, 1e6), st.booleans(), st.integers())
def test_a_drawn_number_is_in_its_range(low: float, factor: float, log: bool, seed: int) -> None:
    drawn = Range(low, low * factor, log).draw(random.Random(seed))
    assert low <= drawn <= low * factor


HALVING = """method: halving
trials: 3
reduction: 2
min_steps: 2
max_steps: 4
options:
  learning_rate: [1.0e-3, 1.0e-6, 3.0e-6]
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (HALVING.replace("min_steps: 2\n", ""), "min_steps: needed with `method: halving`"),
        (HALVING.replace("max_steps: 4", "max_steps: 3"), "max_steps: expected 2 times `min_steps` or more, found 3"),
        (HALVING.replace("reduction: 2", "reduction: 1"), "reduction: expected a whole number from 2, found 1"),
        (HALVING.replace("learning_rate", "eval_steps"), "eval_steps follows from `min_steps` and `max_steps`"),
        (GRID + "min_steps: 2", "min_steps: belongs to `method: halving`; leave it out"),
        (GRID + "trials: 2", "trials: needed with `method: random`, halving or tpe, and only with these"),
        (RANGES.replace("random", "grid").replace("trials: 40\n", ""), "learning_rate: a range is drawn from; pass a"),
        (RANGES.replace("low: 1.0e-6", "low: 0"), "learning_rate: low: expected more than 0 with `log: true`, found 0"),
        (RANGES.replace("low: 2", "low: 7"), "layers: low: expected less than `high`, found 7 and 4"),
        (RANGES.replace("high: 0.5", "high: x"), "dropout: high: expected a number, found 'x'"),
        (RANGES.replace("high: 0.5", "top: 0.5"), "dropout: expected a list of values or {low, high}, with or without"),
        (RANGES.replace("log: true", "log: 2"), "learning_rate: log: expected true or false, found 2"),
        (
            "method: random\ntrials: 9\noptions: {layers: {low: 1, high: 3}}",
            "trials: expected at most 3, the different",
        ),
        ("a: [", "is not valid YAML"),
        ("method: grid", "expected `options`, a mapping of options to lists of values"),
        (GRID + "runs: 2", "unknown key 'runs'; expected method, options, trials, seed, "),
        ("options: {dropout: 0.1}", "dropout: expected a list of values, found 0.1"),
        ("options: {output_dir: [a]}", "output_dir is not an option to search"),
        ("method: best\n" + GRID, "method: expected one of grid, random, halving, tpe, found 'best'"),
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
