"""A language model behind a server in the commands that take a model, and in tables next to other systems."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mrs_suggest.suggest.language_model import chat
from tests.chat_server import REPLIES, ChatServer, Failure, chat_server
from tests.command import Result, refused, shown

pytestmark = pytest.mark.integration
Command = Callable[..., Result]
KEY = "sk-a-secret-key-1234"
ROWS = [
    (f"Are you coming at {n}?", "Sure, sounds good!" if n % 2 else "No idea", "No.", "Yes.", "Well") for n in range(12)
]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(chat.ChatPoster, "first_wait", 0.01)
    with chat_server() as running:
        yield running


@pytest.fixture
def model(server: ChatServer, tmp_path: Path) -> str:
    """A file with prices."""
    path = tmp_path / "model.yaml"
    path.write_text(
        f"url: {server.url}\nmodel: small\nprice_per_million: {{input: 1, output: 10}}\nlanguages: [en, de]\n"
    )
    return f"openai:{path}"


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    path = tmp_path / "predictions.en.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_messages_are_answered(mrs_here: Command, server: ChatServer) -> None:
    name = f"openai:{server.url}#small"
    code, out, err = mrs_here("suggest", "--model", name, "Are you coming to dinner?")
    assert code == 0, err
    assert out.splitlines() == [
        "> Are you coming to dinner?  [en]",
        *(f"  {number}. {reply}" for number, reply in enumerate(REPLIES["English"], 1)),
    ]
    assert err == f"model: {name}\n"
    found = json.loads(shown(mrs_here("suggest", "--model", name, "--json", "Kommst du heute zum Essen?")))
    assert [row["score"] for row in found["suggestions"]] == [1, 0.5, 0.333333]
    assert "suicide" in shown(mrs_here("suggest", "--model", name, "I want to kill myself"))
    assert len(server.requests) == 2
    server.planned = ["I cannot help with that."]
    assert "(nothing is suggested: no reply of the model fits" in shown(
        mrs_here("suggest", "--model", name, "Are you coming to dinner?")
    )


def test_a_failing_server_is_one_sentence(mrs_here: Command, server: ChatServer) -> None:
    server.planned = [Failure(500, KEY.encode())] * 3
    sentence = refused(mrs_here("suggest", "--model", f"openai:{server.url}#small", "Are you coming to dinner?"))
    assert sentence == (
        f"mrs suggest: openai: {server.url}/chat/completions: failed with HTTP 500 (try 3 of 3); check that "
        "the server runs and answers in time (docs/how_to/language_model.md)."
    )
    assert "expected the server's name for a model" in refused(
        mrs_here("suggest", "--model", f"openai:{server.url}", "Hi there")
    )
    assert "only hub repositories have revisions" in refused(
        mrs_here("suggest", "--model", f"openai:{server.url}#small", "--revision", "main", "Hi there")
    )


def test_answers_are_scored_next_to_a_file(
    mrs_here: Command, server: ChatServer, model: str, predictions: Path
) -> None:
    own, other = json.loads(shown(mrs_here("score", predictions, "--language", "en", "--model", model, "--json")))
    if own["system"] != model:
        own, other = other, own
    assert (own["system"], own["n"], own["rank"]) == (model, 12, 1)
    assert own["weighted"] > other["weighted"]
    assert (own["requests"], own["input_tokens"], own["output_tokens"]) == (12, 2400, 360)
    assert own["price_per_1000"] == pytest.approx(0.5)
    assert own["milliseconds"] > 0
    assert own["service"].startswith("openai:small|prompt:")
    assert "requests" not in other
    assert {sent["message"] for sent in server.sent} == {row[0] for row in ROWS}, "the guard is off, as for figures"
    text = shown(mrs_here("score", predictions, "--language", "en", "--model", model))
    for part in ("price per 1000", "0.5000", "input tokens", "2,400", own["service"]):
        assert part in text


def test_answers_are_tested_against_a_file(mrs_here: Command, model: str, predictions: Path) -> None:
    found = json.loads(
        shown(mrs_here("score", "--compare", predictions, "--language", "en", "--model", model, "--json"))
    )
    assert [system["system"] for system in found["systems"]] == [model, predictions.name]
    assert found["tests"][0]["difference"] > 0


@pytest.mark.parametrize(
    "words",
    [["-", "--language", "en"], ["scores.json", "--language", "en"], ["losses.tsv", "--metric", "reply_perplexity"]],
)
def test_models_that_cannot_be_scored(mrs_here: Command, model: str, words: list[str]) -> None:
    sentence = refused(mrs_here("score", *words, "--model", model))
    assert sentence.startswith("mrs score: --model answers the messages of a prediction file")


def test_a_key_in_the_environment_is_nowhere_in_the_output(
    mrs_here: Command, server: ChatServer, model: str, predictions: Path
) -> None:
    assert os.environ["OPENAI_API_KEY"] == KEY
    for words in (
        ["suggest", "--model", model, "--json", "--explain", "Are you coming to dinner?"],
        ["score", predictions, "--language", "en", "--model", model],
    ):
        code, out, err = mrs_here(*words)
        assert code == 0, err
        assert KEY not in out + err
    assert set(server.keys) == {f"Bearer {KEY}"}
