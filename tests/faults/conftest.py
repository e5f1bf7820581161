"""Processes that are killed, and what they leave."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A function that starts a command in a process group of its own; what is left of it ends with the test."""
    started: list[subprocess.Popen[bytes]] = []
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell has it in the background; commands inherit that
        signal.signal(signal.SIGINT, signal.default_int_handler)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"}

    def call(*command: object, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=cwd or tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield call
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def wait_for() -> Callable[..., None]:
    """A function that waits until a condition holds while a process still runs."""

    def call(condition: Callable[[], object], process: subprocess.Popen[bytes], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not condition():
            if process.poll() is not None:
                out, err = process.communicate()
                pytest.fail(f"the process ended too early ({process.returncode}): {out[-800:]!r} {err[-3000:]!r}")
            assert time.monotonic() < end, "the condition was never met"
            time.sleep(0.01)

    return call


@pytest.fixture(scope="session")
def bin_folder() -> Path:
    """Where the commands of the environment are."""
    return Path(sys.executable).parent
