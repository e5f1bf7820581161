"""A sweep through `mrs train`, with real runs; these are in this process, which saves the imports."""

import json
import os
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
seed: 1
trials: 2
reduction: 2
min_steps: 1
max_steps: 2
options:
  pooling: [mean, max]
"""


def test_halving_ends_a_bad_run_early(
    prepared: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("optuna")
    started: list[list[str]] = []

    def run(command: list[str], check: bool, env: dict[str, str]) -> Any:
        started.append(command)
        AcceleratorState._reset_state(reset_partial_state=True)
        with monkeypatch.context() as patch:
            for name in set(env) - set(os.environ):
                patch.setenv(name, env[name])
            return SimpleNamespace(returncode=main(command[4:]))

    monkeypatch.setattr("mrs_suggest.training.sweep.subprocess", SimpleNamespace(run=run))
    monkeypatch.delenv("MRS_LAUNCHER", raising=False)
    monkeypatch.setattr("mrs_suggest.cli.train.announce_launcher", lambda: None)
    file, out = tmp_path / "halving.yaml", tmp_path / "sweep"
    file.write_text(HALVING, encoding="utf-8")
    words = ["retrieval", "--data", prepared.folder, *OPTIONS, "--sweep", file, "--output_dir", out]
    for _ in range(2):  # the second time, nothing is left to run
        assert main([str(word) for word in words]) == 0
        result = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
        assert [(run["values"]["pooling"], run["steps"]) for run in result["runs"]] == [("mean", 2), ("max", 1)]
        assert [run["stopped_early"] for run in result["runs"]] == [False, True]
        assert result["best"] == 1
        assert "--pooling mean" in result["command"]
        printed = capsys.readouterr().out
        assert result["command"] in printed
        assert "1, stopped" in printed
    assert len(started) == 2
    assert not list(out.glob("*/predictions*")), "the test split was answered"
    for number in (1, 2):
        record = json.loads((out / str(number) / "run.json").read_text(encoding="utf-8"))
        assert record["metrics"] == {}
        assert record["arguments"]["skip_test"] is True
        assert "were measured" not in (out / str(number) / "README.md").read_text(encoding="utf-8")
