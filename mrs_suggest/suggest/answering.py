"""What answers messages and what ranks replies: the protocols that served and evaluated systems share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.text.predictions import SUGGESTIONS

if TYPE_CHECKING:
    from mrs_suggest.suggest.ranking.trigger import Trigger

MODEL = "Model"  # the name of the trained model among the systems compared


@dataclass(frozen=True)
class Suggestion:
    """One reply to click; scores of one message can be compared, scores of different messages cannot.

    Attributes:
        parts: what speaks for it, where a ranker mixes several scores; they add up to the mixed one.
        source: `set` (the response set), `memory` or `generated`; empty where there is only the response set.
    """

    reply: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict, compare=False)
    source: str = field(default="", compare=False)


class Answer(list[Suggestion]):
    """The suggestions for one message, and, where there are none or only neutral ones, why.

    They stand in the order in which to show them: by score, or, if a ranker chooses them as a set, in the order of
    choice, in which each adds most to those before it and scores need not descend.

    Attributes:
        reason: a code: one of `mrs_suggest.suggest.guard.REASONS`, or another one of that module; None for an ordinary
        answer. used: the probability that one of the suggestions is used, where a precision was wished for; else None.
        language: of the message, given or detected; None where it is not clear.
        among: the languages that fit a short message equally, where there are several and none was given.
    """

    def __init__(
        self, suggestions: Iterable[Suggestion] = (), reason: str | None = None, used: float | None = None
    ) -> None:
        super().__init__(suggestions)
        self.reason, self.used = reason, used
        self.language: str | None = None
        self.among: list[str] = []


class Answerer(Protocol):
    """Suggests replies: a model that is served, or a system that is evaluated."""

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        """Up to k suggestions per message as in `Answer`, without duplicates; one list per message, in order."""


class ServedModel(ABC):
    """A trained model that serves users; it checks its arguments, and gives a blank message an empty list."""

    @property
    @abstractmethod
    def languages(self) -> list[str]:
        """The languages that can be answered."""

    def require_language(self, language: str) -> None:
        """Raise ArgumentError if the model does not answer in the language."""
        if language not in self.languages:
            known = " ".join(self.languages)
            raise ArgumentError("language", f"the model answers {known}; pass one of these.", language)

    @abstractmethod
    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """As `mrs_suggest.suggest.suggester.Suggester.suggest`, whatever the messages are about."""

    def most(self, k: int) -> int:
        """How many suggestions can be asked for where k are wished."""
        return k

    @property
    def trigger(self) -> Trigger | None:
        """What tells how likely suggestions are used; None for a model without calibration."""
        return None

    def used(self, messages: Sequence[str], language: str) -> list[float] | None:
        """The probability for each message that one of three suggestions is used; None where it is not known."""
        return None

    def message_vectors(self, messages: Sequence[str]) -> NDArray[np.float32] | None:
        """(n, dimension) vectors of messages in the space of the encoder; None where there is none."""
        return None


class System(Answerer, Protocol):
    """One row of a results table.

    It answers blank messages like any other, since a test set's rows are all scored.
    """

    @property
    def name(self) -> str: ...


@runtime_checkable
class Ranker(Protocol):
    """Ranks given replies."""

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        """Scores of the candidates in each message's pool: `pools` (n, p) holds candidate numbers; (n, p)."""


def reply_texts(answers: Iterable[Iterable[Suggestion]]) -> list[list[str]]:
    """The replies without their scores."""
    return [[suggestion.reply for suggestion in row] for row in answers]
