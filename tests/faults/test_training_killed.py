"""A training run that is killed half-way, and what can be made of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepare import prepare_mrs

pytestmark = pytest.mark.faults

TRAINER = Path(__file__).resolve().parents[2] / "trainers" / "retrieval.py"
STEPS = 40
OPTIONS = [
    "--data", "data", "--max_steps", STEPS, "--eval_strategy", "steps", "--save_strategy", "steps", "--eval_steps", 4,
    "--save_steps", 4, "--logging_steps", 1, "--per_device_train_batch_size", 8, "--learning_rate", 1e-3,
]  # fmt: skip


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    (folder / "source").mkdir()
    for language in ("en", "es"):
        pairs = [f"{language} question number {n}?\tanswer {n * 7 % 11} to it\n" for n in range(100)]
        (folder / "source" / f"{language}.tsv").write_text("".join(pairs), encoding="utf-8")
    prepare_mrs(str(folder / "source"), folder / "data")
    return folder


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=150)
    return process.returncode, out.decode(), err.decode()


def predictions(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("predictions*.tsv"))}


@pytest.fixture(scope="module")
def whole(workplace: Path, bin_folder: Path) -> Path:
    """The folder of the same run, uninterrupted."""
    command = [bin_folder / "accelerate", "launch", TRAINER, *OPTIONS, "--output_dir", "whole"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [str(part) for part in command], cwd=workplace, env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return workplace / "whole"


def test_killed_refused_resumed(
    workplace: Path,
    whole: Path,
    bin_folder: Path,
    start: Callable[..., subprocess.Popen[bytes]],
    wait_for: Callable[..., None],
) -> None:
    cut = workplace / "cut"
    process = start(bin_folder / "accelerate", "launch", TRAINER, *OPTIONS, "--output_dir", "cut", cwd=workplace)
    wait_for(lambda: list(cut.glob("checkpoint-*/trainer_state.json")), process)
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)
    assert not (cut / "run.json").exists()
    assert not predictions(cut)
    left = [int(path.parent.name.split("-")[1]) for path in cut.glob("checkpoint-*/trainer_state.json")]
    assert left
    assert max(left) < STEPS

    # A second start must neither mix the two runs nor throw the work away.
    code, _, err = finish(start(sys.executable, TRAINER, *OPTIONS, "--output_dir", "cut", cwd=workplace))
    assert code == 2
    assert "pass --resume_from_checkpoint last to go on, or --overwrite to start again." in err
    assert "Traceback" not in err
    assert list(cut.glob("checkpoint-*/trainer_state.json"))

    resume = ["--output_dir", "cut", "--resume_from_checkpoint", "last"]
    code, _, err = finish(start(sys.executable, TRAINER, *OPTIONS, *resume, cwd=workplace))
    assert code == 0, err[-3000:]
    assert predictions(cut) == predictions(whole)
    one, other = (json.loads((folder / "run.json").read_text(encoding="utf-8")) for folder in (whole, cut))
    assert one["metrics"] == other["metrics"]
    assert one["best_step"] == other["best_step"]
    assert other["steps"] == STEPS


def test_a_checkpoint_that_a_kill_cut_off_is_passed_over(
    workplace: Path, whole: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """The trainer writes a checkpoint in place, its state last: a kill in between leaves a folder without it."""
    folder = workplace / "half"
    first, last = sorted(whole.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    shutil.copytree(first, folder / first.name)
    shutil.copytree(last, folder / last.name, ignore=shutil.ignore_patterns("trainer_state.json", "rng_state*"))
    options = [*OPTIONS, "--output_dir", "half", "--resume_from_checkpoint", "last"]
    code, _, err = finish(start(sys.executable, TRAINER, *options, cwd=workplace))
    assert code == 0, err[-3000:]
    assert predictions(folder) == predictions(whole)


def test_interrupted_by_a_person(
    workplace: Path, start: Callable[..., subprocess.Popen[bytes]], wait_for: Callable[..., None]
) -> None:
    folder = workplace / "interrupted"
    process = start(sys.executable, TRAINER, *OPTIONS, "--output_dir", "interrupted", cwd=workplace)
    wait_for(lambda: list(folder.glob("checkpoint-*/trainer_state.json")), process)
    os.killpg(process.pid, signal.SIGINT)
    code, _, err = finish(process)
    assert code == 130
    assert "Traceback" not in err
    assert "interrupted" in err
    assert not (folder / "run.json").exists()
