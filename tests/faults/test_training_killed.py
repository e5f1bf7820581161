"""A training run that is killed half-way, and what can be made of it."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from mrs_datasets.prepared.prepare import prepare, prepare_mrs
from tests.cases import cases

pytestmark = pytest.mark.faults

TRAINERS = Path(__file__).resolve().parents[2] / "trainers"
FAMILIES: dict[str, list[object]] = cases(__file__, "FAMILIES")
PREDICTING = FAMILIES.keys() - {"pretraining"}  # their runs write files of predictions
STEPS, SAVE = 96, 4
OPTIONS = [
    "--data", "data", "--max_steps", STEPS, "--eval_strategy", "steps", "--eval_steps", SAVE,
    "--save_strategy", "steps", "--save_steps", SAVE, "--logging_steps", 1, "--per_device_train_batch_size", 8,
    "--learning_rate", 1e-3,
]  # fmt: skip
RESUME = ["--resume_from_checkpoint", "last"]
KILLS = 5
LONGEST_WAIT = 0.3  # seconds after a checkpoint began to appear, and not beyond the next one
Start = Callable[..., "subprocess.Popen[bytes]"]


@dataclass(frozen=True)
class Trainer:
    """One family in the folder where everything of it is written."""

    family: str
    workplace: Path

    def command(self, output: str, *more: object) -> list[object]:
        script = TRAINERS / f"{self.family}.py"
        return [script, *OPTIONS, *FAMILIES[self.family], "--output_dir", output, *more]


@pytest.fixture(scope="module", params=FAMILIES)
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trainer:
    folder = tmp_path_factory.mktemp(f"killed-{request.param}")
    if request.param == "multiple_choice":
        prepare("synthetic-copa", ["synthetic"], folder / "data")
        return Trainer(request.param, folder)
    (folder / "source").mkdir()
    for language in ("en", "es"):
        pairs = [f"{language} question number {n}?\tanswer {n * 7 % 11} to it\n" for n in range(100)]
        (folder / "source" / f"{language}.tsv").write_text("".join(pairs), encoding="utf-8")
    prepare_mrs(str(folder / "source"), folder / "data")
    return Trainer(request.param, folder)


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=150)
    return process.returncode, out.decode(), err.decode()


def predictions(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("predictions*.tsv"))}


def record(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "run.json").read_text(encoding="utf-8"))


def whole_checkpoints(folder: Path) -> list[int]:
    """Steps of the checkpoints whose state, which the trainer writes last, is there."""
    return sorted(int(path.parent.name.split("-")[1]) for path in folder.glob("checkpoint-*/trainer_state.json"))


def assert_the_same_run(folder: Path, whole: Path, family: str) -> None:
    """Weights and response vectors within 1e-6, and all that was measured."""
    files, expected = (
        sorted(path.relative_to(place) for path in place.rglob("*.safetensors") if "checkpoint-" not in str(path))
        for place in (folder, whole)
    )
    assert files == expected != []
    for path in files:
        mine, theirs = load_file(folder / path), load_file(whole / path)
        assert mine.keys() == theirs.keys()
        for name, tensor in mine.items():
            difference = (tensor.double() - theirs[name].double()).abs()
            assert not difference.numel() or float(difference.max()) <= 1e-6, f"{path}: {name}"
    assert predictions(folder) == predictions(whole)
    assert bool(predictions(whole)) is (family in PREDICTING)
    one, other = record(whole), record(folder)
    assert one["metrics"] == other["metrics"]
    assert one["best_step"] == other["best_step"]
    assert other["steps"] == STEPS


@pytest.fixture(scope="module")
def whole(trainer: Trainer, bin_folder: Path) -> Path:
    """The folder of the same run, uninterrupted."""
    command = [bin_folder / "accelerate", "launch", *trainer.command("whole")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=trainer.workplace, env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return trainer.workplace / "whole"


def test_killed_refused_resumed(
    trainer: Trainer, whole: Path, bin_folder: Path, start: Start, wait_for: Callable[..., None]
) -> None:
    workplace, cut = trainer.workplace, trainer.workplace / "cut"
    process = start(bin_folder / "accelerate", "launch", *trainer.command("cut"), cwd=workplace)
    wait_for(lambda: whole_checkpoints(cut), process)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)
    assert not (cut / "run.json").exists()
    assert not predictions(cut)
    left = whole_checkpoints(cut)
    assert left
    assert max(left) < STEPS

    # A second start must neither mix the two runs nor throw the work away.
    code, _, err = finish(start(sys.executable, *trainer.command("cut"), cwd=workplace))
    assert code == 2
    assert "pass --resume_from_checkpoint last to continue it, or --overwrite to start again." in err
    assert "Traceback" not in err
    assert whole_checkpoints(cut) == left

    code, _, err = finish(start(sys.executable, *trainer.command("cut", *RESUME), cwd=workplace))
    assert code == 0, err[-3000:]
    assert_the_same_run(cut, whole, trainer.family)


def test_killed_at_five_random_moments(
    trainer: Trainer, whole: Path, start: Start, wait_for: Callable[..., None]
) -> None:
    """In the middle of a step, of an evaluation, or of writing a checkpoint; each time it goes on from the last."""
    rng = random.Random(20_21)
    folder = trainer.workplace / "often"
    for kill in range(KILLS):
        before, wanted = begun(folder), rng.randint(1, 2)
        command = trainer.command("often", *(RESUME if kill else ()))
        process = start(sys.executable, *command, cwd=trainer.workplace)
        wait_for(lambda: begun(folder) - before >= wanted and whole_checkpoints(folder), process)  # noqa: B023
        until, seen = time.monotonic() + rng.uniform(0, LONGEST_WAIT), begun(folder)
        while time.monotonic() < until and begun(folder) == seen:  # five kills must not need more steps than there are
            time.sleep(0.001)
        assert process.poll() is None, "the run ended before it could be killed"
        os.killpg(process.pid, signal.SIGKILL)
        finish(process)
        assert not (folder / "run.json").exists()
        assert not predictions(folder)
    code, _, err = finish(start(sys.executable, *trainer.command("often", *RESUME), cwd=trainer.workplace))
    assert code == 0, err[-3000:]
    assert_the_same_run(folder, whole, trainer.family)


def begun(folder: Path) -> int:
    """How many checkpoints were begun until now, by the newest: the trainer deletes older ones."""
    return max((int(path.name.split("-")[1]) for path in folder.glob("checkpoint-*")), default=0) // SAVE


def test_a_checkpoint_that_a_kill_cut_off_is_passed_over(trainer: Trainer, whole: Path, start: Start) -> None:
    """The trainer writes a checkpoint in place, its state last: a kill in between leaves a folder without it."""
    folder = trainer.workplace / "half"
    first, last = sorted(whole.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    shutil.copytree(first, folder / first.name)
    shutil.copytree(last, folder / last.name, ignore=shutil.ignore_patterns("trainer_state.json", "rng_state*"))
    code, _, err = finish(start(sys.executable, *trainer.command("half", *RESUME), cwd=trainer.workplace))
    assert code == 0, err[-3000:]
    assert_the_same_run(folder, whole, trainer.family)


def test_killed_after_the_last_step(trainer: Trainer, whole: Path, start: Start) -> None:
    """Nothing is trained any more: the checkpoint is evaluated and exported."""
    folder = trainer.workplace / "late"
    for checkpoint in whole.glob("checkpoint-*"):
        shutil.copytree(checkpoint, folder / checkpoint.name)
    code, _, err = finish(start(sys.executable, *trainer.command("late", *RESUME), cwd=trainer.workplace))
    assert code == 0, err[-3000:]
    assert_the_same_run(folder, whole, trainer.family)


def test_interrupted_by_a_person(trainer: Trainer, start: Start, wait_for: Callable[..., None]) -> None:
    folder = trainer.workplace / "interrupted"
    process = start(sys.executable, *trainer.command("interrupted"), cwd=trainer.workplace)
    wait_for(lambda: whole_checkpoints(folder), process)
    os.killpg(process.pid, signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    assert not (folder / "run.json").exists()
