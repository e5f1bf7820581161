"""The committed configurations: the values of section 6.1, each with its source."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_suggest.common.arguments import parse_with_config
from mrs_suggest.training.understanding.options import sound_understanding
from mrs_suggest.training.understanding.tasks import UNDERSTANDING_TASKS
from mrs_trainers.understanding import make_parser

# learning rate, batch, epochs: section 6.1
PAPER = dict.fromkeys(("nc", "xnli", "pawsx", "qadsm", "qam", "wpr", "multitask", "multilanguage"), (5e-6, 32, 10))
PAPER |= {"ner": (5e-6, 32, 20), "pos": (2e-5, 32, 20), "mlqa": (3e-5, 12, 2)}


def folder(repository: Path) -> Path:
    return repository / "trainers" / "configs" / "understanding"


def test_every_task_has_its_file(repository: Path) -> None:
    assert {path.stem for path in folder(repository).glob("*.yaml")} == {*PAPER, "synthetic"}
    assert {name.lower() for name in UNDERSTANDING_TASKS} < set(PAPER)


@pytest.mark.parametrize("name", PAPER)
def test_a_file_has_the_values_of_the_paper(repository: Path, name: str) -> None:
    path = folder(repository) / f"{name}.yaml"
    options, training = parse_with_config(make_parser(), ["--config", str(path), "--data", "x", "--use_cpu", "true"])
    sound_understanding(options, training)
    found = training.learning_rate, training.per_device_train_batch_size, training.num_train_epochs
    assert found == PAPER[name]
    assert (options.max_tokens, training.eval_strategy, training.save_strategy) == (512, "epoch", "epoch")
    if name in ("multitask", "multilanguage"):
        assert options.mode == name
    else:
        assert (options.mode, options.task) == ("pivot", name)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if ": " in line and line[0] != "#"]
    assert [line for line in lines if " # " not in line] == [], "a value without a source"


def test_the_defaults_are_those_of_sentence_classification(repository: Path) -> None:
    arguments = ["--config", str(folder(repository) / "xnli.yaml"), "--use_cpu", "true"]
    options, given = parse_with_config(make_parser(), arguments)
    plain, default = parse_with_config(make_parser(), ["--use_cpu", "true"])
    for name in (
        "learning_rate",
        "per_device_train_batch_size",
        "num_train_epochs",
        "lr_scheduler_type",
        "warmup_steps",
    ):
        assert getattr(given, name) == getattr(default, name), name
    assert (options.validation, options.window_overlap) == (plain.validation, plain.window_overlap)
