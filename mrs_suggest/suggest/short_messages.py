"""Greetings, thanks, "ok", laughter, emojis and other short messages: the languages they fit and the replies to them.

A few letters say little about a language, and a model trained on conversations knows little about how they begin.
`short_messages.yaml` lists short messages by language and kind, and the replies that fit each kind. Only replies of the
model's response set are suggested; the table selects among them.
"""

import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any

import yaml

LONGEST = 60  # characters; longer messages are not looked up
FALLBACK = "en"
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # all scalars are text: `no` is a word
_UNSPACED = ("ja",)
_EMOTICONS = {":)": "🙂", ":-)": "🙂", ";)": "😉", ";-)": "😉", ":D": "😄", ":-D": "😄", "^^": "😊", ":(": "🙁",
              ":-(": "🙁",
              ":'(": "😢", "<3": "❤", ":P": "😜", ":-P": "😜", ":*": "😘", ":-*": "😘"}  # fmt: skip
_EMOTICON = re.compile("|".join(map(re.escape, sorted(_EMOTICONS, key=len, reverse=True))))
_APOSTROPHES = dict.fromkeys(map(ord, "'’‘`´ʼ"))
_RUN, _LONG_RUN, _SYLLABLES = (re.compile(form) for form in (r"(.)\1+", r"(.)\1{2,}", r"([^ ]{2})\1{2,}"))
_NOTHING, _UNKNOWN_EMOJI = "", "other"


@lru_cache(maxsize=1)
def _content() -> dict[str, Any]:
    text = resources.files("mrs_suggest.suggest").joinpath("short_messages.yaml").read_text(encoding="utf-8")
    content: dict[str, Any] = yaml.load(text, Loader=_LOADER)
    return content


def _base(language: str) -> str:
    return language.partition("-")[0]


def has_table(language: str) -> bool:
    return _base(language) in _content() and _base(language) not in ("any", "kinds")


def fitting_languages(message: str, languages: Iterable[str]) -> list[str]:
    """The languages in which the message is a known short message; empty for any other message.

    >>> fitting_languages("Thank you!!", ["de", "en", "es"]), fitting_languages("ok 👍", ["de", "en", "es"])
    (['en'], ['de', 'en', 'es'])
    """
    kinds = _kinds(message)
    return [language for language in languages if _base(language) in kinds]


def kind_of(message: str, language: str) -> str | None:
    """The kind of a short message, in this language or else in any other; None for any other message."""
    kinds = _kinds(message)
    return kinds.get(_base(language)) or next(iter(kinds.values()), None)


def all_kinds() -> list[str]:
    return list(_content()["kinds"])


def kinds_answered(language: str) -> list[str]:
    """The kinds to which the table has replies in a language."""
    return list(_content()[_base(language)]["reply"])


def fitting_kinds(reply: str, language: str) -> set[str]:
    """The kinds of messages for which the table lists a reply."""
    exact, prefixes = _replies(_base(language))
    text, found = _squeezed(_words(reply)), set[str]()
    for end in range(1, len(text) + 1):
        if end == len(text) or text[end] == " " or _base(language) in _UNSPACED:
            found.update(prefixes.get(text[:end], ()))
    return found.union(exact.get(text, ()))


def preferred_language(languages: Sequence[str], prefer: Sequence[str] | None = None) -> str:
    """The language to answer in if several fit: the caller's, else English, else the first.

    Args:
        languages: those that fit, most probable first.
        prefer: the caller's languages, best first; None: that of the locale.
    """
    for wanted in (*(locale_languages() if prefer is None else prefer), FALLBACK):
        for language in languages:
            if language == wanted or _base(language) == _base(wanted):
                return language
    return languages[0]


def locale_languages() -> list[str]:
    """The language of the user's locale, from POSIX environment variables; empty for C."""
    value = next((v for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (v := os.environ.get(name))), "")
    found = re.match(r"[a-z]{2,3}(?![A-Za-z])", value)
    return [found.group()] if found else []


