"""Unfit suggestions: with slurs, private data, links, or facts that the writer cannot know.

A suggestion may have a date, a time of day, a number or a place that is also in the message ("Does 8 pm suit you?",
"Yes, 8 pm is fine.").
"""

from __future__ import annotations

import re

from mrs_suggest.suggest.guard.lists import WordLists

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
