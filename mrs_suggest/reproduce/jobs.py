"""How many runs at once: as many as were asked for, or as memory and cores allow."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil
import torch

from mrs_suggest.common.errors import InputError

AUTO = "auto"
THREADS = "OMP_NUM_THREADS"
MARGIN = 1.2  # ours: memory is measured a few times a second, and texts of another language may be longer
CGROUP = Path("/sys/fs/cgroup")  # of a container, in which the machine's own figures do not hold


@dataclass(frozen=True)
class Jobs:
    """How many runs at once.

    Attributes:
        number: at most.
        auto: only while memory allows, and a run of a kind whose memory is unknown alone.
    """

    number: int = 1
    auto: bool = False

    @classmethod
    def parse(cls, text: str) -> Jobs:
        """`--jobs` as a user writes it.

        Raises:
            InputError: it is neither `auto` nor a whole number from 1.
        """
        if text == AUTO:
            return cls(1 if torch.accelerator.is_available() else max(1, cores() // _threads()), True)
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise InputError(f"--jobs {text}: expected a whole number from 1, or {AUTO}.")
        return cls(int(text))

    def environment(self) -> dict[str, str]:
        """What a run's process is told of the threads that it may use: the user's own number, but no more in all than
        there are cores, since threads that wait for a core take several times as long.
        """
        shared = max(1, cores() // self.number)
        return {THREADS: str(shared)} if _threads() > shared else {}

    def allow(self, peak: int | None, running: Iterable[tuple[int | None, int]]) -> bool:
        """Whether one more run may start.

        Args:
            peak: bytes that it is expected to hold at most; None if unknown.
            running: the same of those that run, and what they hold now.
        """
        running = list(running)
        if not running:
            return True
        if len(running) >= self.number:
            return False
        if not self.auto:
            return True
        growing = 0
        for most, now in running:
            if most is None or peak is None:
                return False
            growing += max(0, most - now)
        return available_memory() >= MARGIN * ((peak or 0) + growing)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def available_memory() -> int:
    """Bytes that processes can still take without swapping, within the limit of a container."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = int((CGROUP / "memory.max").read_text())  # "max" where there is none
        used = int((CGROUP / "memory.current").read_text())
        figures = dict(line.split() for line in (CGROUP / "memory.stat").read_text().splitlines())
        return min(free, limit - used + int(figures["inactive_file"]))
    except (OSError, ValueError, KeyError):
        return free


def _threads() -> int:
    """Of a run: `mrs train` sets one where the user sets none."""
    given = os.environ.get(THREADS, "")
    return int(given) if given.isascii() and given.isdigit() and int(given) > 0 else 1
