"""A generator that starts from an encoder, through its real commands: train, push, suggest from the hub."""

import json
from pathlib import Path

import pytest

from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.retrieval.tiny import build_tiny
from tests.cases import cases
from tests.command import refused
from tests.hub.server import LoopbackHub
from tests.integration.test_adapters_hub import PAIRS, prepare_pairs
from tests.integration.test_hub_walk import MRS, Walk, published

pytestmark = pytest.mark.integration

TEXTS = [text for pairs in PAIRS.values() for pair in pairs for text in pair] * 2


@pytest.fixture
def walk(hub: LoopbackHub, tmp_path: Path) -> Walk:
    """A walk through an empty hub from a folder with `data/` and the checkpoint `encoder/`."""
    prepare_pairs(tmp_path)
    build_tiny(TEXTS, tmp_path / "encoder", 1, 300)
    return Walk(hub, tmp_path)


def test_trained_pushed_and_answering(walk: Walk) -> None:
    walk.run(
        *MRS, "train", "generation", "--data", "data", "--model_name_or_path", "encoder", "--output_dir", "run",
        "--decoder_layers", 1, "--max_tokens", 8, "--learning_rate", 1e-3, "--max_steps", 4, "--eval_steps", 2,
        "--save_steps", 2, "--per_device_train_batch_size", 8, "--push_to_hub", "true", "--hub_model_id", "org/made",
    )  # fmt: skip
    record = json.loads((walk.folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert (record["arguments"]["decoder"], record["arguments"]["decoder_layers"]) == ("copied", 1)
    files = published(walk.hub, "model", "org/made")
    assert set(record["files"]) <= set(files)
    assert b"<2en>" in files["README.md"]
    ask = ("--language", "es", "--json", "¿Qué tal dog?")
    here, there = (
        json.loads(walk.run(*MRS, "suggest", "--model", place, *ask).stdout) for place in ("run", "org/made")
    )
    assert here["suggestions"] == there["suggestions"]


@pytest.mark.parametrize(("model", "options", "sentence"), cases(__file__, "test_refusals"))
def test_refusals(
    model: str, options: list[str], sentence: str, walk: Walk, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from mrs_suggest.cli.main import main

    monkeypatch.chdir(walk.folder)
    build_tiny_generator(TEXTS, ["en", "es"], walk.folder / "seq2seq", 1, 300)
    capsys.readouterr()
    code = main(
        ["train", "generation", "--data", "data", "--model_name_or_path", model, "--output_dir", "run", *options]
    )
    captured = capsys.readouterr()
    assert sentence in refused((code, captured.out, captured.err.splitlines()[-1] + "\n"))
    assert not (walk.folder / "run").exists()
