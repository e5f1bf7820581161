"""The fault switch and the request log of the loopback hub."""

import re
import threading
from dataclasses import dataclass, field


class DroppedError(Exception):
    """The connection is to be cut now."""


@dataclass
class Entry:
    """One request as it came: never a header's value, never a body."""

    number: int
    method: str
    path: str
    authorized: bool  # an Authorization header came, right or wrong
    status: int = 0  # 0: no answer was begun
    fault: str = ""

    def __str__(self) -> str:
        return f"{self.number} {self.method} {self.path} -> {self.status}{f' [{self.fault}]' * bool(self.fault)}"


@dataclass
class Fault:
    """What happens to some requests; see `Faults.add`."""

    method: str
    pattern: str
    at: int
    times: int
    status: int | None = None
    retry_after: int | None = None
    drop_request: bool = False
    drop_response: int | None = None
    drop_body: int | None = None
    page: str | None = None
    stale: bool = False
    seen: int = 0
    fired: int = 0

    def __str__(self) -> str:
        kinds = ("status", "drop_request", "drop_response", "drop_body", "page", "stale")
        return " ".join(f"{kind}={getattr(self, kind)}" for kind in kinds if getattr(self, kind) not in (None, False))


@dataclass
class Faults:
    """The faults that are set; a request meets the first one that is due for it."""

    planned: list[Fault] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(
        self, method: str = ".*", path: str = ".*", *, at: int = 1, times: int = 1, status: int | None = None,
        retry_after: int | None = None, drop_request: bool = False, drop_response: int | None = None,
        drop_body: int | None = None, page: str | None = None, stale: bool = False,
    ) -> Fault:  # fmt: skip
        """Plan one fault for the requests number `at` .. `at + times - 1` among those that match from now on.

        `method` is a regular expression for the whole method, `path` one searched in path and query. Exactly one of:
        status: answer that instead (with a Retry-After header, if given; 412 says that the parent is stale);
        drop_request: cut the connection before the request's body is read, with nothing done;
        drop_response: do what was asked, then cut after n bytes of the answer, counted from its status line
        (0: the client learns nothing of what was done);
        drop_body: do what was asked, then cut after n bytes of the answer's body;
        page: answer 200 with this HTML instead, as a proxy or a login page does;
        stale: first let another writer's commit land in the repository that the request is about (on the branch of a
        commit, else on main), so that a commit that states the old parent is refused with 412.
        A cut at or after the end of what is sent cuts nothing.
        """
        fault = Fault(method, path, at, times, status, retry_after, drop_request, drop_response, drop_body, page, stale)
        with self.lock:
            self.planned.append(fault)
        return fault

    def clear(self) -> None:
        with self.lock:
            self.planned.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """Count a request; return the fault that it meets."""
        with self.lock:
            due = None
            for fault in self.planned:
                if re.fullmatch(fault.method, method) and re.search(fault.pattern, path):
                    fault.seen += 1
                    if due is None and fault.at <= fault.seen < fault.at + fault.times:
                        due = fault
                        fault.fired += 1
            return due
