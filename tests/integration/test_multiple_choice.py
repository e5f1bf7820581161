"""The multiple-choice trainer: whole, killed and resumed, on ranks, with a checkpoint per language, refused."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from mrs_datasets.prepared.prepare import prepare
from mrs_suggest.models.understanding.choice_start import load_choice_model
from mrs_suggest.training.checked_card import checked_card
from tests.cases import cases
from tests.forked_runs import forked_runs
from tests.run_files import log, record

pytestmark = pytest.mark.integration

STEPS = 6
OPTIONS = [
    "--data", "data", "--max_steps", STEPS, "--eval_steps", 2, "--save_steps", 2, "--logging_steps", 1, "--dropout", 0,
    "--learning_rate", 3e-3, "--use_cpu", "true", "--save_total_limit", 9, "--patience", 0, "--vocabulary", 200,
]  # fmt: skip
# name: options, 1 where it is cut off at its first checkpoint, ranks
WHOLE = cases(__file__, "WHOLE")
SECOND = cases(__file__, "SECOND")  # those that are cut off go on
REFUSED = cases(__file__, "REFUSED")


def lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data of XCOPA's and SIQA's layouts."""
    folder, draw = tmp_path_factory.mktemp("choice"), random.Random(1)
    words = ["rain", "sun", "wind", "snow", "dog", "cat", "bird", "fish", "tree", "leaf", "road", "bridge"]

    def xcopa(count: int, code: str) -> str:
        rows = [
            {
                "premise": f"{code} {draw.choice(words)} {draw.choice(words)}.",
                "choice1": f"{draw.choice(words)} {n}.", "choice2": f"{draw.choice(words)} {draw.choice(words)} {n}.",
                "question": draw.choice(["cause", "effect"]), "label": draw.randrange(2), "idx": n,
                "changed": draw.random() < 0.2,
            }
            for n in range(count)
        ]  # fmt: skip
        return lines(rows)

    places = {("copa", "train"): (64, "en"), ("copa", "val"): (20, "en")}
    for (name, split), (count, code) in places.items():
        (folder / "source" / name).mkdir(parents=True, exist_ok=True)
        (folder / "source" / name / f"{split}.jsonl").write_text(xcopa(count, code), encoding="utf-8")
    for code in ("et", "qu"):
        for split in ("val", "test"):
            path = folder / "source" / "xcopa" / "data" / code / f"{split}.{code}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(xcopa(20, code), encoding="utf-8")
    own = folder / "source" / "xcopa" / "data"
    shutil.copytree(own / "et", folder / "source" / "xcopa" / "data-gmt" / "et")
    prepare("xcopa", [str(folder / "source" / "xcopa"), str(folder / "source" / "copa")], folder / "data")
    for split, count in (("train", 48), ("dev", 16)):
        questions = [
            {"context": f"{draw.choice(words)}.", "question": f"why {draw.choice(words)}?",
             **{f"answer{letter}": f"{draw.choice(words)} {letter} {n}" for letter in "ABC"}}
            for n in range(count)
        ]  # fmt: skip
        (folder / "source" / "siqa").mkdir(exist_ok=True)
        (folder / "source" / "siqa" / f"{split}.jsonl").write_text(lines(questions), encoding="utf-8")
        labels = "".join(f"{draw.randrange(1, 4)}\n" for _ in range(count))
        (folder / "source" / "siqa" / f"{split}-labels.lst").write_text(labels, encoding="utf-8")
    prepare("siqa", [str(folder / "source" / "siqa")], folder / "siqa-data")
    return folder


@pytest.fixture(scope="module")
def output(workplace: Path) -> list[str]:
    """What the runs print; those that are cut off go on in the second round, refused ones come last."""
    own = [(name, *run) for many in (WHOLE, SECOND) for name, run in many.items()]
    own += [("refused", options.split(), 0, 1) for options in REFUSED]
    runs = [(["--output_dir", name, *map(str, [*OPTIONS, *more])], cut, ranks) for name, more, cut, ranks in own]
    codes, printed = forked_runs("mrs_trainers.multiple_choice", runs, workplace, 400)
    expected = ["0", "9", "0 0", "0", "9", "0", *["0"] * len(SECOND), *["2"] * len(REFUSED)]
    assert codes == expected, "\n".join(printed)[-5000:]
    return printed


@pytest.fixture
def folders(workplace: Path, output: list[str]) -> dict[str, Path]:
    return {name: workplace / name for name in (*WHOLE, *SECOND)}


def predictions(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("predictions*.tsv"))}