@lru_cache(maxsize=1024)
def _kinds(message: str) -> Mapping[str, str]:
    """The kind of a message in each language that it fits; of several kinds, the first in the table."""
    if len(message) > LONGEST:
        return {}
    words, found, order = _words(message), dict[str, str](), _content()["kinds"]
    vocabulary, characters = _known_words()
    spaced = all(word in vocabulary or _squeezed(word) in vocabulary or _is_emoji(word) for word in words.split())
    for squeezed in (False, True):
        for language in filter(has_table, _content()):
            if spaced or (language in _UNSPACED and characters.issuperset(words)):
                kinds = _split(words, language, squeezed)
                if kinds:
                    found[language] = min(kinds, key=order.index)
        if found:  # exact matches take precedence over similar ones
            break
    return found


@lru_cache(maxsize=1)
def _known_words() -> tuple[frozenset[str], frozenset[str]]:
    """The words of all languages, and the characters of those without spaces: most messages have others."""
    phrases = [(code, phrase) for code in filter(has_table, _content()) for form in (False, True)
               for phrase in _phrases(code, form)[0]]  # fmt: skip
    unspaced = "".join(phrase for code, phrase in phrases if code in _UNSPACED)
    return frozenset(word for _, phrase in phrases for word in phrase.split()), frozenset(unspaced + " ")


def _split(words: str, language: str, squeezed: bool) -> list[str] | None:
    """The kinds of the known phrases that make up the whole message; None if it holds anything else."""
    table, longest = _phrases(language, squeezed)
    text, space = _squeezed(words) if squeezed else words, "" if language in _UNSPACED else " "
    units = list(text.replace(" ", "")) if not space else text.split()
    rest: list[list[str] | None] = [None] * len(units) + [[]]
    for begin in range(len(units) - 1, -1, -1):
        for end in range(min(len(units), begin + longest), begin, -1):
            phrase = space.join(units[begin:end])
            kind = table.get(phrase) or (_UNKNOWN_EMOJI if _is_emoji(phrase) and phrase not in table else None)
            behind = rest[end]
            if behind is not None and (kind is not None or phrase in table):
                rest[begin] = [kind, *behind] if kind else behind
                break
    return rest[0]


@lru_cache(maxsize=64)
def _phrases(language: str, squeezed: bool) -> tuple[Mapping[str, str], int]:
    """Phrase -> its kind (empty for filler words), and the length of the longest phrase in units."""
    content, found = _content(), dict[str, str]()
    rows = [(_NOTHING, content[language].get("with", []))]
    rows += [row for part in ("any", language) for row in content[part]["say"].items()]
    for kind, phrases in rows:
        for phrase in phrases:
            words = _words(phrase)
            if squeezed and _LONG_RUN.search(words):
                continue
            words = _squeezed(words) if squeezed else words
            found[words.replace(" ", "") if language in _UNSPACED else words] = kind
    return found, max(len(words) if language in _UNSPACED else len(words.split()) for words in found)


@lru_cache(maxsize=16)
def _replies(language: str) -> tuple[Mapping[str, list[str]], Mapping[str, list[str]]]:
    """Replies -> the kinds that they fit, and beginnings of replies -> the kinds."""
    exact, beginnings = dict[str, list[str]](), dict[str, list[str]]()
    for kind, rows in _content()[language]["reply"].items():
        for row in rows:
            place = beginnings if row.endswith("*") else exact
            place.setdefault(_squeezed(_words(row)), []).append(kind)
    return exact, beginnings


def _words(text: str) -> str:
    """Folded words and emojis separated by spaces; repeated letters and syllables are shortened."""
    text = _EMOTICON.sub(lambda found: f" {_EMOTICONS[found.group()]} ", text)
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_APOSTROPHES)
    kept = []
    for character in folded:
        category = unicodedata.category(character)
        if category == "So":
            kept.append(f" {character} ")
        elif category[0] in "LN" or (category[0] == "M" and not "\ufe00" <= character <= "\ufe0f"):
            kept.append(character)
        elif category not in ("Cf", "Mn", "Sk"):  # joiners, variation selectors and skin tones belong to an emoji
            kept.append(" ")
    return _LONG_RUN.sub(r"\1\1\1", _SYLLABLES.sub(r"\1\1", " ".join("".join(kept).split())))


def _squeezed(words: str) -> str:
    """Without accents and repeated letters: "Graciaaas" and "gracias" become equal."""
    plain = "".join(c for c in unicodedata.normalize("NFD", words) if not "\u0300" <= c <= "\u036f")
    return _RUN.sub(r"\1", unicodedata.normalize("NFC", plain))


def _is_emoji(word: str) -> bool:
    return len(word) == 1 and unicodedata.category(word) == "So"
