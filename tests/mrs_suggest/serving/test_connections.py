"""Limits of a connection: how large a head may be, how many there may be, how long a client may take."""

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.mrs_suggest.serving.server_process import ServerProcess

KEY = "an-api-key-of-a-test"
MEGABYTE = 1 << 20
CONNECTIONS = 20
HEAD = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\n"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server with a key, for few connections, whose clients have three seconds."""
    arguments = ("--read-seconds", 3, "--max-connections", CONNECTIONS)
    folder = tmp_path_factory.mktemp("limited")
    with ServerProcess(*arguments, folder=folder, environment={"MRS_API_KEYS": KEY}) as process:
        process.wait_for_workers()
        yield process


def answer_of(connection: socket.socket) -> tuple[int, dict[str, dict[str, str]]]:
    """Status and JSON of what comes until the connection closes."""
    received = b""
    while chunk := connection.recv(65536):
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), json.loads(body)


def memory(server: ServerProcess) -> int:
    """The bytes that the server has in memory."""
    (line,) = [
        line for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")
    ]
    return 1024 * int(line.split()[1])


def flood(server: ServerProcess, piece: bytes, start: bytes, megabytes: int = 64) -> int:
    """How far memory grows while one connection writes `piece` again and again."""
    before = highest = memory(server)
    with server.connect() as connection:
        try:
            connection.sendall(start)
            for _ in range(megabytes * MEGABYTE // len(piece)):
                connection.sendall(piece)
                highest = max(highest, memory(server))
        except (ConnectionResetError, BrokenPipeError):
            pass  # cut off
    return highest - before


@pytest.mark.parametrize(
    ("piece", "start"),
    [
        (b"x" * MEGABYTE, HEAD + b"a: "),
        (b"".join(b"a%05d: %s\r\n" % (n, b"x" * 200) for n in range(5000)), HEAD),
        (b"a: b\r\n" * 200_000, HEAD),
        (b"x" * MEGABYTE, b"GET /"),
        (b"x" * MEGABYTE, HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: "),
        (b"a: b\r\n" * 200_000, HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"),
        (b"GET /health/live HTTP/1.1\r\nhost: a\r\n\r\n" * 20_000, b""),
    ],
    ids=["a long field", "many fields", "short fields", "a long path", "a long trailer", "many trailers", "pipelined"],
)
def test_what_comes_before_the_key_is_not_kept_in_memory(limited: ServerProcess, piece: bytes, start: bytes) -> None:
    assert flood(limited, piece, start) < 10 * MEGABYTE


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"a: " + b"x" * 30_000, 401), (b"a: " + b"x" * 33_000, 431), (b"a: " + b"x" * 500_000, 431),
        (b"\r\n".join([b"a: b"] * 98), 401), (b"\r\n".join([b"a: b"] * 101), 431),
    ],
)  # fmt: skip
def test_a_large_head_gets_a_sentence(limited: ServerProcess, fields: bytes, status: int) -> None:
    with limited.connect() as connection:
        connection.sendall(HEAD + fields + b"\r\nconnection: close\r\n\r\n")
        found, answer = answer_of(connection)
    assert (found, answer["error"]["code"]) == (status, "unauthorised" if status == 401 else "head_too_large")


def test_the_key_is_checked_before_the_body_arrives(limited: ServerProcess) -> None:
    with limited.connect() as connection:
        connection.sendall(HEAD + b"x-api-key: wrong\r\ncontent-length: 100000\r\n\r\n")
        assert answer_of(connection)[0] == 401


def test_a_client_that_never_reads_is_cut_off(limited: ServerProcess) -> None:
    body = json.dumps({"messages": ["x" * 900_000]}).encode()  # too long for the model: its error repeats it
    head = HEAD + b"x-api-key: %s\r\ncontent-length: %d\r\n\r\n" % (KEY.encode(), len(body))
    with limited.connect() as connection, pytest.raises((ConnectionResetError, BrokenPipeError)):
        for _ in range(100):
            connection.sendall(head + body)


def test_a_client_that_never_ends_a_refused_body_is_cut_off(limited: ServerProcess) -> None:
    with limited.connect() as connection, pytest.raises((ConnectionResetError, BrokenPipeError)):
        connection.sendall(HEAD + b"content-length: 100000\r\n\r\n")
        for _ in range(100_000):
            connection.sendall(b"x")
            time.sleep(0.01)


def test_surplus_connections_are_refused(limited: ServerProcess) -> None:
    with httpx.Client(base_url=limited.url) as http:
        assert http.get("/health/live").status_code == 200
        held = [limited.connect() for _ in range(CONNECTIONS - 1)]
        with limited.connect() as surplus:
            status, answer = answer_of(surplus)
        assert (status, answer["error"]["code"]) == (503, "too_many_connections")
        assert http.get("/health/live").status_code == 200  # on the connection that it has
        for connection in held:
            connection.close()
    while True:  # the server sees the ends a moment later
        with limited.connect() as connection:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
            if answer_of(connection)[0] == 200:
                return


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_head_is_answered_without_a_body(limited: ServerProcess, path: str) -> None:
    address = urlsplit(limited.url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
    for _ in range(2):  # a body would be read as the start of the next answer
        connection.request("HEAD", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
        assert int(response.headers["content-length"]) > 0
    connection.request("HEAD", "/v1/suggest", headers={"X-API-Key": KEY})
    assert connection.getresponse().status == 405
    connection.close()


@pytest.mark.parametrize("path", ["/v1/models/", "/health/live/", "//evil.example/..", "/docs/"])
def test_no_answer_repeats_the_host_of_a_request(limited: ServerProcess, path: str) -> None:
    headers = {"Host": "evil.example", "X-API-Key": KEY, "X-Forwarded-Host": "evil.example"}
    response = httpx.get(f"{limited.url}{path}", headers=headers)
    assert response.status_code == 404
    assert "location" not in response.headers
    assert "evil" not in response.text
