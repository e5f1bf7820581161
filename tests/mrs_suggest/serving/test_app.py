"""The application without a socket, around a model that the test controls."""

import asyncio
import json
import logging
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving import gate
from mrs_suggest.serving.app import Worker, create_app
from mrs_suggest.serving.client import AsyncClient, ServerError
from mrs_suggest.serving.observe.logs import JsonFormatter
from mrs_suggest.serving.served import ServedModels, ServedSuggester
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

KEY, OTHER, THIRD, ADMIN = "k" * 20, "o" * 20, "t" * 20, "a" * 20
SETTINGS = Settings(("some-model",), max_characters=50, max_messages=3, max_waiting=3)


class Echo(ServedModel):
    """Answers in capitals; `secret` breaks it, and `gate` holds it up."""

    languages = ["xx"]  # noqa: RUF012

    def __init__(self, *languages: str) -> None:
        self.languages = list(languages or ["xx"])
        self.gate = threading.Event()
        self.gate.set()

    def suggest(self, messages: Any, language: str, k: int = 3) -> list[list[Suggestion]]:
        assert self.gate.wait(10)
        if any("secret" in message for message in messages):
            raise RuntimeError(f"cannot read {messages}")
        return [[Suggestion(message.upper(), 0.5, {"direct": 0.5})][:k] for message in messages]


def served(model: ServedModel, settings: Settings) -> ServedModels:
    """The model under each name of the settings."""
    return ServedModels([ServedSuggester(Suggester(model), settings, name) for name in settings.named], settings)


@asynccontextmanager
async def application(
    settings: Settings, models: ServedModels | None = None
) -> AsyncIterator[tuple[Worker, httpx.AsyncClient, httpx.ASGITransport]]:
    """An application around the models (`Echo` under each name): its worker, a plain client, and the way to it."""
    app = create_app(settings, models or served(Echo(), settings))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://server") as http,
    ):
        yield app.state.worker, http, transport


Ask = Callable[[httpx.AsyncClient], Coroutine[Any, Any, Any]]


def asked(ask: Ask, settings: Settings = SETTINGS, models: ServedModels | None = None) -> Any:
    """What `ask` gets from an application."""

    async def run() -> Any:
        async with application(settings, models) as (_, http, _):
            return await ask(http)

    return asyncio.run(run())


def post(body: object, settings: Settings = SETTINGS, **headers: str) -> httpx.Response:
    async def ask(http: httpx.AsyncClient) -> httpx.Response:
        content = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return await http.post("/v1/suggest", content=content, headers=headers)

    response: httpx.Response = asked(ask, settings)
    return response


def test_each_message_has_its_own_error() -> None:
    answers = post({"messages": ["hello", " ", "x" * 51]}).json()["answers"]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, "empty_message", "too_long"]
    assert answers[0] == {
        "message": "hello", "language": "xx", "model": "some-model", "suggestions": [{"reply": "HELLO", "score": 0.5}],
    }  # fmt: skip
    (answer,) = post({"messages": ["hello"], "language": "fr"}).json()["answers"]
    assert answer["language"] == "fr"
    assert answer["error"] == {"code": "unknown_language", "message": "the model answers xx; pass one of these."}
    assert "parts" in post({"messages": ["hello"], "explain": True}).json()["answers"][0]["suggestions"][0]


def test_a_model_without_a_detector_asks_for_the_language() -> None:
    models = served(Echo("xx", "yy"), SETTINGS)
    response = asked(lambda http: http.post("/v1/suggest", json={"messages": ["hello"]}), models=models)
    assert response.json()["answers"][0]["error"]["code"] == "language_required"


