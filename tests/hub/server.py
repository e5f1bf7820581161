"""A Hugging Face hub on 127.0.0.1, for tests: the real clients push to it and load from it, and meet planned faults."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import socket
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .faults import DroppedError, Entry, Fault, Faults
from .replies import Reply, Request, failure
from .routes import route
from .store import PREFIXES, HubError, Objects, Repository

CHUNK = 1 << 16
OFFLINE = ("TRANSFORMERS_OFFLINE", "DATASETS_OFFLINE", "HUGGING_FACE_HUB_TOKEN", "SENTENCE_TRANSFORMERS_HOME")


class LoopbackHub:
    """The server and what it holds. Use it as a context manager; every port, thread and connection ends with it.

    `repo(kind, id)` reads a repository, `create` makes one without a request, `faults.add(...)` plans a fault, `log`
    lists the requests, `reset()` forgets everything. `forbidden` holds namespaces that may not be written to (403).
    """

    def __init__(self, folder: Path) -> None:
        self.objects = Objects(folder / "objects")
        self.token = f"hf_loopback{secrets.token_hex(12)}"
        self.user, self.organizations = "loopback", ["org"]
        self.lock = threading.RLock()
        self.faults = Faults()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.hub = self
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.reset()

    def reset(self) -> None:
        """Forget repositories, contents, faults, log and settings; the address and the token stay."""
        with self.lock:
            self.objects.clear()
            self.repositories: dict[tuple[str, str], Repository] = {}
            self.expected: dict[str, Repository] = {}  # the LFS objects for which an upload link is out
            self.forbidden: set[str] = set()
            self.log: list[Entry] = []
            self.bugs: list[str] = []  # tracebacks of the hub itself: a test fails when there are any
            self.faults.clear()

    def __enter__(self) -> LoopbackHub:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._server.cut_all()
        self._thread.join(timeout=5)

    def create(self, kind: str, name: str, *, private: bool = False) -> Repository:
        with self.lock:
            self.repositories[kind, name] = Repository(kind, name, self.objects, private)
            return self.repositories[kind, name]

    def repo(self, kind: str, name: str) -> Repository:
        """Return a repository: look at `files(revision)`, `text(path, revision)`, `commits()`. KeyError if absent."""
        return self.repositories[kind, name]

    def requests(self, method: str = ".*", path: str = ".*") -> list[Entry]:
        """Return the log's requests whose method is, and whose path contains, a match of these patterns."""
        return [e for e in list(self.log) if re.fullmatch(method, e.method) and re.search(path, e.path)]

    def env(self, home: Path, *, token: bool = True) -> dict[str, str]:
        """Return the environment of a fresh client process: this hub, caches below `home`, nothing offline."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("HF_") and name not in OFFLINE and not name.lower().endswith("_proxy")
        }
        ours = {
            "HF_ENDPOINT": self.url, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false", "NO_PROXY": "*",
        }  # fmt: skip
        return {**kept, **ours, **({"HF_TOKEN": self.token} if token else {})}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    hub: LoopbackHub

    def __init__(self, *arguments: Any) -> None:
        self.open: set[socket.socket] = set()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.open.discard(request)
        super().shutdown_request(request)

    def cut_all(self) -> None:
        for connection in list(self.open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is not our error; ours are in `hub.bugs`."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60  # seconds of silence on a connection
    server: _Server

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing: `hub.log` has it."""

    def _serve(self) -> None:
        hub = self.server.hub
        given = self.headers.get("Authorization")
        entry = Entry(0, self.command, self.path, given is not None)
        with hub.lock:
            hub.log.append(entry)
            entry.number = len(hub.log)
            fault = hub.faults.take(self.command, self.path)
        entry.fault = str(fault or "")
        try:
            self._answer(hub, entry, fault, given)
        except (DroppedError, OSError):
            self.close_connection = True
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = _serve  # noqa: N815

    def _answer(self, hub: LoopbackHub, entry: Entry, fault: Fault | None, given: str | None) -> None:
        try:
            if fault is not None and fault.drop_request:
                raise DroppedError
            body = self._body()
            if fault is not None and fault.status is not None:
                raise planned_error(fault)
            if fault is not None and fault.page is not None:
                self._send(Reply(fault.page.encode(), 200, {"Content-Type": "text/html"}), entry, None)
                return
            if given is not None and given != f"Bearer {hub.token}":
                raise HubError(401, "Invalid credentials in Authorization header")
            parts = urlsplit(self.path)
            kind, wanted = self.headers.get("Content-Type", ""), self.headers.get("Range", "")
            query = parse_qs(parts.query, keep_blank_values=True)
            request = Request(self.command, parts.path, query, body, given is not None, kind, wanted)
            with hub.lock:
                if fault is not None and fault.stale:
                    foreign_commit(hub, parts.path)
                reply = route(hub, request)
        except HubError as error:
            reply = failure(error)
        except (DroppedError, OSError):
            raise
        except Exception:
            hub.bugs.append(f"{entry}\n{traceback.format_exc()}")
            reply = failure(HubError(500, "The loopback hub has a bug, see hub.bugs"))
        self._send(reply, entry, fault)

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self._exactly(int(self.headers.get("Content-Length") or "0"))
        found = bytearray()
        while size := int(self.rfile.readline(100).split(b";")[0], 16):
            found += self._exactly(size)
            self.rfile.readline(100)
        while self.rfile.readline(1000).strip():
            pass
        return bytes(found)

    def _exactly(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise DroppedError  # the client went away: nothing is done of what it half said
        return data

    def _send(self, reply: Reply, entry: Entry, fault: Fault | None) -> None:
        entry.status = reply.status
        length = reply.length if reply.file else len(reply.body)
        out = _Limited(self.wfile, fault.drop_response if fault else None)
        if out.left == 0:
            entry.status = 0
            raise DroppedError
        self.wfile = out  # type: ignore[assignment]
        try:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value.encode("latin-1", "replace").decode("latin-1"))
            self.send_header("X-Request-Id", f"loopback-{entry.number}")
            self.send_header("Content-Length", str(length))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault is not None and fault.drop_body is not None:
                out.left = fault.drop_body
            if reply.file is None:
                out.write(reply.body)
                return
            with reply.file.open("rb") as file:
                file.seek(reply.start)
                while length and (data := file.read(min(CHUNK, length))):
                    out.write(data)
                    length -= len(data)
        finally:
            self.wfile = out.stream


