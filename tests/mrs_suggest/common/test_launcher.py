"""A process ends with the one that launched it; small processes stand for both."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mrs_suggest.common.launcher import LAUNCHER

ROOT = Path(__file__).resolve().parents[3]
# The training says when it begins, and then works without an end; the pipe closes when it is gone.
TRAINING = (
    "import time; from mrs_suggest.common.launcher import end_with_launcher; end_with_launcher(); "
    "print('begun', flush=True); "
    "time.sleep(600)"
)
LAUNCH = (
    "import subprocess, sys; from mrs_suggest.common.launcher import announce_launcher; announce_launcher(); "
    f"process = subprocess.Popen([sys.executable, '-c', {TRAINING!r}]); process.wait()"
)
LONG = 60  # seconds: on a busy machine


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_training_ends_with_what_launched_it(ending: signal.Signals) -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCH], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        assert launcher.stdout is not None
        assert launcher.stdout.readline() == b"begun\n"
        launcher.send_signal(ending)
        launcher.communicate(timeout=LONG)  # returns when the training does not hold the pipe any more
    finally:
        with suppress(ProcessLookupError):
            os.killpg(launcher.pid, signal.SIGKILL)


def test_a_launcher_that_ended_before_the_training_began() -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    environment = {**os.environ, LAUNCHER: f"{dead.pid}@{os.uname().nodename}"}
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=ROOT, env=environment, timeout=LONG, check=False)
    assert done.returncode == -signal.SIGTERM


@pytest.mark.parametrize("value", ["", "x", f"{2**22 + 1}@elsewhere", "this process"])
def test_without_a_launcher_of_this_machine_that_ended_nothing_happens(value: str) -> None:
    value = value.replace("this process", f"{os.getpid()}@{os.uname().nodename}")
    code = TRAINING.replace("600", "1")
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env={**os.environ, LAUNCHER: value}, timeout=LONG, capture_output=True
    )
    assert (done.returncode, done.stdout) == (0, b"begun\n")
