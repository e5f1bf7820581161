"""Normal forms of short texts, for comparison and for a terminal."""

import json
import math
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any


class Table(dict[int, str | None]):
    """A table for `str.translate` that computes each character's answer once."""

    def __init__(self, answer: Callable[[str], str | None]) -> None:
        super().__init__()
        self._answer = answer

    def __missing__(self, code: int) -> str | None:
        self[code] = self._answer(chr(code))
        return self[code]


# Invisible letters and symbols: the Hangul fillers, the empty Braille cell, and the grapheme joiner.
_FILLERS = "\u115f\u1160\u3164\uffa0\u2800\u034f"
_COMPOSED = Table(lambda c: unicodedata.normalize("NFKC", c))
_DROPPED = Table(lambda c: None if unicodedata.category(c)[0] in "PZC" else c)
_INVISIBLE = Table(lambda c: None if unicodedata.category(c)[0] in "ZC" or c in _FILLERS else c)
_ASCII_DROPPED = bytes(code for code in range(128) if unicodedata.category(chr(code))[0] in "PZC")


def normalise_reply(text: str) -> str:
    """The form by which two replies count as equal: NFKC, case-folded, letters, marks, digits and symbols only.

    Punctuation and separators go (Unicode categories P, Z, C), so that "Thanks!", "thanks" and " Thanks. " are one
    reply. A text with nothing else in it ("?!") keeps its folded characters, so that it differs from
    the empty text. Response sets use this form as a reply's cluster, retrieval to drop repeated suggestions.

    >>> normalise_reply(" Thanks!") == normalise_reply("thanks")
    True
    >>> normalise_reply("?!"), normalise_reply("C’est ça.")
    ('?!', 'cestça')
    """
    if text.isascii():  # most replies; bytes are several times faster
        return text.lower().encode().translate(None, _ASCII_DROPPED).decode() or "".join(text.lower().split())
    if not unicodedata.is_normalized("NFKC", text):  # one by one first: faster if that is enough, as for "？"
        text = unicodedata.normalize("NFKC", text.translate(_COMPOSED))
    folded = unicodedata.normalize("NFKC", text.casefold())
    while True:  # dropping characters can bring others together that compose: repeat until nothing changes
        kept = folded.encode("utf-8", "surrogatepass").translate(None, _ASCII_DROPPED).decode("utf-8", "surrogatepass")
        kept = (kept if kept.isalnum() else kept.translate(_DROPPED)) or "".join(folded.split())
        again = unicodedata.normalize("NFKC", kept.casefold())
        if again in (kept, folded):
            return kept
        folded = again


def is_blank(text: str) -> bool:
    """Whether a text is empty or invisible: only separators, control and format characters (Unicode
    categories Z and C, such as U+0000, U+200B and the byte-order mark) or fillers.

    >>> is_blank(" \\u200b\\x00"), is_blank("?")
    (True, False)
    """
    return not any(_INVISIBLE[ord(character)] for character in text)  # stops at the first visible one


# What moves a cursor, recolours, retitles or queries a terminal (C0, DEL, C1: ECMA-48), ends a line unseen (U+2028,
# U+2029), or shows text in another order than it is read (embeddings, overrides and isolates of Unicode's UAX 9). The
# marks U+061C, U+200E and U+200F stay: Arabic and Hebrew texts have them, and they reorder nothing by themselves.
_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
SHOWN = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _CONTROLS}
SHOWN |= {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}
SHOWN |= {code: f"\\u{code:04x}" for code in range(0xD800, 0xE000)}  # bytes of a file name that are not UTF-8


def visible(text: object, keep: str = "") -> str:
    """A text from data, a model or a file's name, safe to print: control characters as they are written in Python.

    Terminal escapes, other control characters (C0, DEL, C1), line separators, what reorders text (embeddings,
    overrides, isolates) and lone surrogates become `\\x1b` or `\\u202e`; everything else stays as it is.

    Args:
        text: its `str` is taken.
        keep: control characters that stay, such as line ends in a card.

    >>> print(visible("Sí, claro.\\x1b[2J"), visible("a\\nb", keep="\\n").count("\\n"))
    Sí, claro.\\x1b[2J 1
    """
    table = {code: shown for code, shown in SHOWN.items() if chr(code) not in keep} if keep else SHOWN
    return str(text).translate(table)


def visible_json(content: object, **options: Any) -> str:
    """`json.dumps` in UTF-8 whose output is safe to print: the same content, control characters as `\\uXXXX`.

    JSON escapes C0 alone; DEL, C1 and the characters that reorder text occur in strings only, so they can be escaped
    without changing the content.
    """
    escaped = {code: f"\\u{code:04x}" for code in SHOWN if code >= 0x7F}
    return json.dumps(content, ensure_ascii=False, **options).translate(escaped)


def interval_text(ends: Sequence[float] | None, show: Callable[[float], str], form: str = "[{}, {}]") -> str:
    """Both ends of an interval, or the reason why it is missing; earlier versions wrote equal ends then.

    >>> interval_text([0.1, 0.25], "{:.3f}".format), interval_text(None, str)
    ('[0.100, 0.250]', '(no interval: all values are equal)')
    """
    if not ends or not ends[0] < ends[1]:
        return f"({getattr(ends, 'method', '') or 'no interval: all values are equal'})"
    return form.format(*map(show, ends))


def percent(share: float) -> str:
    """A share in %, without the sign."""
    return f"{100 * share:.1f}"


def finite_json(content: object) -> object:
    """The same content with None (JSON's null) for floats that JSON cannot represent.

    >>> finite_json({"perplexity": float("inf"), "interval": (1.0, float("nan"))})
    {'perplexity': None, 'interval': [1.0, None]}
    """
    if isinstance(content, Mapping):
        return {key: finite_json(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [finite_json(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
