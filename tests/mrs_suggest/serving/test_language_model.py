"""A language model behind a server, served by `mrs serve` and shown by `mrs demo`."""

import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving.page.page import answer_message, load_models
from mrs_suggest.serving.served import ServedModels
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.language_model import chat
from tests.chat_server import REPLIES, ChatServer, Failure, chat_server
from tests.mrs_suggest.serving.test_app import asked

KEY = "sk-a-secret-key-1234"
ASK = "Are you coming to dinner tonight?"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(chat.ChatPoster, "first_wait", 0.01)
    with chat_server() as running:
        yield running


def test_answers_and_failures_over_http(server: ChatServer, caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings((f"small=openai:{server.url}#some-model",), answer_seconds=120)
    models = ServedModels.load(settings)
    assert len(server.requests) == 1, "a single request shows whether it answers"
    chat = [{"from": "them", "text": "Hi, are you hungry?"}, {"from": "me", "text": "Yes"}]

    async def ask(http: httpx.AsyncClient) -> list[httpx.Response]:
        good = await http.post("/v1/suggest", json={"messages": [ASK, "I want to kill myself"]})
        turns = [*chat, {"from": "them", "text": ASK}]
        other = await http.post("/v1/suggest", json={"conversations": [turns], "language": "en"})
        server.planned = [Failure(500, KEY.encode())] * 3
        bad = await http.post("/v1/suggest", json={"messages": [ASK], "language": "en"})
        return [good, other, bad, await http.get("/v1/models")]

    with caplog.at_level(logging.DEBUG):
        good, other, bad, listed = asked(ask, settings, models)
    first, second = good.json()["answers"]
    assert [row["reply"] for row in first["suggestions"]] == REPLIES["English"]
    assert (first["model"], first["language"], len(first["version"])) == ("small", "en", 12)
    assert (second["suggestions"], second["reason"]) == ([], "self_harm")
    assert other.json()["answers"][0]["suggestions"][0]["reply"] == REPLIES["English"][0]
    assert server.sent[2] == {"earlier": chat, "message": ASK}
    assert bad.status_code == 500
    assert bad.json()["error"]["code"] == "internal_error"
    assert listed.json()["models"][0]["detects_language"] is True
    texts = [good.text, bad.text, listed.text, caplog.text, *(str(vars(record)) for record in caplog.records)]
    assert not any(KEY in text for text in texts)


def test_a_server_that_does_not_answer_stops_the_start(server: ChatServer) -> None:
    server.planned = [Failure(401)]
    with pytest.raises(InputError, match="refuses the key in OPENAI_API_KEY"):
        ServedModels.load(Settings((f"openai:{server.url}#some-model",)))


def test_a_second_model_answers_behind_the_first_and_on_the_page(server: ChatServer) -> None:
    """Also in the server; `mrs demo` loads its models in the same way as here."""
    second: dict[str, Any] = {"fallback": f"openai:{server.url}#some-model", "fallback_share": 0.9}
    unsure = "The quarterly report mentions nine oddly shaped violins and a lighthouse."
    answer = answer_message(load_models(["everyday-retriever"], **second)["everyday-retriever"], unsure)
    assert [one.reply for one in answer.suggestions] == REPLIES["English"]
    settings = Settings(("everyday-retriever",), answer_seconds=120, **second)

    body = {"messages": [unsure], "language": "en", "explain": True}
    response = asked(lambda http: http.post("/v1/suggest", json=body), settings, ServedModels.load(settings))
    rows = response.json()["answers"][0]["suggestions"]
    assert [row["reply"] for row in rows] == REPLIES["English"]
    assert {row["source"] for row in rows} == {"fallback"}
    name = f"openai:{server.url}#some-model"
    models: dict[str, Any] = load_models([name])
    answer = answer_message(models[name], ASK)
    assert [one.reply for one in answer.suggestions] == REPLIES["English"]
