"""Conversations: which message is answered, in which language, without what was sent, and when nothing is said."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.answering import Answer
from mrs_suggest.suggest.conversation import RECENT, TURNS, Conversation, read_conversation, read_single
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

INVITED = "¿Quedamos mañana?"


def chat(*texts: str) -> list[dict[str, str]]:
    """Turns from texts; those that begin with `>` are mine."""
    return [{"from": "me" if text[:1] == ">" else "them", "text": text.removeprefix(">")} for text in texts]


def read(*texts: str) -> Conversation:
    return read_conversation(chat(*texts))


@pytest.fixture(scope="module")
def suggester() -> Suggester:
    return Suggester.from_pretrained("everyday-retriever")


def facts(answer: Answer) -> tuple[list[str], str | None, str | None]:
    return answer.replies, answer.reason, answer.language


# --- reading


@pytest.mark.parametrize(("texts", "message", "before"), cases(__file__, "test_their_last_turns_are_one_message"))
def test_their_last_turns_are_one_message(texts: list[str], message: str, before: str) -> None:
    found = read(*texts)
    assert (found.message, found.before) == (message, before)
    assert found.mine == texts[-1].startswith(">")


def test_the_last_ten_turns_count() -> None:
    found = read(*(f">{n}" if n % 2 else str(n) for n in range(1, 26)), "x")
    assert [turn.text for turn in found.turns] == [*map(str, range(17, 26)), "x"]
    assert [turn.number for turn in found.turns] == list(range(17, 27))
    assert len(found.turns) == TURNS
    assert found.repeats("17!")
    assert not found.repeats("15")
    assert read("a").watched == []
    assert read("a", "b").watched == [("b", False), ("a", False)]
    assert read("a", ">b", "c", ">d", "e", ">f", "g").watched == [("e", False), ("c", True), ("a", True)]
    assert read(*"abcdef").watched == [(letter, False) for letter in "fedcba"]


@pytest.mark.parametrize(("turns", "sentence"), cases(__file__, "test_errors_name_the_turn"))
def test_errors_name_the_turn(suggester: Suggester, turns: list[Any], sentence: str) -> None:
    sentence = sentence.replace("{...}", '{"from": "them" or "me", "text": ...}')
    with pytest.raises(ArgumentError) as caught:
        suggester.suggest(turns)
    assert str(caught.value) == f"messages: {sentence}"
    with pytest.raises(ArgumentError) as caught:
        suggester.suggest(["a", turns])
    where = sentence.partition(":")[0]
    assert str(caught.value) == f"messages: {sentence.replace(where, f'{where} of the conversation at index 1', 1)}"


def test_other_things_are_refused(suggester: Suggester) -> None:
    for wrong, sentence in (
        ([[]], "messages: expected turns of the conversation at index 0, found none."),
        (chat("a")[0], "messages: expected a list of texts, found one dict; pass [message]."),
        (["a", chat("a")[0]], "messages: expected texts, found dict at index 1; pass str."),
    ):
        with pytest.raises(ArgumentError) as caught:
            suggester.suggest(wrong)
        assert str(caught.value) == sentence


# --- answering


def test_a_list_holds_texts_and_conversations(suggester: Suggester) -> None:
    asked = [
        INVITED,
        chat("See you", "tomorrow?"),
        chat("See you tomorrow?", ">Yes!"),
        chat(">Hi!", "See you tomorrow?"),
    ]
    answers = suggester.suggest(asked)
    assert [facts(answer) for answer in answers] == [facts(suggester.suggest(one)) for one in asked]
    assert answers[1].replies == suggester.suggest("See you tomorrow?").replies
    assert suggester.suggest([]) == []


def test_nothing_is_suggested_after_one_s_own_message(suggester: Suggester) -> None:
    for texts in ([INVITED, ">Vale"], [">Hola"], [INVITED, ">"], ["I want to kill myself", ">No!"]):
        assert facts(suggester.suggest(chat(*texts))) == ([], "own_message", None)
    assert facts(suggester.suggest(chat(">Hola"), "es")) == ([], "own_message", "es")
    assert suggester.suggest(chat(INVITED, " ", "\n")).replies == suggester.suggest(INVITED).replies
    assert suggester.suggest(chat(">Hola", " ", "\n")).reason == "blank"


@pytest.mark.parametrize(("texts", "language"), cases(__file__, "test_the_language_is_that_of_the_turns_before"))
def test_the_language_is_that_of_the_turns_before(suggester: Suggester, texts: list[str], language: str | None) -> None:
    answer = suggester.suggest(chat(*texts), prefer=["it"])
    assert (answer.language, answer.among) == (language, [])
    assert suggester.suggest(chat(*texts), "fr").language == "fr"


def test_languages_that_a_message_cannot_be_in_or_that_have_no_replies(suggester: Suggester) -> None:
    answer = suggester.suggest(chat("Как дела сегодня?", ">Хорошо, спасибо!", "de la"))
    assert answer.reason == "language_unclear"
    english = Suggester.from_pretrained("everyday-retriever").set_replies(["Sure!", "No, sorry.", "Great!"], "en")
    assert facts(english.suggest(chat(INVITED, ">Vale", "ok"))) == ([], "no_replies", "es")


@pytest.mark.parametrize("guard", [True, False])
def test_what_was_sent_is_not_suggested_again(guard: bool) -> None:
    suggester = Suggester.from_pretrained("everyday-retriever", guard=guard)
    ranked = suggester.suggest(INVITED, k=6).replies
    sent = [f">{reply.upper()}!!" for reply in (ranked[0], ranked[2])]
    assert suggester.suggest(chat(*sent, INVITED)).replies == [ranked[1], ranked[3], ranked[4]]
    assert suggester.suggest(chat(*sent, *"abcdefghi", INVITED)).replies  # too long ago
    own = suggester.set_replies(["¡Claro!", "No puedo.", "Quizás."], "es")
    again = chat(">claro", INVITED, ">no puedo", INVITED)
    assert facts(own.suggest(again, min_score=0)) == (["Quizás."], None, "es")
    assert facts(own.suggest(again, min_score=1)) == ([], "no_replies", "es")  # the score of the rest is too low
    assert facts(own.suggest(chat(">claro", ">Quizás", ">no puedo", INVITED))) == ([], "no_replies", "es")


@pytest.mark.parametrize(("text", "reason"), cases(__file__, "test_a_grave_turn_silences_the_whole_conversation"))
def test_a_grave_turn_silences_the_whole_conversation(suggester: Suggester, text: str, reason: str) -> None:
    far = chat(text, *[">No!", "Are you coming to the office tomorrow?"] * 4)
    assert suggester.suggest(far).reason == reason
    assert suggester.suggest(far, "en").reason == reason
    assert suggester.suggest([*far, *chat(">Yes", "Are you coming to the office tomorrow?")]).replies
    assert suggester.suggest(chat(f">{text}", "Are you coming to the office tomorrow?")).replies  # mine
    assert suggester.suggest(chat(text, "Are you coming to the office tomorrow?")).reason == reason


def test_other_reasons_silence_the_next_turns(suggester: Suggester) -> None:
    for text, reason in (("My dad died yesterday", "grief"), ("I lost my job today", "hardship")):
        for between in range(8):
            answer = suggester.suggest(chat(text, *[">Oh."] * between, "See you tomorrow?"))
            assert answer.reason == (reason if between <= RECENT - 2 else None)
    assert suggester.suggest(chat("I really want to", "kill myself")).reason == "self_harm"


def test_neutral_replies_are_not_repeated_either(suggester: Suggester, monkeypatch: pytest.MonkeyPatch) -> None:
    neutral = Answer(suggester.suggest(INVITED), "grief")
    monkeypatch.setattr(Guard, "silent", lambda self, reason, language: Answer(neutral, reason))
    first, *rest = neutral.replies
    assert suggester.suggest(chat(f">{first}", "My dad died yesterday"), "en").replies == rest


# --- any conversation

SAYINGS = st.sampled_from(
    ["ok", "", " ", "👍", INVITED, "Te digo algo luego.", "I will kill you", "1234", "\u202e\u200b"]
)
TURN = st.fixed_dictionaries(
    {"from": st.sampled_from(["them", "me"]), "text": st.one_of(SAYINGS, st.text(max_size=40))}
)


@settings(max_examples=150)
@given(st.lists(TURN, min_size=1, max_size=14), st.sampled_from([None, "es", "en"]), st.integers(1, 4))
def test_any_conversation_is_answered(
    suggester: Suggester, turns: list[dict[str, str]], language: str | None, k: int
) -> None:
    answer = suggester.suggest(turns, language, k)
    assert len(answer) <= k
    assert answer.reason is not None or answer.replies
    assert (answer.reason == "own_message") == (turns[-1]["from"] == "me")
    mine = {normalise_reply(turn["text"]) for turn in turns[-TURNS:] if turn["from"] == "me"}
    assert not mine & set(map(normalise_reply, answer.replies))
    assert facts(suggester.suggest(turns[-TURNS:], language, k)) == facts(answer)
    found = read_single(turns)
    assert found is not None
    assert dataclasses.replace(found) == found
    theirs = [turn["text"] for turn in turns[-TURNS:] if turn["from"] == "them"]
    assert {text for text, _ in found.watched} <= set(theirs)
