"""Suppresses hurtful suggestions: before the model answers a message, and among its replies.

Unfit replies have slurs, private data, links, or facts that the writer cannot know. A reply may have a date, a time of
day, a number or a place that is also in the message ("Does 8 pm suit you?", "Yes, 8 pm is fine.").
"""

import re
import sys
from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.text.text import visible
from mrs_suggest.models.starting_points import GUARD_FOLDER
from mrs_suggest.suggest.answering import Answer, ServedModel, Suggestion
from mrs_suggest.suggest.guard.guard_space import BUCKETS, GuardSpace, Vectors, fingerprint
from mrs_suggest.suggest.guard.lists import GuardData, WordLists
from mrs_suggest.suggest.short_messages import kind_of

SLUR, PRIVATE, LINK, DATE, PLACE = "slur", "private_data", "link", "date", "place"  # reasons, in this order
_LINK = re.compile(
    r"https?://|\bwww\.|\b[\w-]{2,}\.(?:com|org|net|io|info|de|es|fr|it|nl|pt|br|ru|se|jp|uk|eu|me|ly|gg|co)\b(?:/|$|[\s.,!?])",
    re.I,
)
_MAIL = re.compile(r"[\w.+-]+\s?(?:@|\(at\)|\[at\])\s?[\w-]+(?:\.[\w-]+)+", re.I)
_HANDLE = re.compile(r"(?<!\w)@\w{3,}")
_NUMBER = re.compile(r"\d(?:[\s()./-]{0,2}\d){6,}")  # seven digits: the shortest telephone numbers in use
_DIGITS = re.compile(r"\d+")
_NUMERIC_DATE = re.compile(
    r"\b\d{1,2}\s?[:.h]\s?[0-5]\d(?![\d%])|\b\d{1,2}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{2,4}\b|\b\d{4}-\d\d-\d\d\b"
    r"|\b(?:19|20)\d\d\b|\d{1,2}\s?[時月日]|\b\d{1,2}\s?(?:[ap]\.?m\b|uhr\b|h\b|uur\b|час|horas\b)"
    r"|\b(?:at|um|à|a las|a la|às|alle|om|kl\.?|в)\s\d{1,2}\b",
    re.I,
)


