"""What is read from the text of a language model, and which replies may be shown."""

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
READ = cases(__file__, "READ")
NOTHING = {**cases(__file__, "NOTHING"), "deep": "[" * 100_000 + '"a"'}


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
