"""The model that a worker serves: questions in, items of an answer out; a new one takes its place while it answers."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.serving.schema import EMPTY, MISSING, TOO_LONG, UNCLEAR, UNKNOWN
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.answer_json import answer_json, unclear_language
from mrs_suggest.suggest.answering import Answer
from mrs_suggest.suggest.suggester import Suggester

Item = dict[str, Any]
INVALID = "invalid_argument"  # the model itself refuses, as a generator does for too many suggestions


@dataclass(frozen=True)
class Question:
    """A message to answer, as a request asks it."""

    message: str
    language: str | None
    k: int
    explain: bool
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    prefer: tuple[str, ...] | None = None

    @property
    def tags(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What `Suggester.suggest` allows and denies."""
        return self.allow, self.deny


class ServedSuggester:
    """A loaded model, ready to answer in all its languages; immutable, and used by one thread at a time."""

    def __init__(self, suggester: Suggester, settings: Settings) -> None:
        self._suggester, self._settings = suggester, settings
        self.loaded = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.languages = list(suggester.languages)
        self._known = {*suggester.languages, *suggester.silent_languages}
        self.detects_language = self._can_detect()

    @classmethod
    def load(cls, settings: Settings) -> ServedSuggester:
        """Read all files of the model, and answer once in every language, so that no request waits for either.

        Raises:
            InputError: as `Suggester.load`.
        """
        path = resolve_model(settings.model, settings.revision)
        suggester = Suggester.load(path, verify=settings.verify, guard=settings.guard, precision=settings.precision)
        for language in suggester.languages:
            suggester.suggest(["?"], language, 1)
        served = cls(suggester, settings)
        gc.collect()
        return served

    def _can_detect(self) -> bool:
        try:
            self._suggester.detect("?")
        except ArgumentError:
            return False
        return True

    def refusal(self, question: Question) -> Item | None:
        """The item of a message that needs no model to be refused."""
        text, language, most = question.message, question.language, self._settings.max_characters
        if not text.strip():
            return self._error(question, EMPTY, "the message is empty; there is nothing to answer.")
        if len(text) > most:
            return self._error(
                question, TOO_LONG, f"the message has {len(text)} characters; the server takes {most}, shorten it."
            )
        known = " ".join(self.languages)
        if language is not None and language not in self._known:
            return self._error(question, UNKNOWN, f"the model answers {known}; pass one of these.")
        if language is None and not self.detects_language:
            return self._error(question, MISSING, f"the model cannot detect it; pass language with one of {known}.")
        return None

    def answer(self, questions: Sequence[Question]) -> list[Item]:
        """An item for each question; those of one language, `k` and tags are answered together."""
        items: list[Item | None] = [self.refusal(question) for question in questions]  # the model may be a new one
        groups: dict[Any, list[int]] = {}
        for number, question in enumerate(questions):
            if items[number] is None:
                key = question.language, question.k, question.tags, question.prefer
                groups.setdefault(key, []).append(number)
        for (language, k, (allow, deny), prefer), numbers in groups.items():
            some = [questions[number] for number in numbers]
            try:
                asked = [question.message for question in some]
                rows = self._suggester.suggest(asked, language, k, allow, deny, prefer)
            except ArgumentError as error:
                found = [self._error(question, INVALID, str(error), language) for question in some]
            else:
                found = [self._item(question, row) for question, row in zip(some, rows, strict=True)]
            for number, item in zip(numbers, found, strict=True):
                items[number] = item
        return [item for item in items if item is not None]

    def _item(self, question: Question, answer: Answer) -> Item:
        if answer.language is None:
            return self._error(question, UNCLEAR, unclear_language(self._suggester, question.message, "language"))
        return answer_json(question.message, answer.language, self._settings.shown_name, answer, question.explain)

    def _error(self, question: Question, code: str, sentence: str, language: str | None = None) -> Item:
        item = answer_json(question.message, language or question.language, self._settings.shown_name, Answer())
        return {**item, "error": {"code": code, "message": sentence}}

    def described(self) -> Item:
        """As `mrs_suggest.serving.schema.ModelItem`."""
        return {
            "name": self._settings.shown_name,
            "languages": self.languages,
            "detects_language": self.detects_language,
            "tags": self._suggester.tags,
            "loaded": self.loaded,
        }
