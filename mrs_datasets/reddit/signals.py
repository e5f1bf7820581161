"""Ctrl-C while processes are begun."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def ignore_sigint_in_children() -> Iterator[None]:
    """Processes begun here do not hear Ctrl-C, which a terminal sends to all: the build ends them, without a trace.

    It hears Ctrl-C itself at the end of the block: a process that is half begun would complain. The mask alone does not
    see to that, since any other thread may take the signal, and Python then interrupts the first.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # else it is ignored, as in the background of a shell
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    resource_tracker.ensure_running()  # which lifts the mask when it begins
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # what the mask held back is heard now
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt
