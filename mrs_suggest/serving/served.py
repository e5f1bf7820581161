"""The model of a worker: it answers questions with items of the response."""

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
from mrs_suggest.suggest.conversation import Conversation
from mrs_suggest.suggest.guard import OWN_MESSAGE
from mrs_suggest.suggest.suggester import Suggester

Item = dict[str, Any]
INVALID = "invalid_argument"  # the model refuses, as a generator does for too many suggestions


@dataclass(frozen=True)
class Question:
    """A message or a conversation to answer with the options of its request."""

    asked: Conversation
    language: str | None
    k: int
    explain: bool
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    prefer: tuple[str, ...] | None = None
    min_score: float | None = None


class ServedSuggester:
    """A loaded model, ready to answer in all its languages; used by one thread at a time."""

    def __init__(self, suggester: Suggester, settings: Settings) -> None:
        self._suggester, self._settings = suggester, settings
        self.loaded = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.languages = list(suggester.languages)
        self._known = {*suggester.languages, *suggester.silent_languages}
        try:
            suggester.detect("?")
            self.detects_language = True
        except ArgumentError:
            self.detects_language = False

    @classmethod
    def load(cls, settings: Settings) -> ServedSuggester:
        """Load the model, and answer once in every language, so that no request waits for it.

        Raises:
            InputError: as `Suggester.from_pretrained`.
        """
        path = resolve_model(settings.model, settings.revision)
        suggester = Suggester.from_pretrained(
            path, verify=settings.verify, guard=settings.guard, precision=settings.precision
        )
        for language in suggester.languages:
            suggester.suggest(["?"], language, 1)
        served = cls(suggester, settings)
        gc.collect()
        return served

    def refusal(self, question: Question) -> Item | None:
        """The item of a message that is refused without asking the model."""
        asked, language = question.asked, question.language
        if not asked.mine and not asked.message.strip():
            return self._error(question, EMPTY, "the message is empty; there is nothing to answer.")
        if problem := asked.too_long(self._settings.max_characters):
            return self._error(question, TOO_LONG, problem)
        known = " ".join(self.languages)
        if language is not None and language not in self._known:
            return self._error(question, UNKNOWN, f"the model answers {known}; pass one of these.")
        if language is None and not self.detects_language:
            return self._error(question, MISSING, f"the model cannot detect it; pass language with one of {known}.")
        return None

    def answer(self, questions: Sequence[Question]) -> list[Item]:
        """An item for each question; those with the same options are answered together."""
        items: list[Item | None] = [self.refusal(question) for question in questions]  # the model may be new
        groups: dict[Any, list[int]] = {}
        for number, question in enumerate(questions):
            if items[number] is None:
                tags = question.allow, question.deny
                options = question.language, question.k, *tags, question.prefer, question.min_score
                groups.setdefault(options, []).append(number)
        for options, numbers in groups.items():
            some = [questions[number] for number in numbers]
            try:
                rows = self._suggester.suggest([question.asked for question in some], *options)
            except ArgumentError as error:
                found = [self._error(question, INVALID, str(error)) for question in some]
            else:
                found = [self._item(question, row) for question, row in zip(some, rows, strict=True)]
            for number, item in zip(numbers, found, strict=True):
                items[number] = item
        return [item for item in items if item is not None]

    def _item(self, question: Question, answer: Answer) -> Item:
        message = question.asked.message
        if answer.language is None and answer.reason != OWN_MESSAGE:
            return self._error(question, UNCLEAR, unclear_language(self._suggester, message, "language"))
        return answer_json(message, answer.language, self._settings.shown_name, answer, question.explain)

    def _error(self, question: Question, code: str, sentence: str) -> Item:
        item = answer_json(question.asked.message, question.language, self._settings.shown_name, Answer())
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
