"""Sweeps through `mrs train`, with real runs; these are in this process, which saves the imports."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from accelerate.state import AcceleratorState

from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.cli.train import main
from tests.integration.conftest import OPTIONS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_process")]
HALVING = """method: halving
trials: 5
reduction: 2
min_steps: 1
max_steps: 2
options:
  learning_rate: [1.0e-3, 1.0e-6]
  pooling: [mean, cls, max]
"""
Sweep = Callable[[Path], tuple[dict[str, Any], str]]


@pytest.fixture
def sweep(
    prepared: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Sweep:
    """Return a function that runs a sweep of the file and gives its result and what was printed."""

    def run(command: list[str], check: bool, env: dict[str, str]) -> Any:
        AcceleratorState._reset_state(reset_partial_state=True)
        with monkeypatch.context() as patch:
            for name in set(env) - set(os.environ):
                patch.setenv(name, env[name])
            return SimpleNamespace(returncode=main(command[4:]))

    monkeypatch.setattr("mrs_suggest.training.search.sweep.subprocess", SimpleNamespace(run=run))
    monkeypatch.delenv("MRS_LAUNCHER", raising=False)
    monkeypatch.setattr("mrs_suggest.cli.train.announce_launcher", lambda: None)

    def start(file: Path) -> tuple[dict[str, Any], str]:
        out = tmp_path / "sweep"
        words = ["retrieval", "--data", prepared.folder, *OPTIONS, "--sweep", file, "--output_dir", out]
        assert main([str(word) for word in words]) == 0
        return json.loads((out / "sweep.json").read_text(encoding="utf-8")), capsys.readouterr().out

    return start


def test_halving_ends_bad_runs_early_and_goes_on_after_a_kill(sweep: Sweep, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    (tmp_path / "halving.yaml").write_text(HALVING, encoding="utf-8")
    result, printed = sweep(tmp_path / "halving.yaml")
    runs = {run["run"]: run for run in result["runs"]}
    stopped = {number for number, run in runs.items() if run["stopped_early"]}
    assert 1 not in stopped, "the first one has none to lose to"
    assert stopped
    assert {run["steps"] for run in runs.values()} == {1, 2}
    assert not list((tmp_path / "sweep").glob("*/predictions*")), "the test split was answered"
    for number in runs:
        record = json.loads((tmp_path / "sweep" / str(number) / "run.json").read_text(encoding="utf-8"))
        assert record["metrics"] == {}
        assert record["arguments"]["skip_test"] is True
        assert "were measured" not in (tmp_path / "sweep" / str(number) / "README.md").read_text(encoding="utf-8")
    best = max(runs.values(), key=lambda run: run["value"])
    assert result["best"] == best["run"]
    assert f"--learning_rate {best['values']['learning_rate']}" in result["command"]
    assert "--output_dir" in result["command"]
    assert result["command"] in printed
    last = tmp_path / "sweep" / "5"
    shutil.rmtree(last)
    assert sweep(tmp_path / "halving.yaml")[0] == result


def test_tpe_takes_its_values_from_the_runs_before(sweep: Sweep, tmp_path: Path) -> None:
    pytest.importorskip("optuna")
    text = "method: tpe\ntrials: 2\nseed: 3\noptions:\n  learning_rate: {low: 1.0e-6, high: 1.0e-2, log: true}\n"
    (tmp_path / "tpe.yaml").write_text(text, encoding="utf-8")
    result, _ = sweep(tmp_path / "tpe.yaml")
    first, second = (run["values"]["learning_rate"] for run in result["runs"])
    assert 1e-6 <= first != second <= 1e-2
    assert sweep(tmp_path / "tpe.yaml")[0] == result
