"""A server that is stopped or killed at every stage of its requests, and one among hostile clients on a busy machine.

What the server has taken gets its answer, or its client sees an error; SIGTERM resets no connection.
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

pytest.importorskip("fastapi")

from mrs_suggest.suggest.suggester import Suggester
from tests.faults.test_serving_load import MESSAGES, SECONDS, Load, memory
from tests.mrs_suggest.serving.server_process import ServerProcess, Threads

pytestmark = pytest.mark.faults
MANY = 60  # messages of a request, so that it takes a while
BODY = json.dumps({"messages": ["See you tomorrow?"] * MANY, "language": "en"}).encode()
HEAD = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(
    BODY
)
STAGES = ("loading", "connected", "head", "body", "queued", "unread", "idle")
OPTIONS = ("--max-messages", MANY, "--max-waiting", 900, "--max-batch", 1, "--answer-seconds", 120)
ANSWERED, NOTHING, RESET, CUT = "answered", "nothing", "reset", "cut"


def connect(server: ServerProcess) -> socket.socket:
    address = urlsplit(server.url)
    return socket.create_connection((str(address.hostname), address.port or 0), timeout=120)


def received(connection: socket.socket, kept: list[bytes] | None = None) -> str:
    """What came over a connection until it closed: a whole answer (added to `kept`), nothing, or a part of one."""
    data = b""
    try:
        while chunk := connection.recv(1 << 16):
            data += chunk
            if is_whole(data):
                if kept is not None:
                    kept.append(data)
                break
    except ConnectionResetError:
        return RESET
    return NOTHING if not data else ANSWERED if is_whole(data) else CUT


def is_whole(data: bytes) -> bool:
    head, separator, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
    return bool(separator) and len(body) == int(lengths[0].split()[1])


def brought_to(stage: str, server: ServerProcess) -> socket.socket:
    """A connection at a stage of its request."""
    connection = connect(server)
    if stage == "head":
        connection.sendall(HEAD[:40])
    elif stage == "body":
        connection.sendall(HEAD + BODY[:40])
    elif stage in ("queued", "unread"):
        connection.sendall(HEAD + BODY)
    elif stage == "idle":
        connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n")
        assert received(connection) == ANSWERED
    return connection


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stage", STAGES)
def test_sigterm_at_every_stage_answers_what_was_taken_and_resets_nothing(
    tmp_path: Path, stage: str, workers: int
) -> None:
    server = ServerProcess("--workers", workers, *OPTIONS, folder=tmp_path)
    if stage == "loading":
        server.signal(signal.SIGTERM)
        assert server.process.wait(120) == 0
        return
    server.wait_for_workers(workers)
    with ExitStack() as stack:
        connections = [stack.enter_context(brought_to(stage, server)) for _ in range(6)]
        if stage == "unread":
            while received_somewhere(connections) == 0:
                time.sleep(0.01)
        server.signal(signal.SIGTERM)
        if stage == "body":
            for connection in connections:
                connection.sendall(BODY[40:])
        outcomes = Counter(received(connection) for connection in connections)
    expected = ANSWERED if stage in ("body", "queued", "unread") else NOTHING
    assert outcomes == {expected: 6}, "".join(server.log)[-2000:]
    assert server.process.wait(120) == 0
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def received_somewhere(connections: list[socket.socket]) -> int:
    """How many connections have an answer that is not read yet."""
    found = 0
    for connection in connections:
        connection.setblocking(False)
        with suppress(BlockingIOError):
            found += len(connection.recv(1, socket.MSG_PEEK))
        connection.settimeout(120)
    return found


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("stage", STAGES)
def test_sigkill_at_every_stage_ends_in_an_error_and_another_worker_answers(
    tmp_path: Path, stage: str, workers: int
) -> None:
    """Of the only process, or of a worker: clients see a closed connection, never a part of an answer as the whole."""
    server = ServerProcess("--workers", workers, *OPTIONS, folder=tmp_path)
    if stage == "loading":
        os.kill(server.process.pid, signal.SIGKILL)
        assert server.process.wait(120) == -signal.SIGKILL
        deadline = time.monotonic() + 60
        while True:  # workers leave when their supervisor is gone
            try:
                connect(server).close()
            except OSError:
                return
            assert time.monotonic() < deadline, "the port stays open"
            time.sleep(0.1)
    victim, *_ = server.wait_for_workers(workers)
    with ExitStack() as stack:
        connections = [stack.enter_context(brought_to(stage, server)) for _ in range(6)]
        os.kill(victim, signal.SIGKILL)
        if workers == 2 and stage == "body":
            for connection in connections:
                try:
                    connection.sendall(BODY[40:])
                except OSError:  # that of the worker that was killed
                    continue
        if workers == 2 and stage in ("connected", "head", "idle"):
            server.signal(signal.SIGTERM)  # closes those of the other worker
        outcomes = Counter(received(connection) for connection in connections)
        if workers == 1:
            assert server.process.wait(120) == -signal.SIGKILL
            assert set(outcomes) <= {NOTHING, RESET, CUT}
            return
        if stage in ("body", "queued", "unread"):
            assert set(outcomes) <= {ANSWERED, NOTHING, RESET, CUT}  # the other worker answers its share
            server.wait_for("a worker has ended, and is started again")
            server.wait_for("loaded")
            with connect(server) as again:
                again.sendall(HEAD + BODY)
                assert received(again) == ANSWERED
    assert server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_among_busy_clients_resets_no_connection(tmp_path: Path, workers: int) -> None:
    """Each client keeps its connection, or opens one for each request, and asks without a pause."""
    seen, over = Counter[str](), threading.Event()
    body = json.dumps({"messages": ["See you tomorrow?"], "language": "en"}).encode()
    head = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % len(body)

    def ask(keep: bool) -> None:
        connection: socket.socket | None = None
        while not over.is_set():
            try:
                connection = connection or connect(server)
            except ConnectionRefusedError:
                seen["refused"] += 1
                return
            try:
                connection.sendall(head + body)
                outcome = received(connection, answers := list[bytes]())
            except (BrokenPipeError, ConnectionResetError):
                outcome = RESET
            seen[outcome] += 1
            if not keep or outcome != ANSWERED or b"\r\nconnection: close\r\n" in answers[0].lower():
                connection.close()
                connection = None

    with ServerProcess("--workers", workers, folder=tmp_path) as server:
        server.wait_for_workers(workers)
        threads = [threading.Thread(target=ask, args=(number % 2 == 0,)) for number in range(16)]
        for thread in threads:
            thread.start()
        while seen[ANSWERED] < 100:
            time.sleep(0.01)
        server.signal(signal.SIGTERM)
        for thread in threads:
            thread.join(120)
        over.set()
        assert server.process.wait(120) == 0
    print(dict(seen))
    assert set(seen) == {ANSWERED, "refused"}
    assert seen["refused"] == 16


@contextmanager
def busy_cores() -> Iterator[None]:
    """A busy process for each core."""
    command = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class Hostile(Threads):
    """Clients that leave, flood the head, or never read, until it ends; `closed` counts floods that were cut off."""

    def __init__(self, server: ServerProcess) -> None:
        self._server, self.closed = server, 0
        super().__init__([self._leave, self._flood, self._never_read])

    def _leave(self) -> None:
        while not self._over.is_set():
            with connect(self._server) as connection:
                connection.sendall(HEAD + BODY)
            time.sleep(0.05)

    def _flood(self) -> None:
        while not self._over.is_set():
            with connect(self._server) as connection:
                try:
                    connection.sendall(b"GET / HTTP/1.1\r\n")
                    for _ in range(1000):
                        connection.sendall(b"x: " + b"y" * 8000 + b"\r\n")
                except OSError:
                    pass
                self.closed += 1
            time.sleep(0.05)

    def _never_read(self) -> None:
        held: list[socket.socket] = []
        while not self._over.is_set():
            held.append(connect(self._server))
            with suppress(OSError):
                held[-1].sendall((HEAD + BODY) * 4)
            if len(held) > 20:
                held.pop(0).close()
            time.sleep(0.2)
        for connection in held:
            connection.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_others_get_their_answers_on_a_busy_machine_among_hostile_clients(tmp_path: Path, workers: int) -> None:
    suggester = Suggester.from_pretrained("everyday-retriever")
    expected = {
        (language, text): [suggestion.reply for suggestion in suggester.suggest([text], language)[0]]
        for language, texts in MESSAGES.items()
        for text in texts
    }
    options = ("--workers", workers, "--max-messages", MANY, "--read-seconds", 2, "--answer-seconds", 60)
    with ServerProcess(*options, folder=tmp_path) as server, busy_cores():
        server.wait_for_workers(workers)
        sizes: list[int] = []

        async def run() -> Load:
            load = Load(server.url, expected, SECONDS)

            async def watch() -> None:
                while time.monotonic() < load.over:
                    sizes.append(memory(server.process.pid))
                    await asyncio.sleep(0.5)

            await asyncio.gather(load.run(), watch())
            return load

        with Hostile(server) as hostile:
            load = asyncio.run(run())
        print(dict(load.seen), f"{hostile.closed} floods, {max(sizes[len(sizes) // 2 :]) / 1e6:.0f} MB")
        assert load.wrong == []
        assert set(load.seen) <= {"200", "429"}
        assert load.seen["200"] > SECONDS / 2
        assert hostile.closed > 1
        half = len(sizes) // 2
        assert max(sizes[half:]) <= 1.15 * max(sizes[half // 2 : half])
        with httpx.Client(base_url=server.url, timeout=60) as http:
            assert http.get("/health/ready").status_code == 200
        refused = [line for line in server.log if "head_too_large" in line]
        assert refused
    assert server.process.returncode == 0
