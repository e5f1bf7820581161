"""Each option against forgetting acts in a run of the generation trainer: English trains, Spanish is asked for."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.cases import cases
from tests.integration.test_generation import (  # noqa: F401  (fixtures)
    LORA,
    SHORT,
    base,
    history,
    largest_difference,
    predictions,
    record,
    train,
    weights,
    workplace,
)

pytestmark = pytest.mark.integration

ZERO_SHOT = ["--train", "en", "--validation", "en", "--languages", "en", "es"]
TEXT = ["--denoising_share", 0.5, "--denoising_text", "es=es.txt"]
Train = Callable[..., Path]


@pytest.fixture(scope="module")
def text(workplace: Path) -> None:  # noqa: F811
    lines = (workplace / "source" / "es.tsv").read_text(encoding="utf-8").replace("\t", "\n")
    (workplace / "es.txt").write_text(lines, encoding="utf-8")


def changed(folder: Path, start: Path) -> set[str]:
    """The weights of the last checkpoint that differ from those at the start."""
    before, after = load_file(start / "model.safetensors"), weights(folder, 2)
    return {name for name, value in before.items() if not torch.equal(after[name], value)}


def test_steps_of_denoising_and_lower_layers_that_stay(train: Train, base: Path, workplace: Path, text: None) -> None:  # noqa: F811
    options = [*ZERO_SHOT, *TEXT, "--model_name_or_path", base, "--freeze_decoder_layers", 1]
    folder = train("denoised", *options)
    entries = {entry["step"]: entry for entry in history(folder) if "loss" in entry}
    kinds = [sorted(entry.keys() & {"reply_loss", "denoising_loss"}) for entry in entries.values()]
    assert sorted(kinds) == [["denoising_loss"]] * 3 + [["reply_loss"]] * 3, "a step is of one kind"
    assert all(
        entry["loss"] == pytest.approx(entry[kind[0]], rel=1e-5)
        for entry, kind in zip(entries.values(), kinds, strict=True)
    )
    told = record(folder)["data"]["more_text"]
    assert told["rows"] == {"es": {"train": 144}}
    assert told["sources"][0]["source"] == "es.txt"

    identity = json.loads((folder / "resume.json").read_text())
    assert identity["more text"] == told["content_hash"], "with other text it is another run"

    moved = changed(folder, base)
    assert moved
    assert not any(name.startswith("model.decoder.layers.0.") for name in moved)
    assert "model.encoder.layers.0.fc1.weight" in moved

    shutil.copytree(folder / "checkpoint-2", workplace / "denoised-resumed" / "checkpoint-2")
    shutil.copy(folder / "resume.json", workplace / "denoised-resumed")
    resumed = train("denoised-resumed", *options, "--resume_from_checkpoint", "last")
    assert largest_difference(weights(resumed), weights(folder)) <= 1e-6
    assert predictions(resumed) == predictions(folder)


def test_a_decoder_that_is_not_told_the_language(train: Train, base: Path) -> None:  # noqa: F811
    folder = train("untold", *ZERO_SHOT, *SHORT, "--model_name_or_path", base, "--force_language_token", "false")
    assert record(folder)["metrics"]["language_tokens"] == "unicoder-untold"
    assert json.loads((folder / "generator.json").read_text())["language_tokens"] == "unicoder-untold"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "A reply's language follows from the message." in card
    assert "decoder_start_token_id=" not in card
    generation = json.loads((folder / "generation_config.json").read_text())
    assert generation["decoder_start_token_id"] == generation["eos_token_id"]


def test_weights_between_start_and_end(train: Train, base: Path) -> None:  # noqa: F811
    options = [*ZERO_SHOT, *SHORT, "--model_name_or_path", base]
    start, whole = load_file(base / "model.safetensors"), train("between", *options, "--interpolate_start", 0.25)
    kept, trained = load_file(whole / "model.safetensors"), weights(whole, 2)
    for name, value in start.items():
        torch.testing.assert_close(kept[name], 0.75 * value + 0.25 * trained[name], rtol=0, atol=1e-6)
    assert largest_difference(kept, trained) > 0
    found = record(whole)["metrics"]["interpolation"]
    assert found["kept"] == 0.25
    by_language = {"weighted_rouge_en", "perplexity_en"}
    assert set(found["shares"][0]) == {"share", "weighted_rouge", "perplexity", "loss", "dist1", "dist2"} | by_language
    assert "0.25 of the trained weights" in (whole / "README.md").read_text(encoding="utf-8")
    untouched = train("start", *options, "--interpolate_start", 0)
    assert largest_difference(load_file(untouched / "model.safetensors"), start) == 0


def test_wrong_languages_stop_a_run(train: Train, base: Path, lid_model: Path) -> None:  # noqa: F811
    watch = ["--watch_languages", "es", "--wrong_language_limit", 0, "--language_model", lid_model]
    folder = train("watched", *ZERO_SHOT, "--model_name_or_path", base, *watch, "--learning_rate", 0.01)
    run = record(folder)
    watched = run["metrics"]["watched"]
    stopped = watched["stopped_at"]
    assert watched["shares"][str(stopped)] > 0
    assert run["steps"] == stopped == int(max(watched["shares"], key=int))
    assert run["best_step"] == max(
        (int(step) for step, share in watched["shares"].items() if share == 0), default=stopped
    )
    model = run["metrics"]["systems"]["Model"]
    for scope in ("en", "es", "pooled"):
        assert {"wrong_language", "wrong_language_first"} <= model[scope].keys()
    assert f"identifier:{lid_model.name}@" in run["metrics"]["signatures"]["es"]["wrong_language"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert "| wrong language |" in card
    assert f"identifier:{lid_model.name}@" in card


BAD = cases(__file__, "BAD")


@pytest.mark.parametrize("case", BAD)
def test_refused_in_one_sentence(
    case: str,
    workplace: Path,  # noqa: F811
    tmp_path: Path,
    refusal: Callable[..., str],
) -> None:
    options, expected = BAD[case]
    small = ["--data", "data", "--max_steps", 1, "--vocabulary", 300]
    assert expected in refusal("generation", [*small, *options], workplace)
    assert not (tmp_path / "refused").exists()
