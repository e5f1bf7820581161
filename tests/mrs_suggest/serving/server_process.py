"""A real server in a process of its own, on a free port."""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

STARTS_WITHIN = 300.0  # seconds, on a busy machine


class Threads:
    """Functions in threads of their own, each until `_over` is set at the end of the `with` block."""

    def __init__(self, functions: Sequence[Callable[[], None]]) -> None:
        self._over, self._threads = threading.Event(), [threading.Thread(target=one) for one in functions]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *details: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


class ServerProcess:
    """`mrs serve` with the embedded model; use it as a context manager.

    Attributes:
        url: where it listens.
        log: its log lines so far, as they were written.
    """

    def __init__(self, *arguments: object, folder: Path, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "mrs_suggest.cli.main", "serve", "--port", "0", *map(str, arguments)]
        # One thread: the answers of a run do not depend on what else the machine does.
        known = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            env={**os.environ, **known, **(environment or {})},
        )  # fmt: skip
        self.log: list[str] = []
        self._events: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.url = str(self.wait_for("listening")["url"])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if line.startswith("{"):
                self._events.put(json.loads(line))
        self._events.put({"event": "end"})

    def wait_for(self, event: str, seconds: float = STARTS_WITHIN) -> dict[str, Any]:
        """The next log line of an event; those before are skipped."""
        deadline = time.monotonic() + seconds
        while True:
            line = self._events.get(timeout=max(0.01, deadline - time.monotonic()))
            if line["event"] == event:
                return line
            assert line["event"] != "end", f"the server has ended: {''.join(self.log)}"

    def wait_for_workers(self, count: int = 1) -> list[int]:
        """The processes of so many workers, once they have loaded the model and the port answers."""
        found = [self.wait_for("loaded")["process"] for _ in range(count)]
        deadline = time.monotonic() + STARTS_WITHIN
        while True:  # a worker opens the port a moment after that
            try:
                self.connect(5).close()
                return found
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "the port stays closed"
                time.sleep(0.02)

    def connect(self, timeout: float = 60) -> socket.socket:
        address = urlsplit(self.url)
        return socket.create_connection((str(address.hostname), address.port or 0), timeout)

    def figure(self, start: str) -> float:
        """The sum of the samples on the page of metrics that start so; 0 without one."""
        page = httpx.get(f"{self.url}/metrics", timeout=60).text
        return sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(start))

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self) -> int:
        """The exit code after SIGTERM."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *details: object) -> None:
        self.stop()
