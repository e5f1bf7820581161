"""Processes of a run: each in its own group, and ended with all that they started."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import psutil

GRACE = 20  # seconds that a process has to end after SIGTERM: writing a checkpoint of a large model takes some
SIGNALS = tuple(one for name in ("SIGINT", "SIGTERM", "SIGHUP") if (one := getattr(signal, name, None)) is not None)


class Stopped(KeyboardInterrupt):
    """A signal asks this process to stop; `code` is its exit code, as a shell gives it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number
        self.name = signal.Signals(number).name


class StopSignals:
    """Within the block, SIGINT, SIGTERM and SIGHUP raise `Stopped`; those that are ignored stay so.

    Outside the main thread, which alone may receive signals, nothing changes.
    """

    def __init__(self) -> None:
        self._before: dict[int, Any] = {}
        self._holding, self._heard = False, 0

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if not self._holding:
            raise Stopped(number)
        self._heard = number

    @contextmanager
    def held(self) -> Iterator[None]:
        """A signal waits for the end of the block: a process that has just been started must not be lost."""
        self._holding = True
        try:
            yield
        finally:
            self._holding = False
        if self._heard:
            number, self._heard = self._heard, 0
            raise Stopped(number)


def start(
    command: Sequence[str], log: Path, append: bool, environment: Mapping[str, str], kept: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start a command with its output in a log."""
    with log.open("a" if append else "w", encoding="utf-8") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT,
            env={**os.environ, **environment}, pass_fds=kept, start_new_session=True,
        )  # fmt: skip


def end_all(running: Iterable[subprocess.Popen[bytes]]) -> None:
    """Send SIGTERM to the processes and their descendants; kill those still running after `GRACE` seconds."""
    running = list(running)
    everyone: list[psutil.Process] = []
    for process in running:
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(process.pid)
            everyone += [first, *first.children(recursive=True)]
    try:
        for one in everyone:
            with suppress(psutil.NoSuchProcess):
                one.terminate()
        psutil.wait_procs(everyone, timeout=GRACE)
    finally:  # also when a second signal cuts the wait short
        for one in everyone:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        for process in running:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)  # what was started since
            process.wait()
