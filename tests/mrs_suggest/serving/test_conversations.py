"""Conversations in requests: answered as `Suggester.suggest` answers them, within limits."""

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest

from mrs_suggest.serving.client import AsyncClient, Client
from mrs_suggest.serving.schema import MOST_TURNS
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases
from tests.mrs_suggest.serving.server_process import ServerProcess
from tests.mrs_suggest.serving.test_app import SETTINGS, post

HELLO = {"from": "them", "text": "hello"}
INVITED = [{"from": "them", "text": "¿Quedamos mañana?"}]
CHATS: list[list[dict[str, str]]] = [
    INVITED,
    [*INVITED, {"from": "me", "text": "Vale"}, {"from": "them", "text": "¿A qué"}, {"from": "them", "text": "hora?"}],
    [*INVITED, {"from": "me", "text": "Vale"}],
    [{"from": "them", "text": "I want to kill myself"}, {"from": "me", "text": "No!"}, *INVITED],
]


def item(turns: list[dict[str, str]], **options: Any) -> dict[str, Any]:
    (answer,) = post({"conversations": [turns], **options}, replace(SETTINGS, max_characters=10)).json()["answers"]
    found: dict[str, Any] = answer
    return found


def test_the_answer_has_the_joined_message() -> None:
    answer = item([{"from": "me", "text": "HELLO"}, HELLO, {"from": "them", "text": "you"}])
    assert (answer["message"], answer["suggestions"][0]["reply"]) == ("hello you", "HELLO YOU")
    assert item([{"from": "me", "text": "Hello!"}, HELLO])["suggestions"] == []  # sent before
    own = item([HELLO, {"from": "me", "text": "hi"}])
    assert own == {
        "message": "", "language": None, "model": "some-model", "suggestions": [], "reason": "own_message",
    }  # fmt: skip


def test_errors_of_items() -> None:
    assert item([{"from": "them", "text": " "}])["error"]["code"] == "empty_message"
    assert item([HELLO, {"from": "me", "text": "hi"}], language="fr")["error"]["code"] == "unknown_language"
    for turns, sentence in (
        ([HELLO, {"from": "me", "text": "x" * 11}, HELLO], "turn 2 has 11 characters"),
        ([{"from": "me", "text": "x" * 11}, *[HELLO, {"from": "me", "text": "a"}] * 6], None),  # not read
        ([*[{"from": "me", "text": "a"}] * 7, {"from": "me", "text": "x" * 11}, HELLO], "turn 8 has 11 characters"),
        ([HELLO, HELLO], "the message has 11 characters"),
    ):
        answer = item(turns)
        assert answer.get("error") == (
            sentence and {"code": "too_long", "message": f"{sentence}; the server accepts 10, shorten it."}
        )


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        *cases(__file__, "test_what_is_refused_as_a_whole"),
        ({"conversations": [[HELLO] * (MOST_TURNS + 1)]}, "invalid_request", "at most 100 items"),
        ({"conversations": [[HELLO]] * 4}, "too_many_messages", "4 conversations; a request may have 3."),
    ],
)
def test_what_is_refused_as_a_whole(body: object, code: str, said: str) -> None:
    response = post(body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (422, code)
    assert said in error["message"]


def test_the_clients_ask_what_the_suggester_answers(server: ServerProcess) -> None:
    async def ask() -> list[Any]:
        async with AsyncClient(server.url) as client:
            return await client.suggest(CHATS)

    with Client(server.url) as client:
        found = client.suggest(CHATS)
        mixed = client.suggest(["¿Quedamos mañana?", CHATS[1]])
        with pytest.raises(TypeError, match=r"found one conversation; pass \[turns\]"):
            client.suggest(INVITED)  # type: ignore[arg-type]
    expected = Suggester.from_pretrained("everyday-retriever").suggest(CHATS)
    assert [(a.replies, a.reason, a.language) for a in found] == [(a.replies, a.reason, a.language) for a in expected]
    assert [answer.reason for answer in found] == [None, None, "own_message", "self_harm"]
    assert [answer.message for answer in found] == ["¿Quedamos mañana?", "¿A qué hora?", "", "¿Quedamos mañana?"]
    assert [answer.replies for answer in asyncio.run(ask())] == [answer.replies for answer in found]
    assert [answer.replies for answer in mixed] == [answer.replies for answer in found[:2]]
    broken = httpx.post(f"{server.url}/v1/suggest", content='{"messages": ["Rosebud', timeout=30)
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_json")
    while server.wait_for("request")["status"] != 400:
        pass
    assert not any("Quedamos" in line or "Rosebud" in line for line in server.log)
