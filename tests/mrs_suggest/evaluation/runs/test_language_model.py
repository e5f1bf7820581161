"""A language model behind a server next to runs: it answers their test messages."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import ChatServer, chat_server
from tests.command import Result, refused, shown

MakeRun = Callable[..., Path]
Command = Callable[..., Result]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    def content(request: dict[str, Any]) -> str:
        number = json.loads(request["messages"][1]["content"])["message"].split()[1]
        return json.dumps({"replies": ["the cat sat today", f"warm red {number}", "hat?"]})

    with chat_server(content) as running:
        yield running


def test_a_language_model_stands_next_to_a_run(
    make_run: MakeRun, mrs_here: Command, server: ChatServer, tmp_path: Path
) -> None:
    run = make_run("one", "en es", known=0.2)
    path = tmp_path / "model.yaml"
    path.write_text(f"url: {server.url}\nmodel: small\nprice_per_million: {{input: 1, output: 10}}\nlanguages: [en]\n")
    name = f"openai:{path}"
    found = json.loads(shown(mrs_here("compare", run, name, "--format", "json")))
    assert [row["name"] for row in found["rows"]] == ["one", name]
    (row,) = [row for row in found["rows"] if row["name"] == name]
    figures = {(one["language"], one["metric"]): one["mean"] for one in row["figures"]}
    assert 0 < figures["en", "weighted"] < 1
    assert ("es", "weighted") not in figures
    assert [(lead["row"], lead["over"], lead["language"]) for lead in found["leads"]] == [(name, "one", "en")]
    answered = row["runs"][0]["answered"]
    assert (answered["requests"], answered["input_tokens"], answered["output_tokens"]) == (24, 4800, 720)
    assert answered["price_per_1000"] == pytest.approx(0.5)
    text = shown(mrs_here("compare", run, name, "--format", "markdown"))
    assert "requests 24, input_tokens 4800, output_tokens 720, price_per_1000 0.5, service openai:small" in text
    assert "prompt:" in text


def test_there_must_be_messages_to_answer(
    make_run: MakeRun, mrs_here: Command, server: ChatServer, tmp_path: Path
) -> None:
    name = f"openai:{server.url}#small"
    sentence = refused(mrs_here("compare", name, "everyday-retriever"))
    assert (
        sentence == f"mrs compare: {name}: no other run has predictions.LANG.tsv in a language of the model; name one."
    )
    run = make_run("one", "en")
    (run / "predictions.en.tsv").unlink()
    assert "name one." in refused(mrs_here("compare", run, name))
    assert server.requests == []
