"""What the server answers: the same as `mrs suggest --json`."""

import asyncio
import json

import pytest

from mrs_suggest.cli.main import run_verb
from mrs_suggest.serving.client import AsyncClient, Client
from tests.mrs_suggest.serving.server_process import ServerProcess

MESSAGES = ["¿Quedamos mañana?", "Danke für deine Hilfe gestern!", "See you tomorrow?", "明日の会議は何時からですか？"]


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    """What `mrs suggest --json` prints."""
    assert run_verb("suggest", ["--json", *arguments]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_answers_are_those_of_the_command(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    import httpx

    body = {"messages": MESSAGES}
    answers = httpx.post(f"{server.url}/v1/suggest", json=body, timeout=30).json()["answers"]
    expected = told(capsys, *MESSAGES)
    assert len({answer.pop("version") for answer in answers}) == 1
    assert [list(answer) for answer in answers] == [list(answer) for answer in expected]
    for answer, other in zip(answers, expected, strict=True):
        scores, others = ([row.pop("score") for row in rows["suggestions"]] for rows in (answer, other))
        assert scores == pytest.approx(others, abs=1e-5)  # sums of floats depend on who else is in the batch
        assert answer == other


def test_the_clients_read_answers(server: ServerProcess) -> None:
    async def ask() -> list[object]:
        async with AsyncClient(server.url) as client:
            return [
                await client.suggest(MESSAGES[:1], "es", 2, explain=True),
                await client.models(),
                await client.ready(),
            ]

    with Client(server.url) as client:
        plain = [client.suggest(MESSAGES[:1], "es", 2, explain=True), client.models(), client.ready()]
    assert plain == asyncio.run(ask())
    (answer,) = plain[0]
    assert (answer.language, answer.model, answer.error, len(answer.replies)) == ("es", "everyday-retriever", None, 2)
    assert all(suggestion.parts for suggestion in answer.suggestions)
