"""Several workers behind one port: one that is killed comes back, and nothing that was taken is dropped."""

import contextlib
import itertools
import json
import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest

pytest.importorskip("fastapi")

from mrs_suggest.serving.client import Client
from mrs_suggest.serving.supervisor import Supervisor
from tests.mrs_suggest.serving.server_process import STARTS_WITHIN, ServerProcess, Threads

ADMIN = "an-admin-key-of-a-test"
HEAD = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\n"
WAITING = "mrs_waiting_messages "


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server of two workers."""
    folder = tmp_path_factory.mktemp("pair")
    with ServerProcess("--workers", 2, folder=folder, environment={"MRS_ADMIN_KEYS": ADMIN}) as process:
        process.wait_for_workers(2)
        yield process


class Traffic(Threads):
    """Requests without a pause, each on a connection of its own thread; counts what comes back."""

    def __init__(self, url: str, threads: int = 2) -> None:
        self.seen: Counter[str] = Counter()
        self._url = url
        super().__init__([self._ask] * threads)

    def _ask(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30) as http:
            while not self._over.is_set():
                try:
                    response = http.post("/v1/suggest", json={"messages": ["See you tomorrow?"], "language": "en"})
                    self.seen[str(response.status_code)] += 1
                except httpx.HTTPError as error:
                    self.seen[type(error).__name__] += 1


def test_a_reload_drops_nothing_and_reaches_every_worker(pair: ServerProcess) -> None:
    reloads = 'mrs_reloads_total{outcome="done"}'
    before = pair.figure(reloads)
    with Traffic(pair.url) as traffic:
        time.sleep(0.3)
        with Client(pair.url, ADMIN, seconds=STARTS_WITHIN) as client:
            client.reload()  # this worker loads it, then the other one, told by the supervisor
        for _ in range(2):
            pair.wait_for("reloaded")
        pair.signal(signal.SIGHUP)
        for _ in range(2):
            pair.wait_for("reloaded")
    assert set(traffic.seen) == {"200"}
    assert traffic.seen["200"] > 5
    assert pair.figure(reloads) - before == 4


def test_a_killed_worker_comes_back_and_the_figures_stay(pair: ServerProcess) -> None:
    requests = 'mrs_requests_total{route="/v1/suggest",status="200"}'
    with Client(pair.url) as client:
        client.suggest(["See you tomorrow?"], "en")
    before = pair.figure(requests)
    (line, *_) = [line for line in pair.log if '"event": "loaded"' in line]
    victim = int(line.split('"process": ')[1].split(",")[0])
    os.kill(victim, signal.SIGKILL)
    assert pair.wait_for("a worker has ended, and is started again")["ended"] == victim
    started = pair.wait_for("loaded")["process"]
    assert started != victim
    with Client(pair.url, seconds=60) as client:
        assert client.suggest(["See you tomorrow?"], "en")[0].replies
    assert pair.figure(requests) >= before + 1  # also those that the dead worker had counted


@pytest.mark.parametrize(("workers", "number"), [(1, signal.SIGTERM), (1, signal.SIGINT), (2, signal.SIGTERM)])
def test_stopping_refuses_new_connections_and_answers_what_was_taken(
    tmp_path: Path, workers: int, number: signal.Signals
) -> None:
    arguments = ("--workers", workers, "--max-batch", 1, "--max-waiting", 900, "--max-messages", 300)
    with ServerProcess(*arguments, "--answer-seconds", 300, folder=tmp_path) as server:
        server.wait_for_workers(workers)
        answers: list[int] = []

        def ask() -> None:
            with Client(server.url, seconds=300, tries=1) as client:
                answers.append(len(client.suggest(["See you tomorrow?"] * 300, "en")))

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        while server.figure(WAITING) < 400:  # of both requests
            time.sleep(0.01)
        server.signal(number)
        while True:
            try:
                server.connect().close()
            except ConnectionRefusedError:
                break
            time.sleep(0.01)
        assert len(answers) < 2, "the port was open until all work was done"
        assert server.process.wait(60) == 0
        for thread in threads:
            thread.join()
        assert answers == [300, 300]


def test_workers_that_keep_ending_are_started_again_ever_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, starts = 1000.0, []
    pids = itertools.count(1)

    def process() -> SimpleNamespace:
        def nothing(*_: object) -> None:
            return None

        return SimpleNamespace(pid=next(pids), exitcode=-9, is_alive=nothing, kill=nothing, join=nothing)

    def start(_: Supervisor) -> SimpleNamespace:
        starts.append(clock)
        return process()

    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setattr(Supervisor, "_start", start)
    monkeypatch.setattr(time, "monotonic", lambda: clock)
    supervisor = Supervisor.__new__(Supervisor)
    supervisor.processes = [process()]  # type: ignore[list-item]
    while clock < 1120:
        supervisor.keep_subprocess_alive()
        clock += 0.5
    pauses = [later - earlier for earlier, later in itertools.pairwise(starts)]
    assert pauses == [1, 2, 4, 8, 16, 30, 30]


def test_a_connection_goes_to_the_ready_worker_with_the_fewest() -> None:
    supervisor = Supervisor.__new__(Supervisor)
    ours, workers = zip(*(socket.socketpair() for _ in range(3)), strict=True)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setblocking(False)
        supervisor._listener, supervisor._channels = listener, list(ours)
        thread = threading.Thread(target=supervisor._accept, daemon=True)

        def connect() -> socket.socket:
            return socket.create_connection(listener.getsockname(), timeout=60)

        def taken(worker: socket.socket, count: int) -> int:
            """The connections that a worker has got: `count`, and those beyond."""
            worker.settimeout(60)
            found = [socket.recv_fds(worker, 1, 1)[1] for _ in range(count)]
            worker.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while data := socket.recv_fds(worker, 1, 1):
                    found.append(data[1])
            for descriptor in itertools.chain(*found):
                os.close(descriptor)
            return len(found)

        with pytest.raises(ConnectionRefusedError):  # none is ready
            connect()
        for worker in workers[:2]:
            worker.send(b"+")
        thread.start()
        deadline = time.monotonic() + 60
        while listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 0:
            assert time.monotonic() < deadline, "the port stays closed"
        held = [connect() for _ in range(6)]
        assert [taken(worker, 3) for worker in workers[:2]] == [3, 3]
        workers[0].send(bytes(2))  # two of its connections have ended
        held += [connect() for _ in range(4)]
        assert [taken(workers[0], 3), taken(workers[1], 1)] == [3, 1]
        workers[0].close()
        held += [connect() for _ in range(2)]
        assert [taken(workers[1], 2), taken(workers[2], 0)] == [2, 0]
        supervisor._closed = True
        thread.join(60)
        assert not thread.is_alive()
        with pytest.raises(ConnectionRefusedError):
            connect()
        for connection in (*held, *ours, *workers):
            connection.close()


def test_connections_are_shared_equally(pair: ServerProcess) -> None:
    served: Counter[int] = Counter()
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(httpx.Client(base_url=pair.url, timeout=60)) for _ in range(20)]
        for client in clients:
            assert client.get("/v1/models", headers={"X-Request-ID": "shared"}).status_code == 200
        while served.total() < len(clients):
            line = pair.wait_for("request")
            served[line["process"]] += line["request_id"] == "shared"
    assert sorted(served.values()) in ([10, 10], [9, 11])  # the end of an earlier connection may not be known yet


def test_messages_of_clients_that_left_are_not_answered(tmp_path: Path) -> None:
    arguments = ("--max-batch", 1, "--max-waiting", 900, "--max-messages", 300, "--answer-seconds", 300)
    with ServerProcess(*arguments, folder=tmp_path) as server:
        server.wait_for_workers()

        def ask(count: int) -> socket.socket:
            body = json.dumps({"messages": ["See you tomorrow?"] * count, "language": "en"}).encode()
            connection = server.connect()
            connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
            return connection

        with ask(300) as stays:  # this keeps the model at work
            while server.figure(WAITING) == 0:
                time.sleep(0.01)
            leaving = [ask(10) for _ in range(30)]
            while server.figure(WAITING) <= 300:
                time.sleep(0.01)
            for connection in leaving:
                connection.close()
            with Client(server.url, seconds=300) as client:
                assert client.suggest(["See you tomorrow?"], "en")[0].replies  # it stands behind all others
            assert stays.recv(100).startswith(b"HTTP/1.1 200")
        assert server.figure("mrs_batch_messages_sum ") == 301
        assert server.figure(WAITING) == 0


def test_workers_leave_when_their_supervisor_is_killed(tmp_path: Path) -> None:
    server = ServerProcess("--workers", 2, folder=tmp_path)
    pids = server.wait_for_workers(2)
    server.process.kill()
    server.process.wait()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in pids):
        assert time.monotonic() < deadline, "a worker holds the port"
        time.sleep(0.1)
