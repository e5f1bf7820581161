"""Short runs of the retrieval trainer and of `mrs score` in this process."""

import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mrs_datasets.prepared.prepared import PreparedData
from tests import command
from tests.command import Result

OPTIONS = [
    "--max_steps", 2, "--eval_steps", 1, "--save_steps", 1, "--logging_steps", 1, "--per_device_train_batch_size", 8,
    "--mini_batch_size", 4, "--languages", "en", "--max_validation_examples", 8, "--max_test_examples", 8,
    "--use_cpu", "true", "--save_total_limit", 9,
]  # fmt: skip
Train = Callable[..., Path]


@pytest.fixture
def one_process() -> Iterator[None]:
    """One thread; and parsing training arguments sets a state of accelerate, which the next parse must not meet."""
    from accelerate.state import AcceleratorState

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def train(one_process: None, prepared: PreparedData, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Train:
    """Return a function that trains into a folder with that name, and returns it."""
    from mrs_trainers.retrieval import main

    def run(name: str, *options: object) -> Path:
        folder = tmp_path / name
        code = main([str(part) for part in ["--data", prepared.folder, "--output_dir", folder, *OPTIONS, *options]])
        assert code == 0, capsys.readouterr().err[-2000:]
        return folder

    return run


@pytest.fixture
def refusal(
    one_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Return a function that runs a trainer, expects a refusal with exit code 2 and gives its sentence."""

    def run(trainer: str, options: Sequence[object], folder: Path | None = None) -> str:
        if folder is not None:
            monkeypatch.chdir(folder)
        argv = ["--output_dir", tmp_path / "refused", *options]
        assert importlib.import_module(f"mrs_trainers.{trainer}").main([str(part) for part in argv]) == 2
        sentences = [line for line in capsys.readouterr().err.splitlines() if line.startswith(f"mrs train {trainer}: ")]
        assert len(sentences) == 1
        assert not (tmp_path / "refused" / "run.json").exists()
        return sentences[0].removeprefix(f"mrs train {trainer}: ")

    return run


@pytest.fixture
def folder(workplace: Path, output: list[str]) -> Callable[[str], Path]:
    """A function that gives the folder of a run by its name, where the tests of a file share runs (`output`)."""
    return lambda name: workplace / name


@pytest.fixture
def refused(refusal: Callable[..., str], prepared: PreparedData) -> Callable[..., str]:
    """`refusal` of the retrieval trainer."""
    return lambda *options: refusal("retrieval", ["--data", prepared.folder, *OPTIONS, *options])


@pytest.fixture
def shown(mrs_here: Callable[..., Result]) -> Callable[..., str]:
    """A function that runs `mrs score`, and returns what it prints."""
    return lambda *arguments: command.shown(mrs_here("score", *arguments))


@pytest.fixture
def unscored(mrs_here: Callable[..., Result]) -> Callable[..., str]:
    """A function that runs `mrs score`, and returns the sentence with which it refuses."""
    return lambda *arguments: command.refused(mrs_here("score", *arguments))


@pytest.fixture
def score(shown: Callable[..., str]) -> Callable[..., Any]:
    """The same with `--json`."""
    return lambda *arguments: json.loads(shown(*arguments, "--json"))
