"""The client against servers that drop connections, are busy, or are not `mrs serve` at all."""

import asyncio
import inspect
import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import SimpleNamespace
from typing import get_type_hints
from unittest.mock import AsyncMock

import pytest

from mrs_suggest.serving.client import AsyncClient, Client, ReceivedAnswer, ServerError

RESET = b"RESET"
ITEM = {"message": "hi", "language": "en", "model": "m", "suggestions": [{"reply": "Hello!", "score": 0.5}]}


def page(body: object, status: str = "200 OK", *headers: str) -> bytes:
    """The bytes of a response that closes its connection."""
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    head = [f"HTTP/1.1 {status}", "connection: close", f"content-length: {len(content)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + content


GOOD = page({"answers": [ITEM]})


@contextmanager
def scripted(*responses: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a server that answers each connection with the next response, and the requests that it has seen.

    Empty bytes close the connection without an answer, `RESET` resets it.
    """
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for response in responses:
                connection, _ = listener.accept()
                with connection:
                    request = connection.recv(65536)
                    while (b"content-length: 0" not in request.lower()) and request.startswith(b"POST"):
                        head, _, body = request.partition(b"\r\n\r\n")
                        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
                        if len(body) >= length:
                            break
                        request += connection.recv(65536)
                    seen.append(request)
                    if response == RESET:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    else:
                        connection.sendall(response)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen


def plain(url: str, tries: int = 3) -> list[ReceivedAnswer]:
    with Client(url, tries=tries) as client:
        return client.suggest(["hi"])


def asynchronous(url: str, tries: int = 3) -> list[ReceivedAnswer]:
    async def ask() -> list[ReceivedAnswer]:
        async with AsyncClient(url, tries=tries) as client:
            return await client.suggest(["hi"])

    return asyncio.run(ask())


@pytest.mark.parametrize("ask", [plain, asynchronous])
@pytest.mark.parametrize(
    "failure",
    [
        b"", RESET, page("<html>", "502 Bad Gateway"), page("", "503 Service Unavailable", "retry-after: 0"),
        page("", "504 Gateway Timeout"), page("", "429 Too Many Requests", "retry-after: soon"),
    ],
)  # fmt: skip
def test_a_dropped_or_busy_try_is_repeated(ask: Callable[[str], list[ReceivedAnswer]], failure: bytes) -> None:
    with scripted(failure, GOOD) as (url, seen):
        (answer,) = ask(url)
    assert answer.replies == ["Hello!"]
    assert len(seen) == 2


def test_tries_are_bounded() -> None:
    with scripted(b"", b"", GOOD) as (url, seen):
        with pytest.raises(
            ServerError, match=r"^no_answer from http://127\.0\.0\.1:\d+: .*; check that the server runs"
        ):
            plain(url, tries=2)
        assert len(seen) == 2
    busy = page("<html>busy</html>", "503 Service Unavailable")
    with scripted(busy, busy, GOOD) as (url, seen):
        with pytest.raises(ServerError) as error:
            plain(url, tries=2)
        assert (error.value.status, error.value.code, len(seen)) == (503, "unknown", 2)


@pytest.mark.parametrize("ask", [plain, asynchronous])
def test_a_server_that_cannot_be_reached_is_named(ask: Callable[[str], list[ReceivedAnswer]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(ServerError, match=f"^no_answer from {url}: .* check that") as error:
        ask(url)
    assert error.value.status == 0
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(ServerError, match=r"127.*: \w+Timeout|timed out"),
    ):
        Client(f"http://127.0.0.1:{silent.getsockname()[1]}", seconds=0.1, tries=1).suggest(["hi"])
    with pytest.raises(ServerError, match="^no_answer from localhost:8011: .*; check that .* such as http://127"):
        ask("localhost:8011")


@pytest.mark.parametrize("failure", [b"", page("", "503 Service Unavailable", "retry-after: 0")])
def test_a_reload_is_sent_only_once(failure: bytes) -> None:
    with scripted(failure, page({"models": [{"name": "m"}]})) as (url, seen):
        with Client(url) as client, pytest.raises(ServerError):
            client.reload()
        assert len(seen) == 1


def test_other_refusals_are_not_repeated() -> None:
    with scripted(page({"error": {"code": "c", "message": "m."}}, "400 Bad Request"), GOOD) as (url, seen):
        with pytest.raises(ServerError, match=r"^c \(400\) from http://127.0.0.1:\d+/v1/suggest: m\.$"):
            plain(url)
        assert len(seen) == 1


def test_pauses_grow_with_jitter_and_last_as_long_as_the_server_says(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("mrs_suggest.serving.client.time", SimpleNamespace(sleep=pauses.append))  # not of other threads
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=40), usegmt=True)
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    told = (["retry-after: 7"], [f"retry-after: {date}"], [f"retry-after: {past}"], ["retry-after: 1e9"], [])
    busy = [page("", "503 Service Unavailable", *headers) for headers in told]
    with scripted(*busy, GOOD) as (url, _):
        assert plain(url, tries=6)
    bounds = [(7, 8), (35, 41), (0.5, 1), (61, 62), (2, 4)]
    assert all(low <= pause <= high for pause, (low, high) in zip(pauses, bounds, strict=True)), pauses
    pauses.clear()
    for _ in range(2):
        with scripted(b"", GOOD) as (url, _):
            plain(url)
    assert pauses[0] != pauses[1]


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error", "302 Found"])
@pytest.mark.parametrize(
    "body",
    [
        "<html><h1>Bad Gateway</h1></html>", "", [], [1], "null", 7, {}, {"error": "text"}, {"error": [1]},
        {"error": {"code": 7}}, {"answers": 7}, {"answers": [7]}, {"answers": [{}]}, {"models": 7, "model": "text"},
        {"answers": [{**ITEM, "suggestions": [{"reply": "no score"}]}]}, {"answers": [{**ITEM, "error": "text"}]},
    ],
)  # fmt: skip
def test_what_is_not_an_answer_is_the_clients_own_error(status: str, body: object) -> None:
    for ask in (lambda client: client.suggest(["hi"]), Client.models, Client.reload):
        with scripted(page(body, status)) as (url, _), Client(url) as client:
            with pytest.raises(ServerError) as error:
                ask(client)
            assert error.value.status == int(status[:3])
            assert error.value.url.startswith(f"{url}/v1/")
            assert error.value.url in str(error.value)
            assert status[:3] in str(error.value)


def test_unknown_fields_are_ignored() -> None:
    item = {
        **ITEM, "new": 1, "suggestions": [{"reply": "Hello!", "score": 1, "parts": {"a": 0.5}, "new": {}}],
        "error": {"code": "c", "message": "m", "new": 1},
    }  # fmt: skip
    with scripted(page({"answers": [item], "new": []})) as (url, _):
        (answer,) = plain(url)
    assert (answer.replies, answer.error, answer.problem) == (["Hello!"], "c", "m")
    assert answer.suggestions[0].parts == {"a": 0.5}


def test_asynchronous_methods_can_be_told_and_replaced() -> None:
    for name in ("suggest", "models", "feedback", "reload", "ready", "close"):
        own, plain_one = getattr(AsyncClient, name), getattr(Client, name)
        assert inspect.iscoroutinefunction(own), name
        assert get_type_hints(own)["return"] == get_type_hints(plain_one)["return"], "what an await gives"
        assert inspect.signature(own).parameters.keys() == inspect.signature(plain_one).parameters.keys()
    client = AsyncMock(spec=AsyncClient)
    client.suggest.return_value = []
    assert asyncio.run(client.suggest(["hi"])) == []