@pytest.mark.parametrize(
    ("body", "status", "code", "said"),
    [
        *cases(__file__, "test_a_wrong_request_gets_a_sentence"),
        (b"\xff\xfe", 400, "invalid_json", "invalid JSON"),
        ({"messages": ["x" * (1 << 20)]}, 413, "too_large", "1048576 bytes"),
    ],
)
def test_a_wrong_request_gets_a_sentence(body: object, status: int, code: str, said: str) -> None:
    response = post(body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert said in error["message"]
    assert error["message"].endswith(".")


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/suggest", 405), ("GET", "/nothing", 404)])
def test_unknown_routes_have_the_same_form(method: str, path: str, status: int) -> None:
    response = asked(lambda http: http.request(method, path))
    assert response.status_code == status
    assert set(response.json()["error"]) == {"code", "message"}


def test_keys(tmp_path: Path) -> None:
    (tmp_path / "keys").write_text(f"# of the shop\n{KEY}\n\n{OTHER}\n")
    (tmp_path / "admins").write_text(ADMIN)
    settings = replace(SETTINGS, api_keys=tmp_path / "keys", admin_keys=tmp_path / "admins")

    async def ask(http: httpx.AsyncClient) -> list[int]:
        body, codes = {"messages": ["hello"]}, []
        for headers in ({}, {"Authorization": f"Bearer {KEY}x"}, {"Authorization": f"Basic {KEY}"}):
            codes.append((await http.post("/v1/suggest", json=body, headers=headers)).status_code)
        for headers in ({"Authorization": f"Bearer {OTHER}"}, {"X-API-Key": KEY}, {"Authorization": f"bearer {ADMIN}"}):
            codes.append((await http.post("/v1/suggest", json=body, headers=headers)).status_code)
        codes += [(await http.get(path)).status_code for path in ("/v1/models", "/health/live", "/metrics")]
        codes.append((await http.post("/v1/reload", headers={"X-API-Key": KEY})).status_code)
        return codes

    assert asked(ask, settings) == [401, 401, 401, 200, 200, 200, 401, 200, 200, 401]


def test_requests_above_the_rate_of_a_key_are_refused(tmp_path: Path) -> None:
    """A line of the file may have another rate than the option, 0 for none."""
    (tmp_path / "keys").write_text(f"{KEY} 1\n# free:\n{OTHER}\t0\n{THIRD}\n")
    settings = replace(SETTINGS, api_keys=tmp_path / "keys", requests_per_minute=2)

    async def ask(http: httpx.AsyncClient) -> dict[str, list[httpx.Response]]:
        async def post(key: str) -> httpx.Response:
            return await http.post("/v1/suggest", json={"messages": ["hello"]}, headers={"X-API-Key": key})

        return {key: [await post(key) for _ in range(3)] for key in (KEY, OTHER, THIRD)}

    found = asked(ask, settings)
    codes = {key: [one.status_code for one in responses] for key, responses in found.items()}
    assert codes == {KEY: [200, 429, 429], OTHER: [200, 200, 200], THIRD: [200, 200, 429]}
    refused = found[THIRD][2]
    assert refused.json()["error"]["code"] == "rate_limited"
    assert 1 <= int(refused.headers["retry-after"]) <= 30


def test_the_rate_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without keys, all callers share it."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], perf_counter=time.perf_counter)
    monkeypatch.setattr(gate, "time", clock)

    async def ask(http: httpx.AsyncClient) -> list[int]:
        codes = []
        for seconds in (0, 0, 0, 29, 2, 0):
            now[0] += seconds
            codes.append((await http.post("/v1/suggest", json={"messages": ["hello"]})).status_code)
        return codes

    assert asked(ask, replace(SETTINGS, requests_per_minute=2)) == [200, 200, 429, 429, 200, 429]


def test_a_reload_that_fails_or_is_not_allowed(tmp_path: Path) -> None:
    (tmp_path / "admins").write_text(ADMIN)
    settings = replace(SETTINGS, models=(str(tmp_path / "gone"),), admin_keys=tmp_path / "admins")

    async def ask(http: httpx.AsyncClient) -> tuple[httpx.Response, httpx.Response]:
        refused = await http.post("/v1/reload", headers={"X-API-Key": ADMIN})
        return refused, await http.post("/v1/suggest", json={"messages": ["hello"]})

    refused, answered = asked(ask, settings)
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "reload_failed")
    assert "gone" in refused.json()["error"]["message"]
    assert answered.json()["answers"][0]["suggestions"]
    response = asked(lambda http: http.post("/v1/reload"))
    assert (response.status_code, response.json()["error"]["code"]) == (403, "reload_disabled")


def test_a_worker_loads_the_model_once_per_reload(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "admins").write_text(ADMIN)
    settings = replace(SETTINGS, workers=2, admin_keys=tmp_path / "admins")
    loaded = []

    def load(settings: Settings) -> ServedModels:
        loaded.append(settings)
        return served(Echo(), settings)

    async def run() -> None:
        async with application(settings, load(settings)) as (worker, http, _):
            assert (await http.post("/v1/reload", headers={"X-API-Key": ADMIN})).status_code == 200
            assert len(loaded) == 2
            signal.raise_signal(signal.SIGHUP)  # an administrator's
            while len(loaded) < 3:
                await asyncio.sleep(0.001)
            await worker.reload()  # after all that wait for their turn

    monkeypatch.setattr(ServedModels, "load", load)
    monkeypatch.setattr(os, "kill", lambda _, number: signal.raise_signal(number))  # the supervisor tells all workers
    asyncio.run(run())
    assert len(loaded) == 4


