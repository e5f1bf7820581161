"""What a server is told: its model, its limits, who may call it."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import SUGGESTIONS

API_KEYS, ADMIN_KEYS = "MRS_API_KEYS", "MRS_ADMIN_KEYS"  # environment variables
SHORTEST_KEY = 16  # characters; ours: 64 bits where they are hexadecimal


@dataclass(frozen=True)
class Settings:
    """All that `mrs serve` can be told; the defaults are ours, for a machine of two cores and messages of a chat.

    Attributes:
        model: a folder, a baseline, `ORG/NAME`, or `ORG/NAME@REVISION`.
        name: of the model in answers; None: as `model`.
        verify: compare the SHA-256 of large files, too.
        guard, precision: when it keeps silent, see `mrs_suggest.suggest.suggester.Suggester`.
        port: 0 takes a free one.
        workers: processes that share the port, each with the model.
        threads: of the arithmetic in each worker. If other processes are busy, several are far slower than one, since
            each product waits for its slowest thread.
        max_batch: messages that the model answers at a time.
        max_batch_ms: a batch grows no further if it should take longer than this, or than twice its fixed cost.
        max_waiting: messages that may wait for the model; more get 429. It bounds the wait: 256 at 4 ms are a second.
        max_body: bytes of a request.
        max_messages: of a request.
        max_characters: of a message; encoders read no more than some 2,000 (512 tokens).
        max_suggestions: the most that a request may ask for.
        answer_seconds: a request whose answer takes longer gets 503.
        max_connections: of a worker; more get 503. Each costs a file descriptor, of which processes often have 1,024.
        read_seconds: a client that takes longer to send its request gets 408, also for its head alone; one that takes
            longer to read its answer is cut off.
        idle_seconds: how long an unused connection stays open; longer than a balancer's own limit, mostly 60.
        stop_seconds: how long a stopping server waits for the requests that it took.
        cors: origins whose pages may call; none by default, `*` allows all.
        api_keys, admin_keys: files with a key per line; the variables `MRS_API_KEYS` and `MRS_ADMIN_KEYS` add to them.
    """

    model: str
    revision: str | None = None
    name: str | None = None
    verify: bool = False
    guard: bool | Path = True
    precision: float | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int | None = None  # one
    max_batch: int = 32
    max_batch_ms: float = 50
    max_waiting: int = 256
    max_body: int = 1 << 20
    max_messages: int = 32
    max_characters: int = 5000
    max_suggestions: int = 20
    max_connections: int = 512
    answer_seconds: float = 10
    read_seconds: float = 10
    idle_seconds: int = 75
    stop_seconds: int = 30
    cors: tuple[str, ...] = ()
    api_keys: Path | None = None
    admin_keys: Path | None = None

    def __post_init__(self) -> None:
        positive = ("workers", "max_batch", "max_waiting", "max_body", "max_messages", "max_characters")
        for field in (*positive, "max_connections"):
            _at_least(field, getattr(self, field), 1)
        _at_least("max_suggestions", self.max_suggestions, SUGGESTIONS)
        _at_least("threads", 1 if self.threads is None else self.threads, 1)
        for field in ("max_batch_ms", "answer_seconds", "read_seconds", "idle_seconds", "stop_seconds"):
            if not getattr(self, field) > 0:
                raise InputError(f"{_option(field)} {getattr(self, field)}: expected more than 0.")
        if not 0 <= self.port < 1 << 16:
            raise InputError(f"--port {self.port}: expected 0 (a free one) to 65535.")
        if self.max_messages > self.max_waiting:
            raise InputError(
                f"--max-messages {self.max_messages}: a request must fit into --max-waiting {self.max_waiting}; "
                "lower the one or raise the other."
            )

    @property
    def shown_name(self) -> str:
        """The model's name in answers."""
        return self.name or self.model

    @property
    def own_threads(self) -> int:
        """Threads of the arithmetic in each worker: one, unless told otherwise."""
        return self.threads or 1


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup")) -> int:
    """The cores that this process may use: those of its affinity, at most its quota (rounded down), and at least 1.

    Args:
        cgroup: where the kernel shows the quota, as `cpu.max` (version 2) or `cpu/cpu.cfs_quota_us` (version 1).
    """
    cores = len(os.sched_getaffinity(0))
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            quota, period = " ".join((cgroup / name).read_text(encoding="ascii") for name in files).split()
            if int(quota) > 0:
                cores = min(cores, int(quota) // int(period))
        except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max": no quota
            continue
    return max(1, cores)


def _at_least(field: str, value: int, least: int) -> None:
    if value < least:
        raise InputError(f"{_option(field)} {value}: expected {least} or more.")


def _option(field: str) -> str:
    return f"--{field.replace('_', '-')}"


class Keys:
    """Secret keys, of which only digests are kept.

    Example:
        >>> Keys(["0123456789abcdef"]).hold("0123456789abcdef"), Keys([]).hold("")
        (True, False)
    """

    def __init__(self, keys: Iterable[str]) -> None:
        self._digests = [_digest(key) for key in keys]

    def __bool__(self) -> bool:
        return bool(self._digests)

    def hold(self, key: str) -> bool:
        """Whether the key is one of them, in a time that depends neither on which nor on how much of it is right."""
        digest, found = _digest(key), False
        for known in self._digests:
            found |= hmac.compare_digest(known, digest)
        return found

    @classmethod
    def read(cls, path: Path | None, variable: str, environment: Mapping[str, str] = os.environ) -> Keys:
        """The keys of a file, one a line (`#` begins a comment), and of a variable, separated by white space.

        Raises:
            InputError: a key is too short, or not of printable ASCII, or the file holds none.
        """
        keys = [(key, variable) for key in environment.get(variable, "").split()]
        if path is not None:
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                raise InputError(f"{path}: not UTF-8; expected a key per line.") from None
            own = [(line.strip(), f"{path}, line {n}") for n, line in enumerate(lines, 1)]
            own = [(key, place) for key, place in own if key and not key.startswith("#")]
            if not own:
                raise InputError(f"{path}: no key in it; expected one per line.")
            keys += own
        for key, place in keys:  # the key itself stays out of the sentence
            if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()) or " " in key:
                raise InputError(
                    f"{place}: expected a key of {SHORTEST_KEY} or more ASCII characters without spaces; make one with "
                    "`openssl rand -hex 32`."
                )
        return cls(key for key, _ in keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