class Guard:
    """Finds sensitive messages and unfit replies.

    Args:
        data: word lists and example messages.
        model: what answers; its encoder gives the vectors of messages.
        folder: of the model, with its `guard/`, if it has one.
    """

    def __init__(self, data: GuardData, model: ServedModel, folder: Path | None) -> None:
        self.data, self._model, self._folder = data, model, folder

    def reasons(self, messages: Sequence[str], language: str, others: Sequence[str | None] = ()) -> list[str | None]:
        """The reason not to answer each message, one of `mrs_suggest.suggest.guard.REASONS`, or None.

        Args:
            others: the language that each message seems to be in, if it is not `language`: the caller may be wrong, so
                the lists of both count. Empty: those of `language` alone.
        """
        lists = [
            [self.data[code] for code in (language, other) if code and code in self.data]
            for other in (others or [None] * len(messages))
        ]
        found = [
            next((reason for one in own if (reason := one.sensitive(message))), None)
            for message, own in zip(messages, lists, strict=True)
        ]
        # Greetings and the like are harmless unless a list says otherwise; the space knows little about so few letters.
        rest = [
            number for number, message in enumerate(messages)
            if found[number] is None and kind_of(message, language) is None
        ]  # fmt: skip
        if rest and self.space is not None:
            for number, reason in zip(rest, self._found([messages[number] for number in rest]), strict=True):
                found[number] = reason
            # What the space finds must stay found without its harmless phrases.
            plain = {number: self._plain(messages[number], lists[number]) for number in rest if found[number]}
            changed = {number: text for number, text in plain.items() if text != messages[number]}
            asked = [number for number, text in changed.items() if text and kind_of(text, language) is None]
            again_found = dict(zip(asked, self._found([changed[number] for number in asked]), strict=True))
            found = [None if n in changed and not again_found.get(n) else one for n, one in enumerate(found)]
        return found

    def _found(self, messages: list[str]) -> list[str | None]:
        """The reasons that the space gives to messages."""
        if not messages or self.space is None:
            return []
        vectors = self._vectors(messages)
        if self._folder is not None and len(self.space.weights) != BUCKETS + vectors.shape[1]:
            raise InputError(f"{self._folder / GUARD_FOLDER}: made for another encoder; {again(self._folder)}.")
        return self.space.reasons(messages, vectors)

    @staticmethod
    def _plain(message: str, lists: list[WordLists]) -> str:
        for one in lists:
            message = one.without_harmless(message)
        return message

    def silent(self, reason: str, language: str) -> Answer:
        """The answer to a sensitive message: the neutral replies of the lists, if there are any."""
        lists = self.data.get(language)
        return Answer([Suggestion(reply, 0.0) for reply in (lists.neutral.get(reason, []) if lists else [])], reason)

    def fits(self, reply: str, message: str, language: str) -> bool:
        lists = self.data.get(language)
        return _fits_any(reply, lists) or unfit(reply, message, lists) is None

    @cached_property
    def space(self) -> GuardSpace | None:
        """The linear model of `guard_space`, from the model's folder; None if the lists alone decide.

        With custom examples that the stored one was not fitted to, it is fitted now, which takes as long as answering
        them.

        Raises:
            InputError: it is damaged.
        """
        stored = GuardSpace.load(self._folder) if self._folder else None
        if stored is not None and not self.data.own_examples:
            return stored
        examples = self.data.prototypes_for(self._model.languages) if self.data.own_examples else {}
        if stored is not None and stored.examples == fingerprint(examples):
            return stored
        if self._model.message_vectors(["?"]) is None:  # a generator
            return None
        if examples:
            return GuardSpace.fit(self._vectors, examples)
        if self._folder is not None:
            where = visible(self._folder)
            print(
                f"note: {where} has no guard of this version, so only word lists detect sensitive messages; "
                f"`mrs models guard {where}` adds it.",
                file=sys.stderr,
            )
        return None

    def _vectors(self, texts: list[str]) -> Vectors:
        vectors = self._model.message_vectors(texts)
        assert vectors is not None, "a model with a space has vectors"
        return vectors


@lru_cache(maxsize=4096)
def _fits_any(reply: str, lists: WordLists | None) -> bool:
    """Whether a reply has nothing that the message must have, too: most replies of a set."""
    return unfit(reply, "", lists) is None


def unfit(reply: str, message: str, lists: WordLists | None) -> str | None:
    """The reason not to suggest a reply to a message, or None.

    Args:
        lists: of the reply's language; None: only checks that need no list.

    >>> unfit("Write to ana@example.org", "Hi", None), unfit("At 20:30?", "When?", None), unfit("Yes!", "Hi", None)
    ('private_data', 'date', None)
    """
    if lists and lists.holds("slurs", reply):
        return SLUR
    if _MAIL.search(reply) or _HANDLE.search(reply):
        return PRIVATE
    if _LINK.search(reply):
        return LINK
    if _NUMBER.search(reply) and _unknown(_NUMBER, reply, message):
        return PRIVATE
    if lists and lists.holds("addresses", reply):
        return PRIVATE
    if _unknown(_NUMERIC_DATE, reply, message) or (lists and _unknown_phrase("dates", reply, message, lists)):
        return DATE
    return PLACE if lists and _unknown_phrase("places", reply, message, lists) else None


def _unknown(expression: re.Pattern[str], reply: str, message: str) -> bool:
    """Whether a match in the reply has numbers that the message lacks."""
    known = set(_DIGITS.findall(message))
    return any(not set(_DIGITS.findall(found[0])) <= known for found in expression.finditer(reply))


def _unknown_phrase(key: str, reply: str, message: str, lists: WordLists) -> bool:
    held = lists.holds(key, reply)
    return bool(held) and not set(held) <= set(lists.holds(key, message))
