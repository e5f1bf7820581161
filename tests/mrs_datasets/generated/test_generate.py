"""Pairs that a teacher writes: hostile answers are dropped and counted, and nothing is asked for twice."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.generated.generate import ANSWERS, Question, Task, Teacher, generate, read_task
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.data.generate import _teacher as reader
from mrs_suggest.common.errors import InputError
from tests.cases import cases

INTENT = "lunch: asks somebody to have lunch together"
MESSAGES = [f"Are you coming to lunch with us {when}?" for when in ("today", "tomorrow", "later", "on Friday", "then")]
REPLIES = ["[yes] Sure, I'd love to!", "[no] Sorry, I can't make it.", "[ask] Where are you going?"]
TASK = Task("canteen", "colleagues who have lunch", ("en",), registers=("informal",), intents=2, messages=5, replies=3)
Answer = Callable[[dict[str, Any]], object]


def plain(asked: dict[str, Any]) -> object:
    """The answer of a teacher that does as it is told."""
    return {asked["step"]: {"intents": [INTENT], "messages": MESSAGES, "replies": REPLIES}[asked["step"]]}


def instead(step: str, answer: object) -> Answer:
    """A teacher that gives another answer in one step."""
    return lambda asked: answer if asked["step"] == step else plain(asked)


def teaching(answer: Answer = plain, asked: list[Question] | None = None) -> Teacher:
    def ask(question: Question) -> str:
        if asked is not None:
            asked.append(question)
        found = answer(question.user)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return reader("some-model", "cc-by-4.0")._replace(ask=ask)


def texts(out: Path, column: str) -> set[str]:
    data = open_prepared(str(out))
    return {text for split in data.splits("en") for text in data.load("en", split)[column]}


def test_a_folder_with_pairs_responses_and_a_card(tmp_path: Path) -> None:
    report = generate(TASK, teaching(), tmp_path / "out")
    assert texts(tmp_path / "out", "message") == set(MESSAGES)
    assert texts(tmp_path / "out", "reply") == {"Sure, I'd love to!", "Sorry, I can't make it.", "Where are you going?"}
    assert texts(tmp_path / "out", "stance") == {"yes", "no", "ask"}
    assert texts(tmp_path / "out", "register") == {"informal"}
    assert open_prepared(str(tmp_path / "out")).load("en-responses", "train").num_rows == 3
    assert report["dropped"] == {}
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert "\nlicense: cc-by-4.0\n" in card
    assert "canteen: written by some-model; licence of its answers, as stated by the user: cc-by-4.0." in card
    assert "Texts that a person reviewed: none so far." in card


@pytest.mark.parametrize(
    ("step", "answer", "kept", "reason"), cases(__file__, "test_an_unusable_text_is_dropped_and_counted")
)
def test_an_unusable_text_is_dropped_and_counted(
    tmp_path: Path, step: str, answer: list[str], kept: int, reason: str
) -> None:
    task = Task(TASK.name, TASK.domain, ("en",), avoid=("Secret Sauce",), registers=("informal",), replies=3)
    more = REPLIES[:1] if step == "replies" and not kept else []  # so that something is left
    found = {step: more + answer} if step == "replies" else {step: MESSAGES[:2] + answer}
    report = generate(task, teaching(instead(step, found)), tmp_path / "out")
    assert report["dropped"] == {f"en/{step}": {reason: 1}}
    column = {"replies": "reply", "messages": "message"}[step]
    assert len(texts(tmp_path / "out", column)) == (kept or len(found[step]) - 1)


@pytest.mark.parametrize(
    "answer",
    ["", "I cannot help with that.", "{", '{"replies": 3}', '{"replies": [{"text": "Sure!"}]}', "[" * 5000, "null"],
)
def test_an_answer_without_a_list_is_counted(tmp_path: Path, answer: str) -> None:
    def in_two(asked: dict[str, Any]) -> object:
        if asked["step"] == "intents":
            return {"intents": [INTENT, "Tea time: asks for tea", "tea-time: again", "no description", "x"]}
        return answer if (asked["step"], asked["intent"]) == ("replies", "tea-time") else plain(asked)

    report = generate(TASK, teaching(in_two), tmp_path / "out")
    assert report["dropped"]["en/replies"] == {"answer without a list": 1}
    assert report["dropped"]["intents"] == {"more than asked for": 1, "no id and description": 2}
    assert "en: intents without messages or replies: tea-time; tags of replies: yes, no, ask." in report["notes"]


def test_a_cut_answer_gives_its_whole_texts(tmp_path: Path) -> None:
    generate(TASK, teaching(instead("replies", '```json\n{"replies": ["[yes] Sure!", "[no] Sorry, no.", "[as')),
             tmp_path / "out")  # fmt: skip
    assert texts(tmp_path / "out", "reply") == {"Sure!", "Sorry, no."}


@pytest.mark.parametrize("step", ["intents", "messages"])
def test_a_teacher_that_refuses_everything_is_one_sentence(tmp_path: Path, step: str) -> None:
    with pytest.raises(InputError, match="names no intents; delete|has no data"):
        generate(TASK, teaching(instead(step, "I'm sorry, but no.")), tmp_path / "out")
    assert (tmp_path / "out" / ANSWERS).is_file()


@pytest.mark.parametrize("error", [InputError("the server fails"), KeyboardInterrupt()])
def test_an_interrupted_run_asks_only_for_the_rest(tmp_path: Path, error: BaseException) -> None:
    asked: list[Question] = []

    def failing(user: dict[str, Any]) -> object:
        if user["step"] == "replies":
            raise error
        return plain(user)

    with pytest.raises(type(error)):
        generate(TASK, teaching(failing, asked), tmp_path / "out")
    kept = (tmp_path / "out" / ANSWERS).read_bytes()
    (tmp_path / "out" / ANSWERS).write_bytes(kept + b'{"teacher": "some-mo')  # killed while it wrote a line
    again: list[Question] = []
    generate(TASK, teaching(plain, again), tmp_path / "out")
    assert [question.user["step"] for question in again] == ["replies"]
    assert (tmp_path / "out" / ANSWERS).read_bytes().startswith(kept)
    assert len((tmp_path / "out" / ANSWERS).read_text("utf-8").splitlines()) == 3
    first = (tmp_path / "out" / "report.json").read_bytes()
    generate(TASK, teaching(plain, again), tmp_path / "out")
    assert len(again) == 1, "a complete folder is made again from its answers"
    assert (tmp_path / "out" / "report.json").read_bytes() == first


def test_another_language_and_another_teacher_ask_for_what_is_new(tmp_path: Path) -> None:
    asked: list[Question] = []
    generate(TASK, teaching(), tmp_path / "out")
    both = Task(TASK.name, TASK.domain, ("en", "de"), registers=("informal",), intents=2, messages=5, replies=3)
    generate(both, teaching(plain, asked), tmp_path / "out")
    assert {question.language for question in asked} == {"de"}
    generate(TASK, teaching(plain, asked)._replace(name="another-model"), tmp_path / "out")
    assert len(asked) == 2 + 3


def test_a_folder_of_the_user_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(InputError, match="refusing to overwrite"):
        generate(TASK, teaching(), tmp_path)


@pytest.mark.parametrize(("content", "problem"), cases(__file__, "test_a_bad_task_file_is_one_sentence"))
def test_a_bad_task_file_is_one_sentence(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "task.yaml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="task.yaml") as told:
        read_task(path)
    assert problem in str(told.value)
    assert "\n" not in str(told.value)
    assert str(told.value).endswith(".")
