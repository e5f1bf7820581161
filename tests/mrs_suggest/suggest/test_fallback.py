"""A second model for the messages of which the first is unsure, here one behind a server on this machine."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.fallback import FALLBACK, WithFallback, load_model
from mrs_suggest.suggest.language_model import chat
from mrs_suggest.suggest.suggester import Suggester
from tests.chat_server import REPLIES, ChatServer, Failure, chat_server
from tests.command import refused, shown

UNSURE = "The quarterly report mentions nine oddly shaped violins and a lighthouse."
SURE = "Thank you so much for your help yesterday!"
THREE = REPLIES["English"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(chat.ChatPoster, "first_wait", 0.01)
    with chat_server() as running:
        yield running


@pytest.fixture
def model(server: ChatServer, tmp_path: Path) -> str:
    (tmp_path / "model.yaml").write_text(
        f"url: {server.url}\nmodel: small\nprice_per_million: {{input: 1, output: 10}}\nlanguages: [en, de]\n"
    )
    return f"openai:{tmp_path}/model.yaml"


def open_both(model: str, threshold: float, guard: bool = True) -> Suggester:
    """The embedded model with a threshold of the test's own."""
    first, folder = load_model("everyday-retriever")
    both = WithFallback.load(first, model)
    both.threshold = threshold
    return Suggester(both, folder, guard)  # type: ignore[arg-type]


def test_the_threshold_is_that_of_the_share_on_validation(model: str) -> None:
    first, _ = load_model("everyday-retriever")
    assert first.trigger
    answered = {at: share for at, share, _ in first.trigger.curve}
    few, many = (WithFallback.load(first, model, share).threshold for share in (0.1, 0.5))
    assert few < many
    assert answered[few] >= 0.9
    assert answered[many] >= 0.5
    for share in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="--fallback-share .*: expected a share"):
            WithFallback.load(first, model, share)


def test_unsure_messages_alone_are_passed_on_with_earlier_turns(server: ChatServer, model: str) -> None:
    both = open_both(model, 0.0)
    first = both.suggest([UNSURE, SURE], "en")
    unsure, sure = both.model.used([UNSURE, SURE], "en") or []
    assert unsure < sure
    assert server.requests == []
    both = open_both(model, (unsure + sure) / 2)
    found = both.suggest([UNSURE, SURE], "en")
    assert found[0].replies == THREE
    assert {one.source for one in found[0]} == {FALLBACK}
    assert found[1].replies == first[1].replies
    assert server.sent == [{"message": UNSURE}]
    assert both.model.usage() == {
        "passed_on": 0.5, "requests": 1, "input_tokens": 200, "output_tokens": 30,
        "price_per_1000": pytest.approx(0.25),
    }  # fmt: skip
    turns = [("them", "Lunch?"), ("me", "Maybe"), ("them", UNSURE)]
    open_both(model, 2.0).suggest([{"from": who, "text": text} for who, text in turns], "en")
    assert server.sent[-1]["message"] == UNSURE
    assert [turn["text"] for turn in server.sent[-1]["earlier"]] == ["Lunch?", "Maybe"]


def test_the_guard_and_the_language_hold_before_and_after(server: ChatServer, model: str) -> None:
    both = open_both(model, 2.0)
    assert both.suggest("I want to kill myself", "en").reason == "self_harm"
    assert server.requests == [], "the guard comes first"
    server.planned = [
        json.dumps(["You idiot", "Das klingt sehr gut, ich komme gerne.", "See https://evil.example/x", "Sure!"])
    ]
    assert both.suggest(UNSURE, "en").replies == ["Sure!"]
    assert len(server.requests) == 1, "no second request for those that were left out"
    server.planned = ["I cannot help with that."]
    assert both.suggest(UNSURE, "en").replies == open_both(model, 0.0).suggest(UNSURE, "en").replies
    assert both.suggest("Kommst du heute Abend zum Essen?").replies == REPLIES["German"]
    sent = len(server.requests)
    assert both.suggest("¿Vienes a cenar esta noche?", "es").replies, "a language that the second model lacks"
    assert both.suggest("ok", "en").replies
    assert len(server.requests) == sent


def test_if_the_server_fails_the_first_model_answers(
    server: ChatServer, model: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.planned = [Failure(500)] * 3
    answer = open_both(model, 2.0).suggest(UNSURE, "en")
    assert answer.replies
    assert {one.source for one in answer} != {"fallback"}
    assert "failed with HTTP 500" in caplog.text
    assert UNSURE not in caplog.text


def test_the_command_reports_what_was_passed_on(mrs_here, server: ChatServer, model: str) -> None:  # type: ignore[no-untyped-def]
    words = ("suggest", "--fallback", model, "--fallback-share", ".9", "--language", "en")
    code, out, err = mrs_here(*words, "--explain", "--json", UNSURE)
    assert code == 0, err
    assert [one["source"] for one in json.loads(out)["suggestions"]] == [FALLBACK] * 3
    assert "fallback: passed_on 1, requests 1, input_tokens 200, output_tokens 30, price_per_1000 0.5" in err
    assert "the first model has no calibration" in refused(
        mrs_here("suggest", "--model", model, "--fallback", model, "Hi there")
    )
    assert "leave one of them out" in refused(mrs_here(*words, "--precision", ".5", UNSURE))
    assert "fallback" not in shown(mrs_here("suggest", "--language", "en", UNSURE))
