"""Ctrl-C while processes are started."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def ignore_sigint_in_children() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to all: the build ends them, without tracebacks.

    The build itself handles Ctrl-C at the end of the block, since a half-started process would print errors. The mask
    alone is not enough, since another thread may receive the signal, and Python then interrupts the main one.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # else it is ignored, as for a shell's background jobs
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    resource_tracker.ensure_running()  # it clears the mask when it starts
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # pending signals are delivered now
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt
