"""Messages of several languages are encoded together, and answered as if each came alone."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mrs_suggest.common.hub.baselines import SHIPPED, read_baselines
from mrs_suggest.serving.served import Question, ServedSuggester
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.conversation import Conversation, read_conversations
from mrs_suggest.suggest.index.response_index import Array
from mrs_suggest.suggest.remembering import REMEMBERED, remembering
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester, weights_encoder
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

MIXED = cases(__file__, "MIXED")
CHAT = [{"from": "them", "text": "I passed the exam!"}, {"from": "them", "text": "Shall we celebrate on Friday?"}]


@pytest.fixture
def calls() -> list[list[str]]:
    return []


@pytest.fixture
def suggester(calls: list[list[str]]) -> Suggester:
    folder = read_baselines()[SHIPPED].folder
    encode = weights_encoder(folder)

    def counted(texts: list[str]) -> Array:
        calls.append(texts)
        return encode(texts)

    model = Suggester.from_pretrained(folder).model
    assert isinstance(model, RetrievalSuggester)
    return Suggester(model.with_encoder(remembering(counted)), folder)


def test_a_batch_of_many_languages_is_one_call(suggester: Suggester, calls: list[list[str]]) -> None:
    together = suggester.suggest([*MIXED, CHAT])
    assert len(calls) == 1, calls
    assert len(calls[0]) == len(set(calls[0]))
    alone = [suggester.suggest(one) for one in [*MIXED, CHAT]]
    assert len(calls) == 1, "the vectors are still known"
    fresh = Suggester.from_pretrained(read_baselines()[SHIPPED].folder)
    for one, answer, same in zip([*MIXED, CHAT], together, alone, strict=True):
        other = fresh.suggest(one)
        assert answer.replies == same.replies == other.replies
        assert (answer.language, answer.reason) == (other.language, other.reason)
        np.testing.assert_allclose([row.score for row in answer], [row.score for row in other], atol=1e-5)
    assert {answer.language for answer in together} >= {"de", "en", "es", "fr", "nl", "ru", "ja"}
    assert together[4].reason == "grief"


def test_questions_with_different_options_are_one_call(suggester: Suggester, calls: list[list[str]]) -> None:
    settings = Settings((SHIPPED,))
    asked: Sequence[Conversation] = read_conversations(MIXED)
    questions = [Question(one, None, 3, False) for one in asked]
    questions[0], questions[1] = replace(questions[0], language="de"), replace(questions[1], k=2)
    questions[3] = replace(questions[3], prefer=("es",))
    items = ServedSuggester(suggester, settings).answer(questions)
    assert len(calls) == 1
    assert [item["message"] for item in items] == MIXED
    assert [len(items[number]["suggestions"]) for number in (0, 1, 3)] == [3, 2, 3]


def test_harmless_phrases_are_looked_at_together(suggester: Suggester, calls: list[list[str]]) -> None:
    """What the space finds is read once more without them, in one further call for a language."""
    guard = suggester.guard
    assert guard is not None
    lists = guard.data["en"]
    harmless = [text for text in HARMLESS if lists.without_harmless(text) != text]
    assert len(harmless) > 1
    space = guard.space
    assert space is not None
    found: Callable[..., list[str | None]] = lambda texts, vectors: ["grief"] * len(texts)  # noqa: E731
    object.__setattr__(space, "reasons", found)
    reasons = guard.reasons(harmless, "en")
    assert len(calls) == 2
    assert reasons == ["grief"] * len(harmless)


HARMLESS = ["I'm dying of laughter, what a film last night", "This traffic is killing me, I will be ten minutes late"]


def test_old_vectors_are_forgotten() -> None:
    calls = list[int]()

    def encode(texts: list[str]) -> Array:
        calls.append(len(texts))
        return np.array([[float(text)] for text in texts], np.float32)

    remembered = remembering(encode)
    for number in range(REMEMBERED + 1):
        remembered([str(number)])
    assert remembered(["1", "1"]).tolist() == [[1], [1]]
    assert len(calls) == REMEMBERED + 1
    assert remembered(["0", "1"]).tolist() == [[0], [1]]
    assert calls[-1] == 1, "the first was forgotten"
    many = [str(number) for number in range(2 * REMEMBERED)]
    assert remembered(many)[:, 0].tolist() == list(map(float, many))
    remembered(["1"])
    assert len(calls) == REMEMBERED + 3, "a large call does not push the others out"
    assert remembered([]).shape == (0,)
