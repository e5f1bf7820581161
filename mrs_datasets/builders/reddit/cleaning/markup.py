"""Plain text from Reddit's Markdown, and masks for names of and links to persons, threads and pages.

One pass each. The functions remove one layer of nested markup; `mrs_datasets.builders.reddit.cleaning.clean.clean_text`
calls them until nothing changes. All patterns take linear time: repetitions are bounded, or start only where they
cannot have started one character earlier.
"""

from __future__ import annotations

import html
import re
from re import Match
from typing import NamedTuple

from mrs_datasets.builders.reddit.cleaning.personal import EMAIL, PERSONAL
from mrs_datasets.builders.reddit.steps import Step

URL, USER = "<url>", "<user>"
MASK_PATTERN = "<(?:url|user|email|phone|ip)>"

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
_LETTERS = "A-Za-z0-9À-ɏͰ-ӿ"  # of scripts with spaces between words
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
        re.compile(rf"(?<![{_LETTERS}*])(\*{{1,3}})(?![\s*]){_OPENS}(.{{1,1000}}?)(?<![\s*])\1(?![{_LETTERS}*])"),
        r"\2",
    ),
    ("_", 2, re.compile(r"""(?<!\w)(_{1,3})(?=["'“‘«¿¡*~]*[^\W_])(.{1,1000}?)(?<![\s_(])\1(?!\w)"""), r"\2"),
    ("~~", 2, re.compile(rf"(?<![{_LETTERS}~])~~(?![\s~])(.{{1,1000}}?)(?<![\s~])~~(?![{_LETTERS}~])"), r"\1"),
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

# A slash, also escaped or written as an entity; dumps write the ampersand of an entity as an entity, too.
_SLASH_ENTITY = r"&(?:amp;){0,3}(?:#0{0,5}47|#x0{0,5}2f|sol);"
_SLASH = rf"(?:\\{{0,9}}(?:/|{_SLASH_ENTITY}))"
_HIDDEN_SLASH = re.compile(_SLASH_ENTITY, re.IGNORECASE)
# An address may have letters of all scripts (RFC 3987), up to white space or punctuation of the sentence. Scripts
# without spaces between words have no space after an address either: their letters belong to it if they follow a
# delimiter or each other (/wiki/日本), and to the sentence if they follow a Latin letter or digit (/aを見て).
_SPACED = (
    "\u00aa\u00b5\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u037d\u037f-\u0386\u0388-\u0559\u0560-\u0588\u0591-\u05bd"
    "\u05bf\u05c1\u05c2\u05d0-\u05f2\u0610-\u061a\u0620-\u0669\u066e-\u06d3\u06d5-\u06ff\u0710-\u0963\u0966-\u096f"
    "\u0971-\u0dff\u10a0-\u10fa\u10fc-\u10ff\u1200-\u1360\u1369-\u166c\u1800-\u1fff\u200c\u200d\u2c00-\u2dff"
    "\ua4d0-\ua4fd\ua500-\ua95f\ua980-\uabff\ufb00-\ufd3d\ufd50-\ufdff\ufe70-\ufefc\U00010000-\U0001cfff"
)
_UNSPACED = (
    "\u0e00-\u0e4e\u0e50-\u0fff\u1000-\u1049\u1050-\u109f\u1100-\u11ff\u1780-\u17d3\u17dc-\u17f9\u3005-\u3007"
    "\u3021-\u302f\u3031-\u30ff\u3105-\u318e\u31a0-\u31ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7ff"
    "\uf900-\ufaff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\U00020000-\U0003ffff"
)
_URL_END = rf"(?:[!#-;=?-\]_a-zA-Z~{_SPACED}]|(?<=[!#-/:;=?@\[\]_~\u0080-\U0010ffff])[{_UNSPACED}])*"
_TOP_LEVEL = (
    "com|org|net|edu|gov|info|io|co|me|tv|be|ly|gg|gl|it|re|st|to|us|uk|ca|au|nz|br|mx|ar|cl|eu|ch|at|de|es|pt|fr|jp|"
    "se|nl|ru|"
    "рф|xn--[a-z0-9-]{1,59}|dev|app|xyz|ai|ie|ink|page|link|site|online|shop|club|news|blog|live|gle|im|in|pl|fi|no|dk|cz|kr|cn|tw|tk|cc"
)


class _Slashes(NamedTuple):
    """Patterns with slashes of some form: of addresses, of paths to pages and threads, of users."""

    address: re.Pattern[str]
    path: re.Pattern[str]
    user: re.Pattern[str]


def _with_slashes(slash: str) -> _Slashes:
    """The patterns for slashes of this form."""
    s = slash
    address = rf"<[a-z0-9+.-]{{2,20}}:{s}{s}[^\s<>]*>|[a-z0-9+.-]{{2,20}}:{s}{s}{_URL_END}"
    path = (
        rf"(?<![{_LETTERS}.-])(?:[{_LETTERS}-]{{1,63}}\.){{1,8}}(?:{_TOP_LEVEL})(?::[0-9]{{1,5}})?{s}{_URL_END}"
        rf"|(?<![a-z0-9]){s}?r{s}(?:\\?[a-z0-9_]){{1,30}}{s}(?:comments|s){s}{_URL_END}"
        rf"|(?<![a-z0-9/]){s}?comments{s}[a-z0-9]{{4,}}{s}{_URL_END}"
    )
    # `u/name` and `r/u_name` where a word may start, `/u/name`, `/user/name` and `/r/u_name` anywhere; with the escapes
    # that hide `_` from Markdown.
    user = (
        rf"(?:{s}(?:u(?:ser)?{s}|r{s}u\\?_)|(?<![a-z0-9])(?:u{s}|r{s}u\\?_))"
        rf"(?:\\?[a-z0-9_-])+(?:{s}[a-z0-9_-]+)*"
    )
    return _Slashes(*(re.compile(pattern, re.IGNORECASE) for pattern in (address, path, user)))


