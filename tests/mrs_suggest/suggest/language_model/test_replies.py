"""What is read from the text of a language model, and which replies may be shown."""

from __future__ import annotations

import json

import pytest

from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.language_model import fitting_replies
from mrs_suggest.suggest.language_model.chat import LONGEST, read_replies
from tests.cases import cases

THREE = ["Sure!", "No, sorry.", "What time?"]
OBJECT = json.dumps({"replies": THREE})
READ = {
    "object": OBJECT,
    "list": json.dumps(THREE),
    "fence": f"```json\n{OBJECT}\n```",
    "fence with prose": f"Here you are:\n\n```\n{json.dumps(THREE, indent=1)}\n```\nAnything else?",
    "fence without end": f"```json\n{OBJECT}",
    "prose before": f"Sure, here is the JSON: {OBJECT} I hope that helps!",
    "thoughts": f'<think>They want ["three"] replies.</think>\n\n{OBJECT}',
    "another key": json.dumps({"suggestions": THREE}),
    "other items": json.dumps([*THREE, 3, None, {"n": 1}, ["x"]]),
    "trailing comma": '{"replies": ["Sure!", "No, sorry.", "What time?",]}',
    "cut off": '{"replies": ["Sure!", "No, sorry.", "What time?", "And wh',
    "numbered": "1. Sure!\n2. No, sorry.\n3. What time?",
    "bullets": "Some replies:\n- Sure!\n- No, sorry.\n- What time?\nGood luck!",
    "plain lines": 'Here are three replies:\n\n"Sure!"\n"No, sorry."\n"What time?"',
    "white space": json.dumps({"replies": ["Sure!\n", " No,\tsorry.", "What  time?"]}),
}
NOTHING = {
    "refusal": "I'm sorry, but I can't help with that.",
    "long refusal": f"I cannot answer this message.\n{'If you need help, call somebody. ' * 5}\nTake care.",
    "empty": "",
    "no texts": '{"replies": [1, 2]}',
    "no list": '{"error": "no"}',
    "empty list": '{"replies": []}',
    "single quotes": "{\n'replies': [\n'Sure!',\n'No.',\n'What?'\n]}",
    "deep": "[" * 100_000 + '"a"',
}


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector.load(resolve_model(SHIPPED) / DETECTOR)


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_replies_are_found(text: str) -> None:
    assert read_replies(text) == THREE


@pytest.mark.parametrize("text", NOTHING.values(), ids=NOTHING)
def test_nothing_is_made_up(text: str) -> None:
    assert read_replies(text) == []


def test_replies_are_short_different_and_in_the_language(detector: LanguageDetector) -> None:
    found = [*THREE, "SURE", "", "\u200b", "x" * (LONGEST + 1), "Das klingt sehr gut, ich komme gerne.", "OK 👍"]
    assert fitting_replies(found, "Lunch?", "en", detector) == [*THREE, "OK 👍"]
    assert fitting_replies(["Das klingt sehr gut, ich komme gerne."], "Lunch?", "de-AT", detector)
    assert fitting_replies(["Jasne, chętnie przyjdę!"], "Obiad?", "pl", detector), "the detector does not know it"


@pytest.mark.parametrize(("reply", "message"), cases(__file__, "test_a_contact_that_the_message_lacks_is_left_out"))
def test_a_contact_that_the_message_lacks_is_left_out(reply: str, message: str, detector: LanguageDetector) -> None:
    assert fitting_replies([reply], message, "en", detector) == []


@pytest.mark.parametrize(
    ("reply", "message"), [("I'll call 600 123 456.", "Call (600) 123-456"), ("In 10 minutes, at 8.30.", "When?")]
)
def test_a_contact_of_the_message_stays(reply: str, message: str, detector: LanguageDetector) -> None:
    assert fitting_replies([reply], message, "en", detector) == [reply]
