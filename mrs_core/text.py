"""Comparison forms of short texts."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable


class _Table(dict[int, str | None]):
    """A table for `str.translate` that asks for the answer of each character once."""

    def __init__(self, answer: Callable[[str], str | None]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, code: int) -> str | None:
        self[code] = self._answer(chr(code))
        return self[code]


# Letters and a symbol that show nothing: the Hangul fillers and the empty Braille cell; and the joiner of graphemes.
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u034f"
_COMPOSED = _Table(lambda c: unicodedata.normalize("NFKC", c))
_DROPPED = _Table(lambda c: None if unicodedata.category(c)[0] in "PZC" else c)
_INVISIBLE = _Table(lambda c: None if unicodedata.category(c)[0] in "ZC" or c in _FILLERS else c)
_ASCII_DROPPED = {c: None for c in range(128) if unicodedata.category(chr(c))[0] in "PZC"}


def normalise_reply(text: str) -> str:
    """The form in which two replies count as the same one: NFKC, case folded, letters, marks, digits and symbols only.

    Punctuation and separators go (Unicode categories P, Z, C), so that "Thanks!", "thanks" and " Thanks. " are one
    reply. A text with nothing else in it ("?!") keeps its folded characters, so that it does not fall together with
    the empty text. Response sets use this form as the cluster of a reply, retrieval to drop repeated suggestions.

    >>> normalise_reply(" Thanks!") == normalise_reply("thanks")
    True
    >>> normalise_reply("?!"), normalise_reply("C’est ça.")
    ('?!', 'cestça')
    """
    if text.isascii():  # most replies, and several times faster
        return text.lower().translate(_ASCII_DROPPED) or "".join(text.lower().split())
    if not unicodedata.is_normalized("NFKC", text):  # one by one first: faster where that is enough, as for "？"
        text = unicodedata.normalize("NFKC", text.translate(_COMPOSED))
    folded = unicodedata.normalize("NFKC", text.casefold())
    while True:  # what is dropped can bring characters together that compose: again, until nothing changes
        kept = folded.translate(_DROPPED) or "".join(folded.split())
        again = unicodedata.normalize("NFKC", kept.casefold())
        if again in (kept, folded):
            return kept
        folded = again


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it is empty, or all of it is separators, control and format characters (Unicode
    categories Z and C, such as U+0000, U+200B and the byte-order mark) or fillers.

    >>> is_blank(" \\u200b\\x00"), is_blank("?")
    (True, False)
    """
    return not any(_INVISIBLE[ord(character)] for character in text)  # ends at the first that shows
