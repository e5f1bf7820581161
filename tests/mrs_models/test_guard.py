"""What keeps a suggester silent: sensitive messages, unfit replies, and the reasons in the answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from mrs_core.errors import InputError
from mrs_models.answering import ServedModel, Suggestion, reply_texts
from mrs_models.suggester import Suggester


class Fixed(ServedModel):
    """Suggests the same replies, best first, whatever the message is."""

    def __init__(self, replies: Sequence[str], most: int = 99) -> None:
        self.replies, self._most = list(replies), most
        self.asked: list[tuple[list[str], int]] = []

    @property
    def languages(self) -> list[str]:
        return ["en", "pl"]

    def most(self, k: int) -> int:
        return min(k, self._most)

    def suggest(self, messages: Sequence[str], language: str, k: int = 3) -> list[list[Suggestion]]:
        self.asked.append((list(messages), k))
        row = [Suggestion(reply, -float(rank)) for rank, reply in enumerate(self.replies[:k])]
        return [row if message.strip() else [] for message in messages]


def test_a_sensitive_message_gets_no_suggestion_and_a_reason() -> None:
    model = Fixed(["Thank you so much!", "The help desk can fix that for you.", "Yes"])
    messages = ["kill yourself", "Coming?", "I lost my job today", " "]
    answers = Suggester(model).suggest(messages, "en")
    assert [answer.reason for answer in answers] == ["self_harm", None, "hardship", "blank"]
    assert [len(answer) for answer in answers] == [0, 3, 0, 0]
    assert model.asked == [(["Coming?"], 3)], "the model never sees a message that is not answered"
    off = Suggester(model, guard=False).suggest(messages, "en")
    assert [(len(answer), answer.reason) for answer in off] == [(3, None)] * 3 + [(0, "blank")]


@pytest.mark.parametrize(
    "unfit",
    [
        "You idiots",
        "Write to ann@example.org.",
        "Call 020 7946 0958",
        "See www.example.org",
        "At 5 pm.",
        "Monday is fine",
        "I'm in Paris",
        "Room 12, 7 Baker Street",
    ],
)
def test_the_next_best_takes_the_place_of_an_unfit_suggestion(unfit: str) -> None:
    model = Fixed(["Yes", unfit, "No", "Maybe", "Later"])
    answers = Suggester(model).suggest(["Hi", "Hello"], "en")
    assert reply_texts(answers) == [["Yes", "No", "Maybe"]] * 2
    assert reply_texts(Suggester(model, guard=False).suggest(["Hi"], "en")) == [["Yes", unfit, "No"]]


def test_what_the_message_says_may_be_repeated() -> None:
    model = Fixed(["Yes, 5 pm on Monday in Paris!", "No", "Maybe"])
    suggester = Suggester(model)
    assert len(suggester.suggest(["Shall we meet in Paris on Monday at 5?"], "en")[0]) == 3
    assert reply_texts(suggester.suggest(["Shall we meet in Paris on Monday at 6?"], "en")) == [["No", "Maybe"]]


def test_a_model_without_more_to_say_gives_fewer() -> None:
    model = Fixed(["Shit", "Yes", "Fuck", "Well, shit.", "No"], most=4)
    assert reply_texts(Suggester(model).suggest(["Hi"], "en")) == [["Yes"]]
    assert [k for _, k in model.asked] == [3, 4]


def test_a_language_without_lists_is_answered_and_still_gets_no_links() -> None:
    model = Fixed(["Tak", "https://example.org", "Nie"])
    assert reply_texts(Suggester(model).suggest(["Cześć"], "pl")) == [["Tak", "Nie"]]


def test_lists_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    own = tmp_path / "lists" / "en.yaml"
    own.write_text('grief: ["(lost/missing) my [old] teddy*"]\nneutral: {grief: ["I am thinking of you."]}\n')
    suggester = Suggester(Fixed(["Yes", "No", "Shit"]), guard=tmp_path)
    first, second, third = suggester.suggest(["I lost my old teddy bear", "kill yourself", "Teddy?"], "en")
    assert (reply_texts([first]), first.reason) == ([["I am thinking of you."]], "grief")
    assert (second.reason, len(second), len(third)) == (None, 3, 3), "the file takes the place of the package's"
    for text, problem in (
        ("grieff: [a]", "unknown key 'grieff'"),
        ("grief: death", "en.yaml, grief: expected a list of texts"),
        ("slurs: [no, ouch]", "in quotes"),
        ("grief: ['[my] dog died']", "has to begin with a word"),
        ("grief: ['(my dog']", "brackets that do not pair"),
        ("grief: ['<kin> died']", "names the group <kin>"),
        ("neutral: {grif: [a]}", "'grif' is not a reason"),
        ("- a", "expected YAML with a mapping"),
        ("a: [", "cannot be read"),
    ):
        own.write_text(text)
        with pytest.raises(InputError, match="en.yaml") as error:
            Suggester(Fixed([]), guard=tmp_path).suggest(["hi"], "en")
        assert problem in str(error.value)
    with pytest.raises(InputError, match="no lists/ or prototypes/ folder"):
        Suggester(Fixed([]), guard=tmp_path / "lists")
