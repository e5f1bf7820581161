"""A training process ends with the command that launched it, however that command ends."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Callable

LAUNCHER = "MRS_LAUNCHER"  # the environment variable that names the launching process
INTERVAL = 0.25  # seconds between two checks: short for a person, no load for a processor


def announce_launcher() -> None:
    """Make the processes that this one starts from now on end with it."""
    os.environ[LAUNCHER] = f"{os.getpid()}@{platform.node()}"


def end_with_launcher() -> None:
    """From now on, send SIGTERM to this process as soon as its launcher is gone; at once if it is gone already.

    A killed launcher cannot send a signal, so the training process polls. Nothing happens if no launcher announced
    itself on this machine, or on a system that is not POSIX.
    """
    number, _, machine = os.environ.get(LAUNCHER, "").partition("@")
    if os.name != "posix" or not number.isdigit() or machine != platform.node():
        return
    gone = _is_gone(int(number))
    if gone():
        _end()
        return
    threading.Thread(target=_watch, args=(gone,), name="end-with-launcher", daemon=True).start()


def _is_gone(launcher: int) -> Callable[[], bool]:
    """A function that tells whether the launcher has ended: a child gets another parent even before that is reaped."""
    if os.getppid() == launcher:
        return lambda: os.getppid() != launcher
    return lambda: not _exists(launcher)  # the parent is not the launcher but `mpirun`, say, or it has ended


def _exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _watch(gone: Callable[[], bool]) -> None:
    while not gone():
        time.sleep(INTERVAL)
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
