"""What arrives over a real socket: odd texts, huge and slow requests, broken HTTP. Each gets a clear answer."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from mrs_suggest.serving.client import Client, ServerError
from tests.command import Result, refused
from tests.mrs_suggest.serving.server_process import ServerProcess

READ_SECONDS = 1.0
Run = Callable[..., Result]


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server that waits a second for a request."""
    arguments = ("--read-seconds", READ_SECONDS, "--model", "m=everyday-retriever")
    with ServerProcess(*arguments, folder=tmp_path_factory.mktemp("strict")) as process:
        process.wait_for_workers()
        yield process


def raw(server: ServerProcess, *pieces: bytes, pause: float = 0.0) -> tuple[int, bytes, float]:
    """Status and body of what comes back for pieces of a request, and the seconds until the connection closes."""
    start = time.monotonic()
    with server.connect(30) as connection:
        received = b""
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)
        while chunk := connection.recv(65536):
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body, time.monotonic() - start


def test_odd_messages_are_answered_or_told(server: ServerProcess) -> None:
    messages = ["🎉🎉🎉", "מה שלומך?", "\u202eolleh", "a\u0000b", "\u200b", "x" * 10_000, "", "See you tomorrow?"]
    with Client(server.url) as client:
        answers = client.suggest(messages, "en")
    errors = [answer.error for answer in answers]
    assert errors[5:] == ["too_long", "empty_message", None]
    assert [answer.message for answer in answers] == messages
    assert all(answer.error or answer.reason or answer.replies for answer in answers[:4])
    assert "10000 characters" in str(answers[5].problem)


def test_without_a_language_unclear_ones_are_told(server: ServerProcess) -> None:
    with Client(server.url) as client:
        answers = client.suggest(["123", "?!", "See you tomorrow?", "ok"])
    assert [answer.error for answer in answers] == ["unclear_language", "unclear_language", None, None]
    assert [answer.language for answer in answers] == [None, None, "en", "en"]
    body = {"messages": ["ok", "Thanks!", "Bonjour"]}
    header = {"accept-language": "fr;q=0.5, de-CH, en;q=0"}
    found = httpx.post(f"{server.url}/v1/suggest", json=body, headers=header).json()["answers"]
    assert [one["language"] for one in found] == ["de", "en", "fr"]
    assert found[0]["note"].endswith("answered in de.")


def test_a_client_that_writes_slowly_is_told_and_leaves_others_alone(strict: ServerProcess) -> None:
    head = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n"
    status, body, seconds = raw(strict, head + b"\r\n{")
    assert (status, json.loads(body)["error"]["code"]) == (408, "slow_request")
    assert READ_SECONDS <= seconds < 30 * READ_SECONDS
    status, body, seconds = raw(strict, head)  # the head itself does not end
    assert (status, json.loads(body)["error"]["code"]) == (408, "slow_request")
    assert seconds < 30 * READ_SECONDS
    with Client(strict.url) as client:
        assert client.suggest(["See you tomorrow?"])[0].replies
    # A connection that says nothing is closed.
    status, _, seconds = raw(strict)
    assert status == 408
    assert seconds < 30 * READ_SECONDS


def test_a_huge_body_and_what_is_no_http_are_refused(strict: ServerProcess) -> None:
    body = json.dumps({"messages": ["x" * 3_000_000]}).encode()
    pieces = iter([body[:1_000_000], body[1_000_000:]])
    for content in (body, pieces):
        response = httpx.post(f"{strict.url}/v1/suggest", content=content, timeout=30)
        assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")
    announced = b"POST /v1/suggest HTTP/1.1\r\nhost: a\r\ncontent-length: 99999999999\r\n\r\n"
    status, answer, _ = raw(strict, announced)
    assert (status, json.loads(answer)["error"]["code"]) == (413, "too_large")
    assert raw(strict, b"\x16\x03\x01 nothing that HTTP knows\r\n\r\n")[0] == 400
    with pytest.raises(ServerError, match="invalid_request"), Client(strict.url) as client:
        client.suggest([7])  # type: ignore[list-item]


def test_the_name_and_the_limits_are_told(strict: ServerProcess) -> None:
    found = httpx.get(f"{strict.url}/v1/models", timeout=30).json()
    assert found["limits"]["max_body"] == 1 << 20
    (model,) = found["models"]
    assert model["name"] == "m"
    assert {"en", "es", "ja"} <= set(model["languages"])
    assert model["detects_language"]


def test_what_cannot_be_served_gets_a_sentence(strict: ServerProcess, mrs_here: Run) -> None:
    port = urlsplit(strict.url).port
    for arguments, said in (
        (["--port", str(port)], f"--port {port}: Address already in use"),
        (["--port", "0", "--model", "nowhere"], "nowhere: no such folder"),
        (["--port", "70000"], "--port 70000: expected 0"),
        (["--workers", "0"], "--workers 0: expected 1"),
        (["--read-seconds", "0"], "--read-seconds 0.0: expected more"),
        (["--max-messages", "9", "--max-waiting", "8"], "--max-messages 9"),
    ):
        assert said in refused(mrs_here("serve", *arguments))


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("folder", ["file", "file/below", "/proc/self"])
def test_a_metrics_folder_that_cannot_be_written_is_refused(
    folder: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mrs_here: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", folder)
    said = refused(mrs_here("serve", "--port", 0, "--workers", workers))
    assert said.startswith(f"mrs serve: PROMETHEUS_MULTIPROC_DIR={folder}: cannot be written (")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_damaged_model_ends_the_server_with_a_sentence(tmp_path: Path, workers: int) -> None:
    (tmp_path / "m").mkdir()
    serve = ["-m", "mrs_suggest.cli.main", "serve", "--port", "0", "--model", "m", "--workers", str(workers)]
    done = subprocess.run([sys.executable, *serve], cwd=tmp_path, capture_output=True, text=True, timeout=240)
    told = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert done.returncode == 2
    assert len(set(told)) == 1
    assert told[0].startswith("mrs serve: m: no trained model (no modules.json")
