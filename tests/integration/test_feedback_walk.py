"""From a canary to a better model: clicks of simulated people over HTTP, a comparison, and weights tuned to them."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("fastapi")

from mrs_suggest import Suggester
from mrs_suggest.common.hub.baselines import SHIPPED, read_baselines
from mrs_suggest.models.saved.families import family_of, write_record
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.serving import Client
from mrs_suggest.suggest.own_replies.sets import copied
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.mixture import standardised
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from tests.command import shown
from tests.conftest import Mrs
from tests.mrs_suggest.serving.server_process import ServerProcess

CONVERSATIONS = 2000
STARTS = ("Are you coming to", "Do you want to go to", "Can you pick me up after", "I am really looking forward to",
          "Sorry, I cannot come to", "What time is", "Did you like", "Who else is coming to")  # fmt: skip
THINGS = ("dinner", "the cinema", "the concert", "football practice", "the birthday party", "the meeting", "yoga class")
TIMES = ("tonight?", "tomorrow evening?", "on Friday?", "next week?")
MESSAGES = [" ".join(words) for words in itertools.product(STARTS, THINGS, TIMES)]
BY_PLACE = (0.0, -0.4, -0.8)  # people look at the first suggestion more often
WRITING = 2.5  # how much they like to write something else
LIKING = 1.2  # of a reply that messages like this one received


def degraded(out: Path) -> Path:
    """A copy of the model that prefers what is frequent."""
    model = read_baselines()[SHIPPED].folder
    with copied(model, (), out, False) as partial:
        path = partial / "ranker" / "ranker.json"
        settings = json.loads(path.read_text(encoding="utf-8"))
        settings["weights"] = {code: {"log_prob": 0.6, "nearest": 0.4} for code in settings["weights"]}
        path.write_text(json.dumps(settings), encoding="utf-8")
        record = read_record(model)
        write_record(partial, record, family_of(record))
    return out


def tastes() -> Callable[[str, str], float]:
    """How much people like a reply to a message: how near a message was that received it, by a known rule."""
    model = Suggester.from_pretrained(SHIPPED).model
    assert isinstance(model, RetrievalSuggester)
    ranker: LanguageRanker = model.rankers["en"]
    rows = {reply: row for row, reply in enumerate(ranker.index.replies)}
    column = ranker.settings.names.index("nearest")
    vectors = dict(zip(MESSAGES, model.message_vectors(MESSAGES), strict=True))
    known: dict[str, Any] = {}

    def liking(message: str, reply: str) -> float:
        if message not in known:
            known[message] = standardised(ranker.parts(message, vectors[message], ["nearest"]))[:, column]
        return LIKING * float(known[message][rows[reply]])

    return liking


def chooses(rng: np.random.Generator, likings: list[float]) -> int | None:
    """The place of the suggestion that a person chooses, from 1; None: they write something else."""
    utility = np.array([*(one + place for one, place in zip(likings, BY_PLACE, strict=False)), WRITING])
    picked = int(np.argmax(utility + rng.gumbel(size=len(utility))))
    return None if picked == len(likings) else picked + 1


def test_the_canary_is_better_and_clicks_make_the_old_model_better(tmp_path: Path, mrs: Mrs) -> None:
    a, path, rng, liking = degraded(tmp_path / "a"), tmp_path / "clicks.sqlite", np.random.default_rng(1), tastes()
    arguments = ("--model", f"a={a}", "--model", f"b={SHIPPED}", "--traffic", "a=0.9", "--traffic", "b=0.1")
    with ServerProcess(*arguments, "--feedback", path, folder=tmp_path) as server:
        server.wait_for_workers()
        with Client(server.url) as client:
            for number in range(CONVERSATIONS):
                message = MESSAGES[rng.integers(len(MESSAGES))]
                (answer,) = client.suggest([message], "en", session=f"conversation {number}")
                assert len(answer.version or "") == 12
                places = list(range(1, len(answer.replies) + 1))
                chosen = chooses(rng, [liking(message, reply) for reply in answer.replies])
                client.feedback(answer, chosen, shown=places)
        logged = [line for line in server.log if "/v1/feedback" in line]
        assert json.loads(logged[0])["status"] == 204
        assert not [line for line in server.log if any(message in line for message in MESSAGES)], (
            "what people write is logged"
        )

    def ran(*words: object) -> Any:
        done = mrs("feedback", *words, "--json", cwd=tmp_path)
        return json.loads(shown((done.returncode, done.stdout, done.stderr)))

    figures = {one["model"]: one for one in ran("report", path) if (one["language"], one["tag"]) == ("all", "")}
    assert figures["a"]["sessions"] + figures["b"]["sessions"] == CONVERSATIONS
    assert 150 <= figures["b"]["sessions"] <= 250
    printed = mrs("feedback", "report", path, cwd=tmp_path)
    assert "one chosen" in shown((printed.returncode, printed.stdout, printed.stderr))
    compared = ran("compare", path, "b", "a")
    assert 0 < compared["interval"][0] < compared["difference"] < compared["interval"][1]
    assert compared["p"] < 0.01

    tuned = ran("tune", path, "--model", a, "--out", tmp_path / "tuned")
    assert tuned["theta"]["nearest"] * 0.4 == pytest.approx(LIKING, rel=0.25), "the rule by which people choose"
    assert tuned["theta"]["log_prob"] < 0.2
    fresh = np.random.default_rng(2)

    def accepted(model: Path) -> float:
        answers = Suggester.from_pretrained(model).suggest(MESSAGES, "en")
        asked = [(message, answer.replies) for message, answer in zip(MESSAGES, answers, strict=True)] * 8
        found = [chooses(fresh, [liking(message, reply) for reply in replies]) for message, replies in asked]
        return float(np.mean([one is not None for one in found]))

    before, after = accepted(a), accepted(tmp_path / "tuned")
    assert after > before + 0.05, (before, after)
