"""Repairs of texts, in the profile `clean`: characters that were decoded wrongly (by ftfy), and HTML tags."""

from __future__ import annotations

import re
from functools import lru_cache
from types import ModuleType

from mrs_suggest.common.errors import MissingExtraError

MOJIBAKE, TAGS = "mojibake repaired", "HTML tags stripped"  # how the report counts texts

_NAMES = (
    "abbr|acronym|address|article|aside|audio|a|big|blockquote|body|br|button|b|caption|center|cite|code|col|dd|del|"
    "details|div|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|h[1-6]|header|head|hr|html|iframe|img|"
    "input|ins|i|kbd|label|legend|link|li|main|mark|meta|nav|noscript|object|ol|option|param|picture|pre|p|q|samp|script|"
    "section|select|small|source|span|strike|strong|style|sub|summary|sup|svg|s|table|tbody|td|textarea|tfoot|thead|th|"
    "title|tr|tt|ul|u|var|video"
)
_VALUE = r"""(?:"[^"]{0,1000}"|'[^']{0,1000}'|(?:[^\s<>"'=]|<url>){1,1000})"""
_TAG = re.compile(
    rf"</?({_NAMES})(?:\s{{1,3}}[a-z][a-z0-9:-]{{0,30}}\s{{0,2}}=\s{{0,2}}{_VALUE}){{0,20}}\s{{0,2}}/?>", re.IGNORECASE
)
_HIDDEN = re.compile(r"<!--.{0,2000}?-->|<(script|style)>.{0,2000}?</\1>", re.IGNORECASE | re.DOTALL)
_INLINE = frozenset(
    re.split(
        r"\|",
        "a|abbr|acronym|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|samp|small|span|strike|strong|sub|sup|tt|u|var",
    )
)

# For whole columns, in RE2's syntax (see `columns`): what a text must have for these functions to change it.
MAY_BE_TAGGED = "<[/!A-Za-z\u0130\u0131\u017f\u212a]"
# ftfy changes only texts in which its pattern finds a bad sequence. Each has a character that is hardly used otherwise,
# or a symbol or accented capital after another character outside ASCII, or one of a few before another or a space.
_SYMBOLS = (
    "\u00a1-\u00bf\u00d7\u00f7\u02dd\u0384\u0385\u2018\u201a\u201c-\u201e\u2022\u2039\u203a\u2044\u20a0-\u20bf\u2100-\u214f"
    "\u2200-\u22ff\uf8ff"
)
_RARE = (
    "\u0080-\u009f\u00a4\u00a6\u00a8\u00aa\u00ac\u00af\u00b8\u00ba\u0152\u0153\u0192\u02c6\u02c7\u02d8\u02db\u02dc\u0402\u2020\u2021\u2030"
    "\u2310\u2500-\u259f\u25ca\ufffd"
)
MAY_BE_MOJIBAKE = (
    rf"[{_RARE}]|[^\x00-\x7f][{_SYMBOLS}\x{{c0}}-\x{{de}}\x{{100}}-\x{{17e}}]|[{_SYMBOLS}ÂÃÎÐØÙ][^\x00-\x7f]|[ÂÃ] "
)


def without_tags(text: str) -> str:
    """The text without HTML tags, comments and scripts; with a space for those that end a line or a block.

    Only names of HTML elements count, with attributes that have values: `x<y and z>w`, `<3`, `List<int>`, `<url>` stay.

    >>> without_tags('One<br/>two <a href="https://example.com">three</a> <3 a<b && b>c')
    'One two three <3 a<b && b>c'
    """
    if "<!--" in text or "</" in text:
        text = _HIDDEN.sub(" ", text)
    return _TAG.sub(lambda found: "" if found[1].lower() in _INLINE else " ", text)


def without_mojibake(text: str) -> str:
    """The text as it was before UTF-8 was decoded as Latin-1, Windows-1252 or the like; otherwise unchanged.

    Raises:
        MissingExtraError: ftfy is not installed.

    >>> without_mojibake("voilÃ\xa0, schÃ¶n â€“ naïve café")
    'voilà, schön – naïve café'
    """
    return text if text.isascii() else str(_ftfy().fix_encoding(text))


@lru_cache(maxsize=1)
def _ftfy() -> ModuleType:
    try:
        import ftfy
    except ImportError:
        raise MissingExtraError("ftfy", "reddit", "cleaning texts") from None
    return ftfy