# The link for sending a message to a user.
_COMPOSE = re.compile(
    rf"(?:(?<![a-z0-9])|{_SLASH})message{_SLASH}compose{_SLASH}?\\?\?(?:[!-~]{{1,300}}?[&;])?to\\?={_URL_END}",
    re.IGNORECASE,
)
_PLAIN_SLASHES, _ANY_SLASHES = _with_slashes("/"), _with_slashes(_SLASH)
_WWW = re.compile(rf"(?<![a-z0-9.-])www[0-9]?\.[^\W_]{_URL_END}", re.IGNORECASE)
_PROFILE = re.compile(r"(?:https?://[a-z.]*reddit\.com)?/?(?:u(?:ser)?/|r/u\\?_)|<user>", re.IGNORECASE)
# The full id of a comment, a user, a post, a message, a community or an award.
_FULL_ID = re.compile(rf"(?<![{_LETTERS}])(?<![{_LETTERS}]_)t[1-6]\\?_[a-z0-9]{{5,10}}(?!_?[{_LETTERS}])")
_ATOM = rf"{_LETTERS}.!#$%&'+/=?_{{|}}~\\\-"
_EMAIL = re.compile(rf"(?:(?<![{_ATOM}])[{_ATOM}]+|[*^`])@(?:[{_LETTERS}-]+\.)+[{_LETTERS}-]{{2,}}")

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


def mask(text: str) -> str:
    """Replace by masks: links, paths of threads and full ids, mentions of users, e-mail addresses (also spelled out),
    telephone numbers and IP addresses.

    >>> mask("https://example.com/a_(b), thanks to u/some-one and a@example.com")
    '<url>, thanks to <user> and <email>'
    """
    for step in MASKS:
        text = step.change(text)
    return text


def _mask_addresses(text: str) -> str:
    if _has_hidden_slash(text):
        return _ANY_SLASHES.address.sub(_masked_address, text)
    return _PLAIN_SLASHES.address.sub(_masked_address, text) if "://" in text else text


def _mask_paths(text: str) -> str:
    if _has_hidden_slash(text):
        return _ANY_SLASHES.path.sub(_masked_address, text)
    return _PLAIN_SLASHES.path.sub(_masked_address, text) if "/" in text else text


def _mask_compose(text: str) -> str:
    return _COMPOSE.sub(_masked_address, text) if "compose" in text.lower() else text


def _mask_users(text: str) -> str:
    if _has_hidden_slash(text):
        return _ANY_SLASHES.user.sub(USER, text)
    return _PLAIN_SLASHES.user.sub(USER, text) if "/" in text else text


def _mask_full_ids(text: str) -> str:
    return _FULL_ID.sub(URL, text) if "_" in text else text


def _mask_www(text: str) -> str:
    return _WWW.sub(_masked_address, text) if "ww" in text or "WW" in text else text


def _mask_emails(text: str) -> str:
    return _EMAIL.sub(EMAIL, text) if "@" in text else text


def _has_hidden_slash(text: str) -> bool:
    return "\\/" in text or ("&" in text and _HIDDEN_SLASH.search(text) is not None)


def _masked_address(found: Match[str]) -> str:
    """The mask, followed by the punctuation that belongs to the sentence."""
    address = found.group()
    if address.startswith("<"):
        return URL
    rest = address[len(address.rstrip(".,:;!?'*_~)]")) :]
    if rest.startswith(")") and "(" in address:
        rest = rest[1:]
    return URL + rest


# What `mask` does, with what a text must have for it (see `columns`).
_S = "[sS\u017f]"  # what `s` matches, whatever the case
_HIDDEN = rf"\\/|&(?:[aA][mM][pP];)*(?:#0*47|#[xX]0*2[fF]|{_S}[oO][lL]);"
MASKS = (
    Step(_mask_addresses, f"://|{_HIDDEN}"),
    Step(
        _mask_paths,
        rf"\.[A-Za-z0-9\x{{80}}-\x{{10ffff}}-]+(?::[0-9]+)?/|[rR]/[^/ \n]+/(?:[cC]|{_S})|"
        rf"[cC][oO][mM][mM][eE][nN][tT]{_S}/|{_HIDDEN}",
    ),
    Step(_mask_compose, f"/[cC][oO][mM][pP][oO]|{_HIDDEN}"),
    Step(_mask_users, rf"(?:^|[^A-Za-z0-9])[uU]/|/[uU]{_S}[eE][rR]/|[rR]/[uU]\\?_|{_HIDDEN}"),
    Step(_mask_full_ids, r"t[1-6]\\?_[a-z0-9]{5}"),
    Step(_mask_www, r"[wW]{3}[0-9]?\."),
    Step(_mask_emails, r"@(?:[A-Za-z0-9\x{80}-\x{10ffff}-]+\.)+[A-Za-z0-9\x{80}-\x{10ffff}-]{2}"),
    *PERSONAL,
)
