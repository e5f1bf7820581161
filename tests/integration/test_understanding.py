"""The understanding trainer: whole, killed and resumed, on ranks, in its modes, with adapters, refused."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from safetensors.torch import load_file

from mrs_datasets.prepared.prepare import prepare
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.models.understanding.understanding_start import load_understanding
from mrs_suggest.training.checked_card import checked_card
from tests.forked_runs import forked_runs
from tests.run_files import log, record
from tests.weights import FEW, differing

pytestmark = pytest.mark.integration

STEPS = 6
OPTIONS = [
    "--data", "data", "--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--eval_steps", 3,
    "--save_steps", 3, "--logging_steps", 1, "--learning_rate", 3e-3, "--use_cpu", "true", "--save_total_limit", 9,
    "--vocabulary", 300, "--per_device_train_batch_size", 8, "--max_train_examples", 64,
    "--max_validation_examples", 16, "--max_test_examples", 24,
]  # fmt: skip
RESUME = ["--resume_from_checkpoint", "last"]
NER = ["--task", "ner"]
SEVERAL = [
    "--mode", "multitask", "--tasks", "xnli", "mlqa", "pos", "wpr", "--sampling_alpha", 0, "--languages", "en"
]  # fmt: skip
# name: options, 1 where it is cut off at its first checkpoint, ranks
RUNS = (
    ("whole", NER, 0, 1),
    ("cut", NER, 1, 1),
    ("ranks", [*NER, "--per_device_train_batch_size", 4], 0, 2),
    ("several", SEVERAL, 1, 1),
    ("answers", ["--task", "mlqa", "--languages", "en", "--max_tokens", 32, "--validation", "all"], 0, 1),
    ("more", ["--task", "xnli", "--mode", "multilanguage", "--train", "de=xnli_de.parquet"], 0, 1),
    ("cut", [*NER, *RESUME], 0, 1),
    ("several", [*SEVERAL, *RESUME], 0, 1),
    ("lora", [*NER, "--model_name_or_path", "whole", "--peft", "lora", "--languages", "de"], 0, 1),
    ("several_on_ranks", [*SEVERAL, "--per_device_train_batch_size", 4], 0, 2),
    ("tested", [*NER, "--model_name_or_path", "whole", "--max_steps", 0], 0, 1),
)
ENDED = ["0", "9", "0 0", "9", "0", "0", "0", "0", "0", "0 0", "0"]
REFUSED = {  # by the trainer itself; those of options and data are in tests/mrs_suggest/training/understanding
    "--task pawsx --model_name_or_path several": "--model_name_or_path several: has a head for each of MLQA, POS, WPR,",
    "--task pos --model_name_or_path whole --max_steps 0": "--model_name_or_path whole: has no head for POS, so",
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generated tasks, and a file for `--train`."""
    folder = tmp_path_factory.mktemp("understanding")
    prepare("synthetic-xglue", ["synthetic"], folder / "data")
    german = pq.read_table(next((folder / "data" / "data" / "xnli-de").glob("validation-*.parquet")))
    pq.write_table(german.slice(0, 60), folder / "xnli_de.parquet")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print; refused ones come last."""
    runs = [(["--output_dir", name, *map(str, [*OPTIONS, *own])], cut, ranks) for name, own, cut, ranks in RUNS]
    runs += [(["--output_dir", "refused", *map(str, OPTIONS), *own.split()], 0, 1) for own in REFUSED]
    codes, printed = forked_runs("mrs_trainers.understanding", runs, workplace, 500)
    assert codes == [*ENDED, *["2"] * len(REFUSED)], "\n".join(printed)[-6000:]
    return printed


@pytest.fixture
def folders(workplace: Path, output: list[str]) -> dict[str, Path]:
    return {name: workplace / name for name, *_ in RUNS}


def predictions(folder: Path) -> dict[str, str]:
    files = sorted((folder / "predictions").glob("*/*.prediction"))
    return {str(path.relative_to(folder / "predictions")): path.read_text(encoding="utf-8") for path in files}


def test_a_run_has_figures_for_each_language_and_a_card(folders: dict[str, Path]) -> None:
    found = record(folders["whole"])
    assert (found["trainer"], found["steps"], found["plan"]["mode"]) == ("understanding", STEPS, "pivot")
    assert found["plan"]["zero_shot"] == {"NER": ["de", "es"]}
    assert found["data"]["rows"] == {
        "ner-en": {"train": 64, "validation": 16, "test": 24}, "ner-de": {"test": 24}, "ner-es": {"test": 24}
    }  # fmt: skip
    figures = found["metrics"]["tasks"]["NER"]
    assert list(figures) == ["de", "en", "es"]
    for one in figures.values():
        low, high = one["interval"] or 2 * [one["score"]]  # none if all resamples give the same
        assert low <= one["score"] <= high
        assert one["signature"].startswith("xglue_score|task:NER|")
    assert found["metrics"]["averages"]["tasks"]["NER"] == pytest.approx(
        sum(one["score"] for one in figures.values()) / 3
    )
    assert found["metrics"]["averages"]["missing"]["NER"] == ["nl"]
    _, front, body = (folders["whole"] / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "token-classification"
    assert "Zero-shot: NER de es." in body
    assert "$" not in body
    assert checked_card(folders["whole"], None).endswith(body)
    assert not {path.suffix for path in folders["whole"].iterdir()} & {".bin", ".pt", ".pkl"}
    assert load_understanding(folders["whole"]).heads["NER"].labels[-1] == "O"


@pytest.mark.parametrize(("name", "like"), [("cut", "whole"), ("several", "several_on_ranks")])
def test_resumed_equals_uninterrupted(folders: dict[str, Path], name: str, like: str) -> None:
    if like == "whole":
        assert log(folders[name], STEPS) == log(folders[like], STEPS)
        assert record(folders[name])["files"] == record(folders[like])["files"], "the same weights, by their hashes"
        assert predictions(folders[name]) == predictions(folders[like])
    losses = [[entry["loss"] for entry in log(folders[run], STEPS) if "loss" in entry] for run in (name, like)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)


@pytest.mark.parametrize(("one", "two"), [("whole", "ranks"), ("several", "several_on_ranks")])
def test_two_ranks_train_and_validate_as_one(folders: dict[str, Path], one: str, two: str) -> None:
    for key, close in (("loss", 1e-4), ("grad_norm", 1e-3), ("eval_loss", 1e-4), ("eval_score", 1e-6)):
        first, other = ([entry[key] for entry in log(folders[run], STEPS) if key in entry] for run in (one, two))
        assert len(first) == len(other) >= 2
        assert max(abs(a - b) for a, b in zip(first, other, strict=True)) < close, key
    first, other = (load_file(folders[run] / f"checkpoint-{STEPS}" / "model.safetensors") for run in (one, two))
    assert differing(first, other, 1e-4) < FEW


def test_several_tasks_share_one_encoder(folders: dict[str, Path]) -> None:
    found = record(folders["several"])
    assert found["plan"]["tasks"] == ["XNLI", "MLQA", "POS", "WPR"]
    assert set(found["metrics"]["tasks"]) == {"XNLI", "MLQA", "POS", "WPR"}
    assert found["metrics"]["averages"]["understanding"] is not None
    parts = load_understanding(folders["several"])
    assert parts.shared
    assert set(parts.heads) == {"XNLI", "MLQA", "POS", "WPR"}
    start = load_file(folders["several"] / "checkpoint-3" / "model.safetensors")
    heads = {name.split(".")[1] for name in start if name.startswith("heads.")}
    trained = load_file(folders["several"] / f"checkpoint-{STEPS}" / "model.safetensors")
    moved = {
        name.split(".")[1] for name in start if name.startswith("heads.") and not (start[name] == trained[name]).all()
    }
    assert moved <= heads
    assert len(moved) > 1, "batches have one task each, and several of them came"


def test_languages_of_training_come_from_a_file(workplace: Path, folders: dict[str, Path]) -> None:
    found = record(folders["more"])
    assert found["plan"]["train"] == {"XNLI": ["en", "de"]}
    assert found["plan"]["zero_shot"] == {"XNLI": ["es", "fr"]}
    assert found["data"]["train"] == {
        "de": {"id": "xnli_de.parquet", "content_hash": content_hash([workplace / "xnli_de.parquet"])}
    }


def test_adapters_of_a_run_come_with_the_head(folders: dict[str, Path]) -> None:
    names = load_file(folders["lora"] / "adapter" / "adapter_model.safetensors").keys()
    assert any(name.endswith("classifier.weight") for name in names)
    assert any("lora_A" in name for name in names)
    assert record(folders["lora"])["metrics"]["tasks"]["NER"].keys() == {"de"}


def test_a_trained_model_is_tested_without_training(folders: dict[str, Path]) -> None:
    assert predictions(folders["tested"]) == predictions(folders["whole"])
    assert record(folders["tested"])["metrics"]["tasks"] == record(folders["whole"])["metrics"]["tasks"]


@pytest.mark.parametrize(("options", "told"), REFUSED.items())
def test_wrong_input_gets_one_sentence(workplace: Path, output: list[str], options: str, told: str) -> None:
    sentences = [
        line.removeprefix("mrs train understanding: ")
        for line in output
        if line.startswith("mrs train understanding: ")
    ]
    assert any(sentence.startswith(told) for sentence in sentences), sentences
    assert len(sentences) == len(REFUSED)
    assert not (workplace / "refused" / "run.json").exists()
    shutil.rmtree(workplace / "refused", ignore_errors=True)
