"""`mrs reproduce` is ended by a signal, then killed: nothing runs on, and the same command finishes the table."""

import json
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.mrs_suggest.reproduce.conftest import FAKE, TABLE

pytestmark = pytest.mark.faults

# The command, with a stand-in for the trainer.
COMMAND = """
import sys
from pathlib import Path
from mrs_suggest.cli import main, reproduce
from mrs_suggest.reproduce import runner
reproduce.TABLES = reproduce.CONFIGS = Path("configs")
runner._mrs = lambda: [sys.executable, "trainer.py"]
sys.exit(main.main(["reproduce", "test", "--only", "teacher", "student", "--jobs", "2", "--output", "out"]))
"""
TOO_LONG = 60  # seconds until a process has noticed that its launcher is gone, on a busy machine


def process_of(cell: Path) -> psutil.Process | None:
    """The trainer of a cell, once it has written a checkpoint."""
    try:
        return psutil.Process(int((cell / "run" / "process").read_text()))
    except (OSError, ValueError, psutil.NoSuchProcess):
        return None


def gone(process: psutil.Process) -> bool:
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def test_ended_twice_and_finished(tmp_path: Path, start: Callable[..., Any], wait_for: Callable[..., None]) -> None:
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "a.yaml").write_text("model_name_or_path: org/base\nfail: 3\n")
    (tmp_path / "configs" / "test.yaml").write_text(TABLE)
    (tmp_path / "trainer.py").write_text(FAKE)
    (tmp_path / "command.py").write_text(COMMAND)
    cells = tmp_path / "out" / "full" / "cells"

    process = start(sys.executable, "command.py")
    teachers = [cells / "teacher-42", cells / "teacher-43"]
    wait_for(lambda: all(map(process_of, teachers)), process)
    trainers = [process_of(cell) for cell in teachers]
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=TOO_LONG)
    assert process.returncode == 143
    assert err.decode().splitlines()[-1] == ("mrs reproduce: stopped by SIGTERM; run the same command to continue.")
    assert b"Traceback" not in err
    assert all(gone(one) for one in trainers if one), "it has waited for them"

    process = start(sys.executable, "command.py")
    student = cells / "student-42"
    wait_for(lambda: process_of(student), process)
    trainer = process_of(student)
    process.kill()
    process.communicate()
    assert trainer is not None
    end = time.monotonic() + TOO_LONG
    while not gone(trainer):
        assert time.monotonic() < end, "the trainer goes on without the runner"
        time.sleep(0.05)

    process = start(sys.executable, "command.py")
    _, err = process.communicate(timeout=TOO_LONG)
    assert process.returncode == 0, err.decode()[-3000:]
    assert err.decode().count("finished before") == 2
    assert "student/42: interrupted, starts" in err.decode()
    calls = (tmp_path / "calls.txt").read_text().splitlines()
    resumed = [line for line in calls if line.endswith("--resume_from_checkpoint last")]
    assert (len(calls), len(resumed)) == (6, 3), "each was started once, and went on once"
    assert len(json.loads((tmp_path / "out" / "full" / "test.json").read_text())["runs"]) == 3
