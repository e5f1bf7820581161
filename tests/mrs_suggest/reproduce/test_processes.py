"""Processes end with all that they started, and signals wait while one is started."""

import signal
import sys
import time
from pathlib import Path

import psutil
import pytest

from mrs_suggest.reproduce import processes
from mrs_suggest.reproduce.processes import Stopped, StopSignals, end_all, start

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    open("child", "w").write(str(os.getpid()))
time.sleep(60)
"""


def test_what_ignores_the_signal_is_killed_with_its_children(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "GRACE", 0.1)
    monkeypatch.chdir(tmp_path)
    process = start([sys.executable, "-c", STUBBORN], tmp_path / "log.txt", False, {})
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    child = psutil.Process(int((tmp_path / "child").read_text()))
    end_all([process])
    assert process.poll() == -signal.SIGKILL
    psutil.wait_procs([child], timeout=20)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_a_signal_waits_for_the_end_of_the_block() -> None:
    passed = []
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as signals:
        with pytest.raises(Stopped) as stopped, signals.held():
            signal.raise_signal(signal.SIGTERM)
            passed.append(1)
        assert (passed, stopped.value.code, stopped.value.name) == ([1], 143, "SIGTERM")
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_signal_that_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with StopSignals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