def test_a_full_queue_answers_429_and_the_client_comes_back() -> None:
    model = Echo()
    model.gate.clear()

    async def run() -> tuple[list[int], ServerError]:
        async with application(SETTINGS, served(model, SETTINGS)) as (worker, http, transport):
            tasks = []
            for _ in range(6):
                tasks.append(asyncio.create_task(http.post("/v1/suggest", json={"messages": ["a"]})))
                while not worker.batcher.at_work:
                    await asyncio.sleep(0.001)
            while sum(task.done() for task in tasks) < 2:
                await asyncio.sleep(0.001)
            ready = await http.get("/health/ready")
            assert (ready.status_code, ready.json()) == (503, {"status": "full"})
            refused = next(task.result() for task in tasks if task.done())
            assert int(refused.headers["retry-after"]) >= 1
            async with AsyncClient("http://server", tries=1, transport=transport) as client:
                with pytest.raises(ServerError) as error:
                    await client.suggest(["a"])
            model.gate.set()
            return sorted(response.status_code for response in await asyncio.gather(*tasks)), error.value

    codes, error = asyncio.run(run())
    assert codes == [200, 200, 200, 200, 429, 429]  # one at work, three waiting
    assert (error.status, error.code) == (429, "too_many_waiting")
    assert error.retry_after is not None


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    model = Echo()
    model.gate.clear()

    async def ask(http: httpx.AsyncClient) -> httpx.Response:
        response = await http.post("/v1/suggest", json={"messages": ["a"]})
        ready = await http.get("/health/ready")
        assert ready.json() == {"status": "stuck"}
        model.gate.set()
        return response

    settings = replace(SETTINGS, answer_seconds=0.05)
    response = asked(ask, settings, served(model, settings))
    assert (response.status_code, response.json()["error"]["code"]) == (503, "timeout")
    assert response.headers["retry-after"]


def test_an_error_of_the_model_is_no_ones_text(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mrs_suggest.serving"):
        response = post({"messages": ["my secret", "another secret"]})
    assert response.status_code == 500
    assert "secret" not in response.text
    lines = [JsonFormatter().format(record) for record in caplog.records]
    assert not [line for line in lines if "secret" in line]
    (error,) = [json.loads(line) for line in lines if '"event": "error"' in line]
    assert error["exception"] == "RuntimeError"
    assert any("test_app.py" in frame for frame in error["traceback"])
    assert error["request_id"] == response.headers["x-request-id"]


def test_logs_tell_requests_without_texts(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mrs_suggest.serving"):
        post({"messages": ["Rosebud", ""]}, **{"X-Request-ID": "abc-1"})
        asked(lambda http: http.get("/Rosebud?text=Rosebud"))
    lines = [json.loads(JsonFormatter().format(record)) for record in caplog.records]
    assert "rosebud" not in json.dumps(lines).lower()
    (line, other) = [line for line in lines if line["event"] == "request"]
    assert (line["route"], line["status"], line["messages"], line["errors"]) == ("/v1/suggest", 200, 2, 1)
    assert (line["request_id"], other["route"], other["status"]) == ("abc-1", "other", 404)


def test_cors_is_off_until_an_origin_is_named() -> None:
    preflight = {"Origin": "https://a.org", "Access-Control-Request-Method": "POST"}

    def allowed(settings: Settings) -> str | None:
        response = asked(lambda http: http.options("/v1/suggest", headers=preflight), settings)
        value: str | None = response.headers.get("access-control-allow-origin")
        return value

    assert allowed(SETTINGS) is None
    assert allowed(replace(SETTINGS, cors=("https://a.org",))) == "https://a.org"
    assert allowed(replace(SETTINGS, cors=("https://b.org",))) is None


def test_metrics_count_requests_and_messages() -> None:
    async def ask(http: httpx.AsyncClient) -> str:
        await http.post("/v1/suggest", json={"messages": ["a", "", "b"]})
        await http.post("/v1/suggest", json={"messages": ["a"], "language": "invented"})
        await http.get("/no/such/route")
        return (await http.get("/metrics")).text

    page = asked(ask)
    assert "invented" not in page
    for line in (
        'mrs_requests_total{route="/v1/suggest",status="200"} 2.0',
        'mrs_requests_total{route="other",status="404"} 1.0',
        'mrs_messages_total{language="xx",model="some-model",outcome="answered",version=""} 2.0',
        'mrs_messages_total{language="",model="some-model",outcome="empty_message",version=""} 1.0',
        "mrs_batch_messages_sum 2.0",
    ):
        assert line in page


def test_damaged_keys_are_refused_without_being_shown(tmp_path: Path) -> None:
    rows = [
        ("short\n", "line 1"),
        ("# none\n", "no key"),
        (f"{KEY}\n{'é' * 20}\n", "line 2"),
        (f"{KEY} short", "line 1: expected only a number of requests a minute"),
        (f"{KEY} 6 7", "only a number"),
    ]
    for text, said in rows:
        (tmp_path / "keys").write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said) as error:
            create_app(replace(SETTINGS, api_keys=tmp_path / "keys"), served(Echo(), SETTINGS))
        assert "short" not in str(error.value)
        assert "é" not in str(error.value)
