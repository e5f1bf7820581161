"""A language model behind a server next to runs: it answers their test messages."""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
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


def test_latency_stands_next_to_quality(make_run: MakeRun, mrs_here: Command, server: ChatServer) -> None:
    run, name = make_run("one", "en", known=0.2), f"openai:{server.url}#small"
    out = shown(mrs_here("compare", name, run))
    assert "seconds / 1,000" in out
    head = next(line for line in out.splitlines() if "milliseconds a message" in line)
    assert "weighted ROUGE" in head
    assert "price" not in head, "the server has none"
    assert "output_tokens 720" in " ".join(out.split())
    assert "Random" in out, "the baselines of the run"
    assert "milliseconds" not in shown(mrs_here("compare", run)), "of runs alone, which may be of several machines"


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


def test_the_guard_on_stands_next_to_it_off(make_run: MakeRun, mrs_here: Command, server: ChatServer) -> None:
    run, name = make_run("one", "en", known=0.2), f"openai:{server.url}#small"
    shutil.copytree(resolve_model(SHIPPED), run, dirs_exist_ok=True, ignore=shutil.ignore_patterns("run.json"))
    answer = server.content
    server.content = lambda request: answer(request).replace("hat?", "You idiot")
    words = ("compare", run, name, "--guard", "both", "--fallback", name, "--fallback-share", ".5")
    found = json.loads(shown(mrs_here(*words, "--format", "json")))
    rows = {row["name"]: row for row in found["rows"]}
    both = f"one, fallback {name}"
    assert list(rows) == ["one", name, both, "one, guard on", f"{name}, guard on", f"{both}, guard on"]
    answered = {label: rows[label]["runs"][0].get("answered", {}) for label in rows}
    assert ["silent" in answered[label] for label in rows] == [False] * 3 + [True] * 3
    assert answered[f"{name}, guard on"]["silent"] == 0
    assert 0 < answered[both]["passed_on"] <= 1
    assert answered[both]["requests"] == round(24 * answered[both]["passed_on"])
    figures = {one["metric"]: one["mean"] for one in rows[f"{name}, guard on"]["figures"]}
    assert figures["milliseconds"] > 0
    assert "price_per_1000" not in figures


def by_name(request: dict[str, Any]) -> str:
    """A judge who prefers sets with "today", and the first one if both have it."""
    sent = json.loads(request["messages"][1]["content"])
    return json.dumps({"better": [next((key for key in ("first", "second") if "today" in str(sent[key])), "tie")]})


def test_a_judge_compares_both_ways(make_run: MakeRun, mrs_here: Command) -> None:
    one, two = make_run("one", "en", known=0.0), make_run("two", "en", known=1.0)
    with chat_server(by_name) as judge:
        name = f"openai:{judge.url}#wise"
        found = json.loads(shown(mrs_here("compare", one, two, "--judge", name, "--format", "json")))
        (win,) = found["wins"]
        right = [sent for sent in judge.sent if "today" in str(sent)]
        assert (win["row"], win["language"], win["n"]) == ("two", "en", 24)
        assert win["share"] == pytest.approx(0.5 + len(right) / 2 / 48)
        assert win["interval"][0] < win["share"] < win["interval"][1]
        assert len(judge.sent) == 48, "each message in both orders"
        assert {sent["message"] for sent in judge.sent} == {f"message {n} " for n in range(24)}
        assert "judge|model:wise|prompt:" in found["judge"][1]
        text = shown(mrs_here("compare", one, two, "--judge", name, "--format", "markdown"))
        assert "The judge prefers two to one (en) in " in text
        assert "of 24 messages, ties half" in text
        judge.content = lambda _: "Hm."
        assert "no clear answer" in refused(mrs_here("compare", one, two, "--judge", name))
        sent = len(judge.sent)
        equal = make_run("three", "en", known=0.0)
        found = json.loads(shown(mrs_here("compare", one, equal, "--judge", name, "--format", "json")))
        assert (found["wins"][0]["share"], len(judge.sent)) == (0.5, sent), "equal suggestions are not asked about"
