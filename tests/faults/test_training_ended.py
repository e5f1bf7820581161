"""`mrs train` is ended: the training ends with it, in whatever process it runs."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from accelerate.commands.config.config_args import default_config_file

from mrs_suggest.cli.train import config_file

pytestmark = pytest.mark.faults

OPTIONS = [
    "--languages", "es", "--output_dir", "run", "--max_steps", 100_000, "--eval_strategy", "steps", "--eval_steps", 2,
    "--save_strategy", "steps", "--save_steps", 2, "--max_validation_examples", 8, "--max_test_examples", 8,
    "--per_device_train_batch_size", 8,
]  # fmt: skip
BEGUN = 300  # seconds to the first checkpoint at most: two processes load their libraries, one after the other
TOO_LONG = 60  # seconds until the training has noticed, on a busy machine; it looks four times a second
ONE_PROCESS = """
compute_environment: LOCAL_MACHINE
distributed_type: 'NO'
mixed_precision: 'no'
num_machines: 1
num_processes: 1
use_cpu: true
"""


def alive(process: psutil.Process) -> bool:
    """Whether it still runs; one that nobody buried does not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(
    ("config", "ending"),
    [(None, signal.SIGTERM), (ONE_PROCESS, signal.SIGKILL)],
    ids=["in one process", "in that of an accelerate config"],
)
def test_no_training_outlives_its_command(
    tmp_path: Path, bin_folder: Path, start: Callable[..., Any], wait_for: Callable[..., None], config: str | None,
    ending: signal.Signals,
) -> None:  # fmt: skip
    home = tmp_path / "hf"
    if config:
        (home / "accelerate").mkdir(parents=True)
        (home / "accelerate" / "default_config.yaml").write_text(config, encoding="utf-8")
    run = tmp_path / "run"
    process = start("env", f"HF_HOME={home}", bin_folder / "mrs", "train", "retrieval", *OPTIONS)
    wait_for(lambda: any(run.glob("checkpoint-*")), process, BEGUN)
    launched = psutil.Process(process.pid).children(recursive=True)
    assert bool(launched) is bool(config)
    process.send_signal(ending)
    assert process.wait(TOO_LONG) == -ending
    end = time.monotonic() + TOO_LONG
    while any(alive(child) for child in launched):
        assert time.monotonic() < end, "the training goes on without its command"
        time.sleep(0.05)
    assert not (run / "run.json").exists()


def test_interrupted_alone(
    tmp_path: Path, bin_folder: Path, start: Callable[..., Any], wait_for: Callable[..., None]
) -> None:
    """As a supervisor does it, which signals the command and not its process group."""
    process = start(bin_folder / "mrs", "train", "generation", *OPTIONS)
    wait_for(lambda: any((tmp_path / "run").glob("checkpoint-*")), process, BEGUN)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=TOO_LONG)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"interrupted" in err


def test_the_config_is_looked_for_where_accelerate_writes_it() -> None:
    assert str(config_file()) == default_config_file
