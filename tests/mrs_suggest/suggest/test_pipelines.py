"""`pipeline("reply-suggestion", ...)` of transformers answers as `Suggester.suggest` does."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from transformers import Pipeline, pipeline
from transformers.pipelines.pt_utils import KeyDataset

import mrs_suggest.suggest.pipelines
from mrs_suggest import Suggester
from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.reply_tags import ReplyTags
from tests.untrained import untrained_retriever
from tests.word_generator import make_run

REPLIES = ["Yes, sure!", "No, sorry.", "See you later.", "Thanks a lot!", "Maybe tomorrow."]
MESSAGES = ["Are you coming?", " ", "Can we meet?", "Hello!", "Lunch at noon?"]


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = untrained_retriever(tmp_path_factory.mktemp("pipeline"), REPLIES, ["en", "es"])
    ReplyTags.of([[], [], [], ["short"], ["short"]]).save(folder / ResponseIndexes.FOLDER / "en")
    return folder


@pytest.fixture(scope="module")
def suggest(retriever: Path) -> Pipeline:
    return pipeline("reply-suggestion", model=str(retriever))


def as_dictionaries(suggester: Suggester, messages: list[Any], **arguments: Any) -> list[list[dict[str, Any]]]:
    """What the pipeline should give, from the suggester itself."""
    return [
        [{"reply": one.reply, "score": one.score} for one in answer]
        or [{"reply": None, "score": None, "reason": answer.reason}]
        for answer in suggester.suggest(messages, **arguments)
    ]


def assert_same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same answer; a score's last digit depends on the other messages of a batch."""
    assert [one["reply"] for one in found] == [one["reply"] for one in expected]
    assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected])
    assert [one.keys() for one in found] == [one.keys() for one in expected]


def test_conversations_are_answered_as_the_suggester_answers_them(suggest: Pipeline, retriever: Path) -> None:
    chat = [{"from": "them", "text": text} for text in MESSAGES[2:4]]
    own = [*chat, {"from": "me", "text": "Hi!"}]
    expected = as_dictionaries(Suggester.from_pretrained(retriever), [MESSAGES[0], chat, own], language="en", k=2)
    assert expected[2] == [{"reply": None, "score": None, "reason": "own_message"}]
    for given in ([MESSAGES[0], chat, own], iter([MESSAGES[0], chat, own])):
        for one, other in zip(suggest(given, language="en", k=2), expected, strict=True):
            assert_same(one, other)
    assert_same(suggest(chat, language="en", k=2), expected[1])


def test_a_list_is_answered_as_the_suggester_answers_it(suggest: Pipeline, retriever: Path) -> None:
    expected = as_dictionaries(Suggester.from_pretrained(retriever), MESSAGES, language="en", k=2)
    assert expected[1] == [{"reply": None, "score": None, "reason": "blank"}]
    for one, other in zip(suggest(MESSAGES, language="en", k=2), expected, strict=True):
        assert_same(one, other)
    assert_same(suggest(MESSAGES[0], language="en", k=2), expected[0])
    assert suggest([], language="en") == []
    columns = Dataset.from_dict({"message": MESSAGES})
    for given in (columns["message"], KeyDataset(columns, "message")):
        for one, other in zip(suggest(given, language="en", k=2), expected, strict=True):
            assert_same(one, other)


