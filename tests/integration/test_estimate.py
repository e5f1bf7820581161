"""`--estimate` of several families, through their command; nothing is left behind."""

import importlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import PreparedData
from tests.integration.conftest import OPTIONS

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_process")]
SHORT = ["--max_steps", 40, "--eval_steps", 10, "--save_steps", 20, "--load_best_model_at_end", "false"]
REPLIES = [
    "--per_device_train_batch_size", 4, "--languages", "en", "--max_validation_examples", 4, "--max_test_examples", 8,
    "--max_tokens", 4, "--use_cpu", "true",
]  # fmt: skip
FAMILIES = {"retrieval": [*OPTIONS[6:], "--save_total_limit", 1], "generation": REPLIES, "causal": REPLIES}


@pytest.mark.parametrize("family", FAMILIES)
def test_an_estimate_tells_what_a_run_takes_and_leaves_nothing(
    family: str, prepared: PreparedData, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRS_ESTIMATE", "times.json")
    words = ["--data", prepared.folder, *FAMILIES[family], *SHORT, "--output_dir", "out", "--estimate"]
    assert importlib.import_module(f"mrs_trainers.{family}").main([str(word) for word in words]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"temporary", "times.json"}
    assert not list(tmp_path.glob("temporary/mrs-*"))  # torch may have a cache there
    times = json.loads(Path("times.json").read_text(encoding="utf-8"))
    assert times["steps"] == 40
    assert 0 < times["training_seconds"] < times["seconds"]
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if "│" in line]
    told = {line[1].strip(): line[2].strip() for line in lines}
    counts = [int(told[name].replace(",", "")) for name in ("parameters", "trained parameters")]
    assert counts[0] >= counts[1] > 100_000
    for name, size in (("gradients", 4), ("optimizer", 8)):
        assert _megabytes(told[f"memory: {name}"]) == pytest.approx(size * counts[1] / 1e6, abs=0.5)
    *parts, peak = [_megabytes(value) for name, value in told.items() if name.startswith("memory: ")]
    assert sum(parts) < peak
    assert {"time: 40 steps", "time: 4 validations", "time: 2 checkpoints and the model"} < set(told)
    assert int(told["tokens a second, without padding"].replace(",", "")) > 0


def _megabytes(text: str) -> float:
    return float(text.removesuffix(" MB").replace(",", ""))


def test_a_run_without_steps_has_no_estimate(refused: Callable[..., str]) -> None:
    assert refused("--max_steps", 0, "--estimate").startswith("--estimate: times training steps")
