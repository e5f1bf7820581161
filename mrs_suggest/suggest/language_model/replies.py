"""From the text of a language model to replies that may be shown."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable
from typing import Any

from mrs_suggest.common.text.answers import read_answer
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.suggest.guard.guard import LINKS, MAILS, NUMBERS
from mrs_suggest.suggest.language_detector import SURE, LanguageDetector
from mrs_suggest.suggest.short_messages import fitting_languages

LONGEST = 100  # characters of a reply; ours: the longest of the embedded response sets has 58
_THOUGHTS = re.compile(r"<think>.*?</think>", re.DOTALL)
_FENCE = re.compile(r"```\w*\n(.*?)(?:```|\Z)", re.DOTALL)
_COMPLETE = re.compile(r'"(?:[^"\\\n]|\\.)*"(?=\s*[,\]])')  # strings in a list that was cut off or is malformed
_EDGES = ".,;:!?()[]<>\"'«»“”„。、！？」「"


def read_replies(text: str) -> list[str]:
    """The replies in an answer: JSON, also in a code fence, malformed or cut off; or a reply on each of three lines.

    Fewer lines, or long ones, are more likely a refusal.

    >>> read_replies('```json\\n{"replies": ["Sure!", "No."]}\\n```'), read_replies('["Sure!", "No.", "Wh')
    (['Sure!', 'No.'], ['Sure!', 'No.'])
    >>> read_replies("Here you are:\\n1. Sure!\\n2. No.\\n3. When?"), read_replies("I cannot help with that.")
    (['Sure!', 'No.', 'When?'], [])
    """
    text = _THOUGHTS.sub("", text).strip()
    if fenced := _FENCE.search(text):
        text = fenced[1].strip()
    start = re.search(r"[{\[]\s*[\[\"{]", text)
    if start is None:
        lines = [line for line in read_answer(text) if line[-1] not in ":："]
        listed = text[:1] not in "{[" and len(lines) >= SUGGESTIONS and max(map(len, lines)) <= LONGEST
        return lines if listed else []
    try:
        found, _ = json.JSONDecoder().raw_decode(text[start.start() :])
    except (ValueError, RecursionError):
        found = []
        for string in _COMPLETE.findall(text):
            try:
                found.append(json.loads(string))
            except ValueError:  # an unknown escape
                continue
    return [" ".join(reply.split()) for reply in _strings(found)]


def _strings(found: Any) -> Iterable[str]:
    """The texts of a list, also of one in an object, and of objects in it with one text each."""
    if isinstance(found, dict):
        found = next((value for value in found.values() if isinstance(value, list)), [])
    for item in found if isinstance(found, list) else []:
        text = next(iter(item.values()), None) if isinstance(item, dict) else item
        if isinstance(text, str):
            yield text


def fitting_replies(replies: Iterable[str], message: str, language: str, detector: LanguageDetector) -> list[str]:
    """The different replies that are short, in the language unless the detector is sure of another one, and without
    links, mail addresses and telephone numbers that the message does not contain."""
    found: dict[str, str] = {}
    for reply in replies:
        if len(reply) > LONGEST or is_blank(reply) or not _contacts(reply) <= _contacts(message):
            continue
        if not _in_other_language(reply, language.partition("-")[0], detector):
            found.setdefault(normalise_reply(reply), reply)
    return list(found.values())


def _in_other_language(reply: str, language: str, detector: LanguageDetector) -> bool:
    if language not in detector.languages or language in fitting_languages(reply, detector.languages):
        return False
    best, probability = detector.rank(reply)[0]
    return best != language and probability >= SURE


def _contacts(text: str) -> set[str]:
    """The links, mail addresses and telephone numbers in a text."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    links = {word for part in plain.split() if LINKS.search(word := part.strip(_EDGES))}
    mails = {match[0] for match in MAILS.finditer(plain)}
    return links | mails | {re.sub(r"\D", "", match[0]) for match in NUMBERS.finditer(plain)}
