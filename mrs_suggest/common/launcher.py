"""A training process ends with the command that launched it, however that command ends."""

import os
import platform
import signal
import threading
import time

LAUNCHER = "MRS_LAUNCHER"  # the environment variable that names the launching process
INTERVAL = 0.25  # seconds between two checks: short for a person, no load for a processor


def announce_launcher() -> None:
    """Make the processes that this one starts from now on end with it."""
    os.environ[LAUNCHER] = f"{os.getpid()}@{platform.node()}"


def end_with_launcher() -> None:
    """From now on, send SIGTERM to this process as soon as its launcher is gone, even if that is now.

    A killed launcher cannot send a signal, so the training process polls. Nothing happens if no launcher announced
    itself on this machine, or on a system that is not POSIX.
    """
    number, _, machine = os.environ.get(LAUNCHER, "").partition("@")
    if os.name != "posix" or not number.isdigit() or machine != platform.node():
        return
    from psutil import pid_exists

    launcher = int(number)
    is_child = os.getppid() == launcher  # else the parent is `mpirun`, say, or the launcher has ended

    def end() -> None:
        while os.getppid() == launcher if is_child else pid_exists(launcher):
            time.sleep(INTERVAL)
        os.kill(os.getpid(), signal.SIGTERM)

    if not is_child and not pid_exists(launcher):
        end()
    threading.Thread(target=end, name="end-with-launcher", daemon=True).start()
