"""A suggester that keeps silent where its suggestions would hardly be used."""

from collections.abc import Sequence

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.ranking.trigger import Trigger
from mrs_suggest.suggest.suggester import Suggester

CURVE = ((0.8, 0.3, 0.9), (0.4, 0.6, 0.7), (0.1, 1.0, 0.4))
CHANCES = {"sure": 0.85, "so so": 0.4, "hardly": 0.1, "I want to kill myself": 0.99}


class Fake(ServedModel):
    """Answers everything with one reply; its chances are those of `CHANCES`."""

    def __init__(self, trigger: Trigger | None) -> None:
        self._trigger = trigger

    @property
    def languages(self) -> list[str]:
        return ["en", "es"]

    @property
    def trigger(self) -> Trigger | None:
        return self._trigger

    def used(self, messages: Sequence[str], language: str) -> list[float] | None:
        return [CHANCES[message] for message in messages] if language == "en" else None

    def suggest(self, messages: Sequence[str], language: str, k: int = 3) -> list[list[Suggestion]]:
        return [[Suggestion("ok", 1.0)] for _ in messages]


MODEL = Fake(Trigger((0.0, 0.0, 0.0), 0.0, (0.0,), (0.5,), curve=CURVE))


@pytest.mark.parametrize(
    ("precision", "answered"),
    [(0.95, []), (0.8, ["sure"]), (0.7, ["sure", "so so"]), (0.3, ["sure", "so so", "hardly"])],
)
def test_less_likely_answers_are_kept_back(precision: float, answered: list[str]) -> None:
    messages = list(CHANCES)
    answers = Suggester(MODEL, precision=precision).suggest(messages, "en")
    assert [message for message, answer in zip(messages, answers, strict=True) if answer] == answered
    reasons = [None if message in answered else "unlikely" for message in messages[:3]]
    assert [answer.reason for answer in answers] == [*reasons, "self_harm"]
    assert [answer.used for answer in answers[:3]] == [0.85, 0.4, 0.1]


def test_without_a_wish_or_without_figures_every_message_is_answered() -> None:
    assert all(Suggester(MODEL).suggest(["hardly"], "en"))
    (answer,) = Suggester(MODEL, precision=0.95).suggest(["hardly"], "es")  # a language that was not calibrated
    assert answer
    assert answer.used is None


def test_a_precision_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^--precision 0\.5: the model has no calibration; train it with --ranker true"
    ):
        Suggester(Fake(None), precision=0.5)
    with pytest.raises(InputError, match=r"^--precision 2: expected a share of more than 0 and at most 1, found"):
        Suggester(MODEL, precision=2)
