"""The models of a worker: they answer questions with items of the response."""

import gc
import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.io.manifest import RECORD
from mrs_suggest.serving.schema import EMPTY, MISSING, TOO_LONG, UNCLEAR, UNKNOWN
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.answer_json import answer_json, unclear_language
from mrs_suggest.suggest.answering import Answer
from mrs_suggest.suggest.conversation import Conversation
from mrs_suggest.suggest.guard import OWN_MESSAGE
from mrs_suggest.suggest.remembering import encode_together
from mrs_suggest.suggest.suggester import Suggester

Item = dict[str, Any]
Traced = tuple[Any, int]  # the context of a request's span, and when it asked (`observe/traces.py`)
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
    model: str = ""  # its name, if the server has several
    traced: Traced | None = None


class ServedSuggester:
    """A loaded model, ready to answer in all its languages; used by one thread at a time.

    Attributes:
        version: twelve digits of a hash of its record, which names the hash of each of its files, or of a service's
            signature; "" without either.
    """

    def __init__(self, suggester: Suggester, settings: Settings, name: str = "", version: str = "") -> None:
        self._suggester, self._settings, self.version = suggester, settings, version
        self.name = name or next(iter(settings.named))
        self.loaded = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.languages = list(suggester.languages)
        self._tagged = dict[str | None, Mapping[str, list[str]]]()
        self._known = {*suggester.languages, *suggester.silent_languages}
        try:
            suggester.detect("?")
            self.detects_language = True
        except ArgumentError:
            self.detects_language = False

    @classmethod
    def load(cls, name: str, settings: Settings) -> Self:
        """Load the model of this name, and answer once in every language, so that no request waits for it; a service
        answers once.

        Raises:
            InputError: as `Suggester.from_pretrained`.
        """
        more = settings.guard, settings.precision, settings.fallback, settings.fallback_share
        suggester = Suggester.from_pretrained(settings.named[name], None, settings.verify, *more)
        for language in suggester.languages[: 1 if suggester.model.service else None]:
            suggester.suggest(["?"], language, 1)
        version = version_of(suggester.folder) if suggester.folder else ""
        if service := suggester.model.service:  # also that of a fallback
            version = _hash(f"{version}{service}".encode())
        served = cls(suggester, settings, name, version)
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
        if len(groups) > 1:
            asked = [question.asked for question, item in zip(questions, items, strict=True) if item is None]
            encode_together(self._suggester.model, self._suggester.guard, asked)
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
        item = answer_json(message, answer.language, self.name, answer, question.explain)
        if self._settings.feedback:
            for suggestion in item["suggestions"]:
                suggestion["tags"] = self._tags(answer.language).get(suggestion["reply"], [])
        return self._versioned(item)

    def _tags(self, language: str | None) -> Mapping[str, list[str]]:
        """The tags of the replies of a language that have some."""
        if language not in self._tagged:
            known = language in self._suggester.tags
            self._tagged[language] = self._suggester.model.tags_of(language) if language and known else {}
        return self._tagged[language]

    def _error(self, question: Question, code: str, sentence: str) -> Item:
        item = answer_json(question.asked.message, question.language, self.name, Answer())
        return {**self._versioned(item), "error": {"code": code, "message": sentence}}

    def _versioned(self, item: Item) -> Item:
        return item | ({"version": self.version} if self.version else {})

    def described(self) -> Item:
        """As `mrs_suggest.serving.schema.ModelItem`."""
        return {
            "name": self.name,
            "version": self.version,
            "languages": self.languages,
            "detects_language": self.detects_language,
            "tags": self._suggester.tags,
            "loaded": self.loaded,
        }


class ServedModels:
    """The models of a worker, by name; used by one thread at a time."""

    def __init__(self, models: Sequence[ServedSuggester], settings: Settings) -> None:
        self.by_name = {model.name: model for model in models}
        self._shares = settings.shares
        self.languages = {code for model in models for code in model.languages}

    @classmethod
    def load(cls, settings: Settings) -> Self:
        """Load all models; InputError as `ServedSuggester.load`."""
        return cls([ServedSuggester.load(name, settings) for name in settings.named], settings)

    def draw(self, session: str | None) -> str:
        """The name of a model, drawn by the shares of the traffic: always the same for the same session."""
        place = random.random()
        if session is not None:
            place = int.from_bytes(hashlib.sha256(session.encode()).digest()[:6], "big") / 2**48
        drawn = [name for name, share in self._shares.items() if share]
        for name in drawn:
            place -= self._shares[name]
            if place < 0:
                return name
        return drawn[-1]  # the shares' sum was rounded

    def answer(self, questions: Sequence[Question]) -> list[Item]:
        """An item for each question, from its model."""
        items: dict[int, Item] = {}
        for name, model in self.by_name.items():
            numbers = [number for number, question in enumerate(questions) if question.model == name]
            if numbers:
                items |= zip(numbers, model.answer([questions[number] for number in numbers]), strict=True)
        return [items[number] for number in range(len(questions))]

    def described(self) -> list[Item]:
        """As `mrs_suggest.serving.schema.ModelItem`, each with its share of the sessions."""
        return [{**model.described(), "share": self._shares[name]} for name, model in self.by_name.items()]


def version_of(model: Path) -> str:
    """The version in answers of a model's folder: the start of the hash of its record; "" without a record."""
    record = model / RECORD
    return _hash(record.read_bytes()) if record.is_file() else ""


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12] if content else ""
