"""A run of each trainer without evaluations and checkpoints ends with a model all the same."""

import importlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare
from tests.run_files import record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("one_process")]
SHORT = [
    "--max_steps", 2, "--eval_strategy", "no", "--save_strategy", "no", "--use_cpu", "true", "--output_dir", "run",
]  # fmt: skip
REPLIES = ["--data", "sample", "--languages", "es", "--max_validation_examples", 8, "--max_test_examples", 8]


def _copa(folder: Path) -> list[object]:
    """COPA in two languages, with 8 questions in every split."""
    rows = [
        {"premise": f"rain {n}.", "choice1": f"wet {n}.", "choice2": f"dry {n}.", "question": "cause", "label": n % 2,
         "idx": n, "changed": False}
        for n in range(8)
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    places = ["copa/train.jsonl", "copa/val.jsonl", "xcopa/data/et/val.et.jsonl", "xcopa/data/et/test.et.jsonl"]
    for place in places:
        (folder / "source" / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "source" / place).write_text(text, encoding="utf-8")
    prepare("xcopa", [str(folder / "source" / "xcopa"), str(folder / "source" / "copa")], folder / "data")
    return ["--data", "data", "--setup", "CO-ZS", "--vocabulary", 200]


def _xglue(folder: Path) -> list[object]:
    prepare("synthetic-xglue", ["synthetic"], folder / "data")
    limits = [f"--max_{split}_examples" for split in ("train", "validation", "test")]
    return ["--data", "data", "--task", "ner", "--vocabulary", 300, *(word for name in limits for word in (name, 16))]


OPTIONS: dict[str, Callable[[Path], list[object]]] = {
    "retrieval": lambda folder: REPLIES,
    "generation": lambda folder: [*REPLIES, "--max_tokens", 4],
    "causal": lambda folder: [*REPLIES, "--max_tokens", 4],
    "multiple_choice": _copa,
    "understanding": _xglue,
    "pretraining": lambda folder: ["--data", "sample", "--languages", "es", "--max_train_examples", 64],
}


@pytest.mark.parametrize("trainer", OPTIONS)
def test_the_last_weights_are_kept(trainer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = [*OPTIONS[trainer](tmp_path), *SHORT]
    assert importlib.import_module(f"mrs_trainers.{trainer}").main([str(word) for word in words]) == 0
    found = record(tmp_path / "run")
    assert (found["steps"], found["best_step"], found["best_metric"]) == (2, None, None)
    assert any((tmp_path / "run").rglob("*.safetensors")), "the weights"
    assert any(name.endswith(".safetensors") for name in found["files"])
    assert "the last weights were kept" in (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert not list((tmp_path / "run").glob("checkpoint-*"))


def test_an_evaluation_that_never_comes_is_noted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_trainers.retrieval import main

    monkeypatch.chdir(tmp_path)
    words = [*REPLIES, "--max_steps", 2, "--eval_delay", 20, "--use_cpu", "true", "--output_dir", "run"]
    assert main([str(word) for word in words]) == 0
    assert "note: no evaluation chose a checkpoint; the last weights are kept.\n" in capsys.readouterr().err
    assert record(tmp_path / "run")["best_step"] is None
