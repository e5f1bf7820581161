"""Plain text from Reddit's Markdown.

The functions remove one layer of nested markup; `clean.clean_text` calls them until nothing changes. All patterns take
linear time: repetitions are bounded, or start only where they cannot have started one character earlier.
"""

from __future__ import annotations

import html
import re
from re import Match

from mrs_datasets.builders.reddit.cleaning.masks import LETTERS, URL, USER

# A text without any of these, anywhere or at the start of a line, is plain text.
_MARKED_LINE = re.compile(r"^\s*[-+=]", re.MULTILINE)
_MARKED = re.compile(r"[\\&<>*_~^`#|\[\]\x00-\x08\x0e-\x1b\x7f\u200b\u2060\ufeff]")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});|&nbsp(?![\w;=])")
_INVISIBLE = re.compile(r"[\x00-\x08\x0e-\x1b\x7f\u200b\u2060\ufeff]")  # but not the joiners, which emoji need
_CONTROLS = bytes((*range(9), *range(0xE, 0x1C), 0x7F))
_ZERO_WIDTH = ("\u200b", "\u2060", "\ufeff")
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")

# Lines. Quotes, except spoilers and faces: `>!`, `>.<`, `>_>`, `>:(`.
_QUOTE = re.compile(r"\s*(?:>|&gt;)(?!!|<|&lt;|[._](?:[<>]|&[lg]t;)|[:;=]['-]?[()\[\]/\\|DPpOo3])")
_RULER = re.compile(r"([-*_=])(?:\s*\1){2,}")
_RULES, _BULLETS = "-*_=", "-+*#"  # how a ruler and a bullet may begin; an empty line is neither
_FENCE = re.compile(r"(?:`{3,}|~{3,})\s*[\w+-]*")
_DEFINITION = re.compile(r"\[[^\[\]]{1,200}\]:\s+<?(?:https?://|www\.|/|#)\S*.*")
_TABLE = re.compile(r"\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)+\|?|\|\s*:?-+:?\s*\|")
_BULLET = re.compile(r"^(?:(?:[-+*]|#{1,6})\s+)+(?=\S)")

# Marks inside a line. As in CommonMark a mark opens before and closes after a word, but not inside one: "f**k",
# "snake_case". It opens before a letter or digit (perhaps in quotes or brackets), which keeps faces: "*_*", "(*^o^*)".
_OPENS = r"""(?=["'“‘«¿¡(\[<_~*]*[^\W_])"""
_LINK = re.compile(
    r"(!?)\[([^\[\]]{0,1000})\]\(\s{0,9}([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,2000}){0,3})"
    r"""(?:\s{1,9}(?:"[^"]{0,300}"|'[^']{0,300}'))?\s{0,9}\)"""
)
# A mark, how often a text must have it, the pattern, and what is shown.
_MARKS: tuple[tuple[str, int, re.Pattern[str], str], ...] = (
    ("`", 2, re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,1000}?)(?<!`)\1(?!`)"), r"\2"),
    (
        "*",
        2,
        re.compile(rf"(?<![{LETTERS}*])(\*{{1,3}})(?![\s*]){_OPENS}(.{{1,1000}}?)(?<![\s*])\1(?![{LETTERS}*])"),
        r"\2",
    ),
    ("_", 2, re.compile(r"""(?<!\w)(_{1,3})(?=["'“‘«¿¡*~]*[^\W_])(.{1,1000}?)(?<![\s_(])\1(?!\w)"""), r"\2"),
    ("~~", 2, re.compile(rf"(?<![{LETTERS}~])~~(?![\s~])(.{{1,1000}}?)(?<![\s~])~~(?![{LETTERS}~])"), r"\1"),
    (
        ">!",
        1,
        re.compile(
            r"(?<!<url)(?<!<user)(?<!<email)(?<!<phone)(?<!<ip)>!(.{1,1000}?)!<(?!(?:url|user|email|phone|ip)>)"
        ),
        r"\1",
    ),
    ("^", 1, re.compile(r"(?<![\w^])\^+\(([^()]{1,500})\)"), r"\1"),
    ("^", 1, re.compile(r"(?<![\w^(])\^+(?=[^\W_])(?!\w{1,3}\^)"), ""),
)

_PROFILE = re.compile(r"(?:https?://[a-z.]*reddit\.com)?/?(?:u(?:ser)?/|r/u\\?_)|<user>", re.IGNORECASE)

# What a text must have for `plain_text` or `without_quotes` to change it, in RE2's syntax (see `columns`).
SPACES = r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"  # but U+0020
MAY_BE_MARKED = "|".join(
    (
        rf"[{SPACES}]|  | $|^[ +=>#*-]",  # other white space than between words, so also a second line; marks of a line
        r"[\x00-\x08\x0e-\x1b\x7f\x{200b}\x{2060}\x{feff}]",
        r"&[#A-Za-z]|\\[!-/:-@\[-`{-~]",
        r"\]\(|^\[|\|.*-|-.*\|",
        r"`.*`|\*.*\*|(?:^|[^A-Za-z0-9_])_.*_|~~|>!|\^",
    )
)


def plain_text(text: str, quotes: bool = True) -> str:
    """The Markdown's plain text, in one line with single spaces.

    Links are replaced by their words, pictures by nothing (by `<url>` if they are elsewhere), links to users by
    `<user>`. Bullets, rulers, fences and table lines are removed; list numbers stay. Escaped markup counts as markup
    (`\\*hi\\*` becomes `hi`), since a second call would clean it anyway.

    Args:
        quotes: whether quoted lines are left out; else they only lose their mark.
    """
    if not _MARKED.search(text) and not _MARKED_LINE.search(text):
        return " ".join(text.split())
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found.group()), text)
    if _has_invisible(text):
        text = _INVISIBLE.sub("", text)
    text = " ".join(" ".join(_shown_lines(text, quotes)).split())
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    if "](" in text:
        text = _LINK.sub(_link, text)
    for sign, least, pattern, shown in _MARKS:
        if text.count(sign) >= least:
            text = pattern.sub(shown, text)
    return " ".join(text.split())


def _has_invisible(text: str) -> bool:
    octets = text.encode("utf-8", "replace")  # scanning bytes takes a fifth of the pattern's time
    return len(octets.translate(None, _CONTROLS)) < len(octets) or any(letter in text for letter in _ZERO_WIDTH)


def _shown_lines(text: str, quotes: bool) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    table = "|" in text and any(_TABLE.fullmatch(line) for line in lines)
    shown = []
    for line in lines:
        if ">" in line and _QUOTE.match(line):
            if quotes:
                continue
            line = line.lstrip("> ")
        first = line[:1]
        if (
            (first in _RULES and _RULER.fullmatch(line))
            or (first in "`~" and _FENCE.fullmatch(line))
            or (first == "[" and _DEFINITION.fullmatch(line))
        ):
            continue
        if table and _TABLE.fullmatch(line):
            continue
        line = line.replace("|", " ").strip() if table else line
        shown.append(_BULLET.sub("", line, count=1) if line[:1] in _BULLETS else line)
    return shown


def _link(found: Match[str]) -> str:
    picture, words, target = found.groups()
    if picture or not words.strip():
        return URL if "://" in target or target == URL else ""
    return USER if _PROFILE.match(target) else words


def without_quotes(text: str) -> str:
    """The text without quoted lines, otherwise unchanged."""
    if ">" not in text and "&gt;" not in text:
        return text
    return "".join(line for line in text.splitlines(keepends=True) if not _QUOTE.match(line))
