"""A scorer of texts on 127.0.0.1 by HTTP, which counts what it is asked, and fails where a test wants it to."""

import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

Ours = TypeVar("Ours")


def hashed(text: str) -> float:
    """A score that looks random and stays the same: one text in ten is above .9."""
    return zlib.crc32(text.encode()) / 2**32


@dataclass
class Failure:
    """What a request gets instead of scores.

    Attributes:
        body: of the answer; None: the connection is cut.
    """

    status: int = 200
    body: bytes | None = b""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ScoringServer:
    """What the server answers and was asked.

    Attributes:
        planned: failures of the next requests, in order; None: that one is answered.
        answered: how often each text was scored in an answer that was sent, by language.
        keys: the Authorization header of every request.
        key: the one that is accepted; empty: any.
    """

    url: str
    score: Callable[[str], float] = hashed
    version: str = "1"
    more: dict[str, Any] = field(default_factory=dict)
    planned: list[Failure | None] = field(default_factory=list)
    answered: Counter[tuple[str, str]] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    key: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        ours: ScoringServer = self.server.ours  # type: ignore[attr-defined]
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with ours.lock:
            ours.requests.append(asked)
            ours.keys.append(self.headers.get("Authorization"))
            failure = ours.planned.pop(0) if ours.planned else None
        if failure is None and ours.key and self.headers.get("Authorization") != f"Bearer {ours.key}":
            failure = Failure(401)
        if failure is not None:
            if failure.body is None:
                self.connection.close()
                return
            self._answer(failure.status, failure.body, failure.headers)
            return
        texts = asked.get("texts", ())
        with ours.lock:
            ours.answered.update((asked["language"], text) for text in texts)
        content = {"scores": [ours.score(text) for text in texts], "version": ours.version, **ours.more}
        self._answer(200, json.dumps(content).encode(), {})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that was killed, or a connection that was cut."""


@contextmanager
def running(handler: type[BaseHTTPRequestHandler], make: Callable[[str], Ours]) -> Iterator[Ours]:
    """A server on this machine; `make` gets its address, and what it returns is `server.ours` of the handler."""
    with _Server(("127.0.0.1", 0), handler) as http:
        ours = make(f"http://127.0.0.1:{http.server_address[1]}")
        http.ours = ours  # type: ignore[attr-defined]
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        try:
            yield ours
        finally:
            http.shutdown()


@contextmanager
def scoring_server(**options: Any) -> Iterator[ScoringServer]:
    """A running server."""
    with running(_Handler, lambda address: ScoringServer(f"{address}/score", **options)) as ours:
        yield ours