class _Limited:
    """A stream that breaks after so many bytes."""

    def __init__(self, stream: Any, left: int | None) -> None:
        self.stream, self.left = stream, left

    def write(self, data: bytes) -> int:
        if self.left is None:
            self.stream.write(data)
            return len(data)
        self.stream.write(data[: self.left])
        if len(data) > self.left:
            raise DroppedError
        self.left -= len(data)
        return len(data)

    def flush(self) -> None:
        self.stream.flush()


def planned_error(fault: Fault) -> HubError:
    messages = {
        412: "A commit has happened since. Please refresh and try again.",
        429: "You have reached a rate limit. Please slow down.",
        500: "Internal Error - We're working hard to fix this as soon as possible!",
    }
    status = fault.status or 500
    headers = {} if fault.retry_after is None else {"Retry-After": str(fault.retry_after)}
    return HubError(status, messages.get(status, f"A planned fault: {status}"), "", headers)


def foreign_commit(hub: LoopbackHub, path: str) -> None:
    """Let another writer's commit land on the branch that a request is about (main, where it names none)."""
    path, oid = unquote(path), path.rsplit("/", 1)[-1]
    for repository in list(hub.repositories.values()):
        api, git = f"/api/{repository.kind}s/{repository.id}", f"/{PREFIXES[repository.kind]}{repository.id}.git/"
        if path == api or path.startswith((f"{api}/", git)) or hub.expected.get(oid) is repository:
            branch = path.partition(f"{api}/commit/")[2] or "main"
            repository.write("FOREIGN.txt", f"another writer was here, {len(repository.history)}\n", branch=branch)
