"""A training in a process of its own ends with the command that launched it, whatever ended that command."""

from __future__ import annotations

import os
import platform
import signal
import threading
import time
from collections.abc import Callable

LAUNCHER = "MRS_LAUNCHER"  # the environment variable that tells a training what launched it
INTERVAL = 0.25  # seconds between two looks: short for a person, nothing for a processor


def announce_launcher() -> None:
    """Tell the processes that this one starts from now on that they are to end with it."""
    os.environ[LAUNCHER] = f"{os.getpid()}@{platform.node()}"


def end_with_launcher() -> None:
    """From now on, send SIGTERM to this process as soon as its launcher is gone; at once if it is gone already.

    A launcher that is killed can pass nothing on, so the training itself looks. Without a launcher that announced
    itself on this machine, or on a system that is not POSIX, nothing happens.
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
    """How to find out that the launcher has ended: a child gets another parent, even before a dead one is buried."""
    if os.getppid() == launcher:
        return lambda: os.getppid() != launcher
    return lambda: not _exists(launcher)  # something such as `mpirun` stands between, or it ended already


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