def test_what_is_iterated_is_read_batch_by_batch(suggest: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = suggest.model.suggester.suggest
    monkeypatch.setattr(
        suggest.model.suggester, "suggest", lambda texts, **rest: (asked.append(len(texts)), answer(texts, **rest))[1]
    )
    endless = (f"Are you coming, {number}?" for number in itertools.count())
    found = suggest(endless, batch_size=3, language="en", k=1)
    assert [next(found)[0]["reply"] in REPLIES for _ in range(4)] == [True] * 4
    assert asked == [3, 3]
    asked.clear()
    suggest(MESSAGES, language="en", batch_size=2)
    assert asked == [2, 2, 1]


def test_tags_and_arguments_of_the_pipeline(suggest: Pipeline, retriever: Path) -> None:
    tagged = suggest("Hello!", language="en", k=5, allow=["short"])
    assert {one["reply"] for one in tagged} == {"Thanks a lot!", "Maybe tomorrow."}
    others = suggest("Hello!", language="en", k=5, deny=["short"])
    assert {one["reply"] for one in others} == set(REPLIES) - {"Thanks a lot!", "Maybe tomorrow."}
    english = pipeline("reply-suggestion", model=str(retriever), language="en", k=1, batch_size=2)
    assert [len(answer) for answer in english(MESSAGES)] == [1] * 5
    assert [len(answer) for answer in english(MESSAGES, k=3)] == [3, 1, 3, 3, 3]


def test_a_generator_answers(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", seed=3)
    expected = as_dictionaries(Suggester.from_pretrained(folder), ["he drinks water", ""], language="pt", k=2)
    assert expected[0][0]["reply"]
    found = pipeline("reply-suggestion", model=str(folder))(["he drinks water", ""], language="pt", k=2)
    assert_same(found[0], expected[0])
    assert found[1] == [{"reply": None, "score": None, "reason": "blank"}]


def test_without_a_model_the_shipped_one_answers_with_its_guard() -> None:
    shipped = pipeline("reply-suggestion")
    assert shipped("¿Quedamos mañana?", k=1)[0]["reply"]
    silent = shipped("My mother died yesterday.", language="en")
    assert silent == [{"reply": None, "score": None, "reason": "grief"}]
    folder = str(read_baselines()["everyday-retriever"].folder)
    answered = pipeline("reply-suggestion", model=folder, model_kwargs={"guard": False})
    assert answered("My mother died yesterday.", language="en")[0]["reply"]
    again = pipeline("reply-suggestion", model=Suggester.from_pretrained(folder, guard=False))
    message = "My mother died yesterday."
    assert_same(again(message, language="en"), answered(message, language="en"))


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda suggest: suggest("Hello!", top=3), "^top: not an argument of reply-suggestion; it takes allow"),
        (lambda suggest: suggest(["Hello!", 3]), "^messages: expected texts, found int at index 1"),
        (lambda suggest: suggest(3), "^inputs: expected a message, or a list or an iterable of messages, found int"),
        (lambda suggest: suggest("Hello!", 3), r"^args=\(3,\): name the arguments after the messages"),
        (lambda suggest: suggest({"message": "Hello!"}), "^inputs: .* found dict"),
        (lambda suggest: suggest("Hello!", language="xx"), "^language='xx': the model answers en es"),
        (lambda suggest: suggest("Hello!", language="en", k=0), "^k=0: expected a whole number from 1"),
        (lambda suggest: suggest("Hello!", language="en", allow=["no"]), "no"),
        (lambda suggest: pipeline("reply-suggestion", model=object()), "^model: object cannot suggest replies"),
        (lambda suggest: pipeline("reply-suggestion", model=suggest.model, device="cuda"), "^device='cuda': the"),
    ],
)  # fmt: skip
def test_wrong_arguments_get_a_sentence(suggest: Pipeline, ask: Callable[[Pipeline], Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        ask(suggest)


def test_a_damaged_folder_gets_the_sentence_of_the_suggester(retriever: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((retriever / "config.json").read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(InputError, match="no trained model"):
        pipeline("reply-suggestion", model=str(tmp_path))


def test_it_is_registered_once_and_never_saved_as_code(suggest: Pipeline, tmp_path: Path) -> None:
    mrs_suggest.suggest.pipelines.register()
    assert repr(suggest).startswith("ReplySuggestionPipeline")
    with pytest.raises(InputError, match="a reply-suggestion pipeline is not saved"):
        suggest.save_pretrained(tmp_path / "pipeline")
    assert not (tmp_path / "pipeline").exists()
