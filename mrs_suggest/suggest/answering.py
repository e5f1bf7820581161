"""Suggestions, answers, and the interfaces that served models and evaluated systems implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.text.predictions import SUGGESTIONS

if TYPE_CHECKING:
    from mrs_suggest.models.retrieval.context import ContextReader
    from mrs_suggest.suggest.ranking.trigger import Trigger

MODEL = "Model"  # the name of the trained model among the systems compared
USAGE = ("passed_on", "requests", "input_tokens", "output_tokens", "price_per_1000")  # of a service; of messages
Tags = frozenset[str]
CHIP = (
    '<span style="display:inline-block;border:1px solid #888;border-radius:1em;padding:.2em .8em;margin:.2em">{}</span>'
)


@dataclass(frozen=True)
class Suggestion:
    """One reply to click; scores are comparable only among the suggestions for one message, or among those from replies
    of the user's own (`mrs_suggest.suggest.ranking.own_ranker`).

    Attributes:
        parts: the weighted parts of a ranker's score, which add up to it.
        source: `set` (the response set), `memory`, `generated` or `fallback`; empty if there is the response set alone.
    """

    reply: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict, compare=False)
    source: str = field(default="", compare=False)


class Answer(list[Suggestion]):
    """The suggestions for one message, in display order.

    The order is by score, or, if a ranker chooses them as a set, the order of choice: each suggestion adds most to
    those before it, and scores need not descend.

    Attributes:
        reason: why nothing is suggested, or only neutral replies: a code of `mrs_suggest.suggest.guard`; else None.
        used: the probability that one of the suggestions is used, if a precision was requested; else None.
        language: of the message, given or detected; None if it is not clear.
        among: the languages that a short message fits equally, if there are several and none was given.
    """

    def __init__(
        self, suggestions: Iterable[Suggestion] = (), reason: str | None = None, used: float | None = None
    ) -> None:
        super().__init__(suggestions)
        self.reason, self.used = reason, used
        self.language: str | None = None
        self.among: list[str] = []

    @property
    def replies(self) -> list[str]:
        """The texts of the suggestions."""
        return [suggestion.reply for suggestion in self]

    def keep(self, least: float | None, reason: str) -> None:
        """Leave out suggestions whose score is below `least`, and give the reason if none is left.

        None, or an answer that has a reason: nothing changes.
        """
        if least is None or self.reason is not None:
            return
        self[:] = [suggestion for suggestion in self if suggestion.score >= least]
        self.reason = None if self else reason

    def __repr__(self) -> str:
        facts = {"language": self.language, "reason": self.reason, "used": self.used}
        told = "".join(f", {name}={value!r}" for name, value in facts.items() if value is not None)
        return f"Answer({self.replies}{told})"

    def _repr_html_(self) -> str:
        """The suggestions as chips, for notebooks."""
        chips = "".join(CHIP.format(escape(reply)) for reply in self.replies)
        return chips or f"<em>no suggestion ({escape(self.reason or 'none fits')})</em>"


class Answerer(Protocol):
    """Suggests replies: a model that is served, or a system that is evaluated."""

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        """Up to k different suggestions for each message, in display order."""


class ServedModel(ABC):
    """A trained model that serves users: it checks its arguments, and blank messages get an empty list."""

    context: ContextReader | None = None  # puts earlier turns before messages, if the model was trained with them
    service = ""  # the signature of a service, which also takes conversations; empty for a model on this machine
    parts: Path | None = None  # the folder of the language detector and the guard, for a service

    def usage(self) -> dict[str, float]:
        """What a service has used so far, by the names of `USAGE`."""
        return {}

    @property
    @abstractmethod
    def languages(self) -> list[str]:
        """The languages that the model answers."""

    def require_language(self, language: str) -> None:
        """Raise ArgumentError if the model does not answer in the language."""
        if language not in self.languages:
            known = " ".join(self.languages)
            raise ArgumentError("language", f"the model answers {known}; pass one of these.", language)

    @abstractmethod
    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """As `mrs_suggest.suggest.suggester.Suggester.suggest`, without a guard."""

    def most(self, k: int) -> int:
        """The largest number of suggestions, up to k, that the model can be asked for."""
        return k

    @property
    def tag_names(self) -> Mapping[str, list[str]]:
        """The tags of the replies by language; languages without tags are left out."""
        return {}

    def tags_of(self, language: str) -> dict[str, list[str]]:
        """The tags of the replies of a language that have some."""
        return {}

    def parse_tags(self, allow: Collection[str], deny: Collection[str]) -> tuple[Tags, Tags]:
        """The tags of a request.

        Raises:
            ArgumentError: they are not lists of tags, or no reply of the model has one of them.
        """
        if allow or deny:
            problem = "the model writes its replies, which have no tags; pass no tags, or a retriever."
            raise ArgumentError("allow" if allow else "deny", problem)
        return Tags(), Tags()

    def part(self, language: str, allow: Tags, deny: Tags, kind: str | None) -> ServedModel | None:
        """The model with only those replies that may be suggested; None if no reply remains.

        Args:
            allow, deny: tags as returned by `parse_tags`.
            kind: of short message (`mrs_suggest.suggest.short_messages`); None for any other message.
        """
        return self

    @property
    def trigger(self) -> Trigger | None:
        """The calibration of `used`; None if the model was not calibrated."""
        return None

    def used(self, messages: Sequence[str], language: str) -> list[float] | None:
        """The probability that one of three suggestions is used, for each message; None without calibration."""
        return None

    def min_score(self, language: str) -> float | None:
        """The score below which a reply is not suggested unless the caller gives another; None: no limit."""
        return None

    def message_vectors(self, messages: Sequence[str]) -> NDArray[np.float32] | None:
        """(n, dimension) vectors of messages; None if the model has no encoder."""
        return None


class System(Answerer, Protocol):
    """One row of a results table; blank messages are answered like any other, since all rows of a test set count."""

    @property
    def name(self) -> str: ...


@runtime_checkable
class Ranker(Protocol):
    """Ranks given replies."""

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        """(n, p) scores of each message's pool; `pools` (n, p) holds candidate numbers."""


def reply_texts(answers: Iterable[Iterable[Suggestion]]) -> list[list[str]]:
    """The replies without their scores."""
    return [[suggestion.reply for suggestion in row] for row in answers]