def test_a_run_has_figures_for_each_language_and_a_card(folders: dict[str, Path]) -> None:
    found = record(folders["whole"])
    assert (found["trainer"], found["steps"], found["plan"]["setup"]) == ("multiple_choice", STEPS, "CO-ZS")
    assert found["data"]["rows"] == {
        "en": {"train": 64, "validation": 20}, "et": {"test": 20}, "qu": {"test": 20}
    }  # fmt: skip
    figures = found["metrics"]["systems"]["full"]
    assert list(figures) == ["et", "qu", "macro"]
    rows = [line.split("\t") for line in predictions(folders["whole"])["predictions.qu.tsv"].splitlines()]
    assert rows[0] == ["idx", "gold", "predicted", "changed", "score1", "score2"]
    assert sum(row[1] == row[2] for row in rows[1:]) == figures["qu"]["correct"]
    _, front, body = (folders["whole"] / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    assert yaml.safe_load(front)["pipeline_tag"] == "multiple-choice"
    assert "Setup CO-ZS of the XCOPA paper" in body
    assert "$" not in body
    assert checked_card(folders["whole"], None).endswith(body)
    assert not {path.suffix for path in folders["whole"].iterdir()} & {".bin", ".pt", ".pkl"}


def test_resumed_equals_uninterrupted(folders: dict[str, Path]) -> None:
    assert log(folders["cut"], STEPS) == log(folders["whole"], STEPS)
    assert record(folders["cut"])["files"] == record(folders["whole"])["files"], "the same weights, by their hashes"
    assert predictions(folders["cut"]) == predictions(folders["whole"])


@pytest.mark.parametrize("name", ["ranks", "accumulated"])
def test_a_step_does_not_depend_on_how_it_is_cut(folders: dict[str, Path], name: str) -> None:
    """8 questions at once, 4 on each of two ranks, 4 twice: equal losses, gradients and weights."""
    for key, close in (("loss", 1e-4), ("grad_norm", 1e-3), ("eval_loss", 1e-4)):
        one, other = ([entry[key] for entry in log(folders[run], STEPS) if key in entry] for run in ("whole", name))
        assert len(one) == len(other) >= STEPS // 2
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) < close, key
    assert len({entry["loss"] for entry in log(folders[name], STEPS) if "loss" in entry}) > 1
    one, other = (load_file(folders[run] / f"checkpoint-{STEPS}" / "model.safetensors") for run in ("whole", name))
    differences = torch.cat([(one[key] - other[key]).abs().flatten() for key in one])
    assert differences.mean() < 1e-5
    # Adam divides by the gradient's size: near 0, rounding alone moves a weight by up to the learning rate.
    assert differences.max() < 3e-3


def test_each_language_is_tested_with_its_own_checkpoint(folders: dict[str, Path]) -> None:
    """The run was killed at its first checkpoint and resumed."""
    found = record(folders["tlv"])
    best = found["metrics"]["best_of_each_language"]
    for code in ("et", "qu"):
        points = [
            (entry["step"], entry[f"eval_accuracy_{code}"])
            for entry in log(folders["tlv"], STEPS)
            if "eval_loss" in entry
        ]
        step, accuracy = max(points, key=lambda point: (point[1], -point[0]))
        assert best[code] == {"step": step, "accuracy": accuracy}
        assert load_choice_model(folders["tlv"] / "best" / str(step))
    assert len(points) == STEPS // 2
    assert {path.name for path in (folders["tlv"] / "best").iterdir()} == {str(one["step"]) for one in best.values()}
    views = found["metrics"]["systems"]
    assert {view: list(entry) for view, entry in views.items()} == {
        "full": ["et", "qu", "macro"], "translation": ["et", "macro"], "nop": ["et", "qu", "macro"]
    }  # fmt: skip
    assert len(predictions(folders["tlv"])) == 5
    assert "Each language was tested with the checkpoint of its own" in (folders["tlv"] / "README.md").read_text(
        "utf-8"
    )


def test_the_second_stage_starts_from_three_choices(folders: dict[str, Path]) -> None:
    first, second = record(folders["siqa"]), record(folders["stage"])
    assert (first["plan"]["choices"], second["plan"]["choices"]) == (3, 2)
    assert second["arguments"]["model_name_or_path"] == "./siqa"
    start = load_file(folders["siqa"] / "model.safetensors")
    trained = load_file(folders["stage"] / "model.safetensors")
    assert start.keys() == trained.keys()
    assert 0 < max(float((start[name] - trained[name]).abs().max()) for name in start) < 0.1


def test_adapters_of_a_run_come_with_the_head(folders: dict[str, Path]) -> None:
    names = load_file(folders["lora"] / "adapter" / "adapter_model.safetensors").keys()
    assert any(name.endswith("hidden.weight") for name in names)
    assert any("lora_A" in name for name in names)
    assert load_choice_model(folders["lora"])


@pytest.mark.parametrize(("options", "told"), REFUSED.items())
def test_wrong_input_gets_one_sentence(workplace: Path, output: list[str], options: str, told: str) -> None:
    sentences = [
        line.removeprefix("mrs train multiple_choice: ")
        for line in output
        if line.startswith("mrs train multiple_choice: ")
    ]
    assert any(sentence.startswith(told) for sentence in sentences), sentences
    assert len(sentences) == len(REFUSED)
    assert not (workplace / "refused" / "run.json").exists()
