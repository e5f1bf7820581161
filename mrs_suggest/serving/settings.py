"""Settings of the server: its models, its limits, and the keys of its callers."""

import hashlib
import hmac
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import PASSED_ON

API_KEYS, ADMIN_KEYS = "MRS_API_KEYS", "MRS_ADMIN_KEYS"  # environment variables
SHORTEST_KEY = 16  # characters; ours: 64 bits if they are hexadecimal
SHADOW = "shadow"
LEAST_BODY = 1 << 20  # bytes that any request may have


@dataclass(frozen=True)
class Settings:
    """The options of `mrs serve`; the defaults are ours, for a machine of two cores and chat messages.

    Attributes:
        models: each a folder, a baseline, `ORG/NAME`, `ORG/NAME@REVISION`, `openai:URL#MODEL` or `openai:FILE.yaml`,
            and `NAME=` before it for another name in answers.
        traffic: `NAME=WEIGHT` of the models among which sessions are divided, and `NAME=shadow` of those that are asked
            the same, but not shown; default: all go to the first model.
        feedback: where answers and clicks are kept, an SQLite file or a PostgreSQL URL (`mrs_suggest.serving.clicks`);
            None: nothing is.
        feedback_texts: keep the texts that people sent, too, where clients report them.
        verify: compare the SHA-256 of large files, too.
        guard, precision, fallback, fallback_share: as for `mrs_suggest.suggest.suggester.Suggester.from_pretrained`.
        port: 0 picks a free one.
        workers: processes that share the port, each with the model.
        threads: of the arithmetic in each worker. If other processes are busy, several threads are far slower than one,
            since each product waits for its slowest thread.
        max_batch: messages that the model answers at a time.
        max_waiting: messages that may wait for the model; more get 429. At 4 ms each, 256 messages wait one second.
        max_messages: of a request.
        max_characters: of a message; encoders read about 2,000 (512 tokens).
        max_connections: of a worker; more get 503. Each takes a file descriptor, of which processes often have 1,024.
        requests_per_minute: of a key whose line in `api_keys` has no number, or of all callers without keys; more get
            429; 0: no limit. Each worker allows its share.
        answer_seconds: a request whose answer takes longer gets 503. A stopping server waits three times as long for
            the requests that it has accepted.
        read_seconds: a client that takes longer to send its request gets 408; one that takes longer to read its answer
            is disconnected.
        cors: origins whose pages may call the server; `*` allows all.
        api_keys, admin_keys: files with a key per line; the variables `MRS_API_KEYS` and `MRS_ADMIN_KEYS` add to them.
    """

    models: tuple[str, ...]
    traffic: tuple[str, ...] = ()
    feedback: str | None = None
    feedback_texts: bool = False
    verify: bool = False
    guard: bool | Path = True
    precision: float | None = None
    fallback: str | None = None
    fallback_share: float = PASSED_ON
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int = 1
    max_batch: int = 32
    max_waiting: int = 256
    max_messages: int = 32
    max_characters: int = 5000
    max_connections: int = 512
    requests_per_minute: float = 0
    answer_seconds: float = 10
    read_seconds: float = 10
    cors: tuple[str, ...] = ()
    api_keys: Path | None = None
    admin_keys: Path | None = None

    def __post_init__(self) -> None:
        counts = ("workers", "threads", "max_batch", "max_waiting", "max_messages", "max_characters", "max_connections")
        for field in (*counts, "answer_seconds", "read_seconds"):
            value, least = getattr(self, field), field in counts
            if not value > 0:
                expected = "1 or more" if least else "more than 0"
                raise InputError(f"--{field.replace('_', '-')} {value}: expected {expected}.")
        if not 0 <= self.requests_per_minute < math.inf:
            raise InputError(f"--requests-per-minute {self.requests_per_minute:g}: expected 0 (no limit) or more.")
        if not 0 <= self.port < 1 << 16:
            raise InputError(f"--port {self.port}: expected 0 (a free one) to 65535.")
        if self.max_messages > self.max_waiting:
            raise InputError(
                f"--max-messages {self.max_messages}: must not exceed --max-waiting {self.max_waiting}, since all "
                "messages of a request wait together."
            )
        if len(self.named) < len(self.models):
            raise InputError("--model: two models have one name; pass NAME=MODEL with different names.")
        if self.feedback_texts and not self.feedback:
            raise InputError("--feedback-texts: pass --feedback PLACE, too, where they are kept.")
        _ = self.shares  # refuses what it cannot read

    @cached_property
    def named(self) -> dict[str, str]:
        """The name of each model in answers, and its location."""
        matches = [re.fullmatch(r"(?:([\w.-]+)=)?(.+)", model, re.DOTALL) for model in self.models]
        return {match[1] or match[2]: match[2] for match in matches if match}

    @cached_property
    def shares(self) -> dict[str, float]:
        """The share of the sessions that each model answers, 0 to 1, if a request names none."""
        weights = dict.fromkeys(self.named, 0.0) | ({} if self.traffic else {next(iter(self.named)): 1.0})
        for text in self.traffic:
            name, _, weight = text.rpartition("=")
            if name not in weights or not re.fullmatch(rf"\d{{1,6}}(\.\d{{1,6}})?|{SHADOW}", weight):
                known = " ".join(weights)
                raise InputError(f"--traffic {text}: expected NAME=WEIGHT or NAME={SHADOW}, with one of {known}.")
            weights[name] = 0.0 if weight == SHADOW else float(weight)
        if not (total := sum(weights.values())):
            raise InputError("--traffic: no model has a weight above 0; pass NAME=WEIGHT for one of them.")
        return {name: weight / total for name, weight in weights.items()}

    @cached_property
    def shadows(self) -> tuple[str, ...]:
        """The models that are asked what others answer."""
        return tuple(text.rpartition("=")[0] for text in self.traffic if text.endswith(f"={SHADOW}"))

    @property
    def max_body(self) -> int:
        """Bytes of a request at most."""
        return max(LEAST_BODY, 6 * self.max_messages * self.max_characters)


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """The number of cores that this process may use, by its affinity and its quotas (rounded down), at least 1.

    Args:
        cgroup: the folder of control groups; quotas are in `cpu.max` (version 2) or `cpu.cfs_quota_us` (version 1).
        own: the file that lists the groups of this process; quotas of the groups above them count, too.
    """
    cores = len(os.sched_getaffinity(0))
    lines = own.read_text(encoding="utf-8").splitlines() if own.is_file() else []  # a kernel may have no groups
    groups = {line.rpartition(":")[2].strip("/") for line in lines}
    folders = {folder / group for group in ("", *groups) for folder in (cgroup, cgroup / "cpu")}
    for folder in folders.union(*(folder.parents for folder in folders)):
        for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
            try:
                quota, period = " ".join((folder / name).read_text(encoding="ascii") for name in files).split()
                if int(quota) > 0:
                    cores = min(cores, int(quota) // int(period))
            except (OSError, ValueError, ZeroDivisionError):  # no such file, or "max": no quota
                continue
    return max(1, cores)


class Keys:
    """Secret keys, of which only digests are kept, and the requests a minute of those with a limit of their own.

    Example:
        >>> Keys({"0123456789abcdef": None}).hold("0123456789abcdef"), Keys({}).hold("")
        (True, False)
    """

    def __init__(self, keys: Mapping[str, float | None]) -> None:
        self._limits = {_digest(key): limit for key, limit in keys.items()}

    def __bool__(self) -> bool:
        return bool(self._limits)

    def hold(self, key: str) -> bool:
        """Whether the key is one of them, in constant time."""
        digest, found = _digest(key), False
        for known in self._limits:
            found |= hmac.compare_digest(known, digest)
        return found

    def limit(self, key: str) -> float | None:
        """The requests a minute that the line of a key allows; None if it does not say, or the key is not known."""
        return self._limits.get(_digest(key))

    @classmethod
    def read(cls, path: Path | None, variable: str, environment: Mapping[str, str] = os.environ) -> Self:
        """The keys of a file, one per line (`#` begins a comment), and of a variable, separated by white space.

        A line may have a number after its key: the requests a minute of this key, 0 for no limit.

        Raises:
            InputError: a key is too short or not printable ASCII, a limit is not a number, or the file is empty.
        """
        rows = [([key], variable) for key in environment.get(variable, "").split()]
        if path is not None:
            try:
                lines = path.read_text(encoding="utf-8").splitlines()
            except UnicodeDecodeError:
                raise InputError(f"{path}: not UTF-8; expected a key per line.") from None
            own = [(line.split(), f"{path}, line {n}") for n, line in enumerate(lines, 1)]
            own = [(words, place) for words, place in own if words and not words[0].startswith("#")]
            if not own:
                raise InputError(f"{path}: no key in it; expected one per line.")
            rows += own
        keys: dict[str, float | None] = {}
        for (key, *limit), place in rows:  # the key itself stays out of the sentence
            if len(key) < SHORTEST_KEY or not (key.isascii() and key.isprintable()):
                raise InputError(
                    f"{place}: expected a key of {SHORTEST_KEY} or more ASCII characters without spaces; make one with "
                    "`openssl rand -hex 32`."
                )
            if len(limit) > 1 or not all(re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text) for text in limit):
                raise InputError(f"{place}: expected only a number of requests a minute after the key, such as 600.")
            keys[key] = float(limit[0]) if limit else None
        return cls(keys)


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
