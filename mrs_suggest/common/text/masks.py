"""Masks for links, paths to threads, full ids, names of users, e-mail addresses, telephone numbers and IP addresses.

The patterns of personal data are narrow on purpose: years, dates, times, prices, versions and large numbers stay. A
number counts as a telephone number if it is written like one (with a plus sign or 00 and a country, with an area code
and the usual separators, or after a word such as `tel`), not just by its number of digits. Libraries that know all
numbering plans (phonenumbers) need the writer's country, which is unknown here.

The pattern of a step finds every text that its function changes, and perhaps others: only these texts of a column
become Python strings. RE2 matches it over the whole column (.3 us a comment). RE2 has no look-around, its `\\s` and
`\\w` are ASCII and its folding of case lacks the dotted and the dotless i; so a pattern names characters instead.
"""

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from re import Match
from typing import Any, NamedTuple

from mrs_suggest.common.io.packaged import read_packaged


class Step(NamedTuple):
    """A function of one text, and a pattern in RE2's syntax that finds all texts it changes."""

    change: Callable[[str], str]
    may_change: str


Shown = str | Callable[[Match[str]], str]  # a mask, or what stands for a match
URL, USER, EMAIL, PHONE, IP = "<url>", "<user>", "<email>", "<phone>", "<ip>"
MASK_PATTERN = "<(?:url|user|email|phone|ip)>"
LETTERS = "A-Za-z0-9À-ɏͰ-ӿ"  # of scripts with spaces between words
_WORDS: dict[str, Any] = read_packaged("mrs_suggest.common.text", "mask_words.yaml")
_SPACED, _UNSPACED = _WORDS["spaced"], _WORDS["unspaced"]
_TOP_LEVEL, _TELEPHONE, _OF_VERSIONS, _PROVIDER = (
    f"(?:{'|'.join(_WORDS[name])})" for name in ("top_level_domains", "telephone", "version", "providers")
)


def mask(text: str) -> str:
    """Replace by masks: links, paths of threads and full ids, mentions of users, e-mail addresses (also spelled out),
    telephone numbers and IP addresses.

    >>> mask("https://example.com/a_(b), thanks to u/some-one and a@example.com")
    '<url>, thanks to <user> and <email>'
    """
    for step in MASKS:
        text = step.change(text)
    return text


# --- Links, names and e-mail addresses --------------------------------------------------------------------------------

# A slash, also escaped or written as an entity; dumps write the ampersand of an entity as an entity, too.
_SLASH_ENTITY = r"&(?:amp;){0,3}(?:#0{0,5}47|#x0{0,5}2f|sol);"
_SLASH = rf"(?:\\{{0,9}}(?:/|{_SLASH_ENTITY}))"
_HIDDEN_SLASH = re.compile(_SLASH_ENTITY, re.IGNORECASE)
_URL_END = rf"(?:[!#-;=?-\]_a-zA-Z~{_SPACED}]|(?<=[!#-/:;=?@\[\]_~\u0080-\U0010ffff])[{_UNSPACED}])*"


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
        rf"(?<![{LETTERS}.-])(?:[{LETTERS}-]{{1,63}}\.){{1,8}}{_TOP_LEVEL}(?::[0-9]{{1,5}})?{s}{_URL_END}"
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
# The full id of a comment, a user, a post, a message, a community or an award.
_FULL_ID = re.compile(rf"(?<![{LETTERS}])(?<![{LETTERS}]_)t[1-6]\\?_[a-z0-9]{{5,10}}(?!_?[{LETTERS}])")
_ATOM = rf"{LETTERS}.!#$%&'+/=?_{{|}}~\\\-"
_EMAIL = re.compile(rf"(?:(?<![{_ATOM}])[{_ATOM}]+|[*^`])@(?:[{LETTERS}-]+\.)+[{LETTERS}-]{{2,}}")


def _mask_slashed(kind: str, sign: str, shown: Shown, text: str) -> str:
    """Replace a pattern of `_Slashes`, the one with slashes of any form only where the text has such slashes."""
    if "\\/" in text or ("&" in text and _HIDDEN_SLASH.search(text)):
        return str(getattr(_ANY_SLASHES, kind).sub(shown, text))
    return str(getattr(_PLAIN_SLASHES, kind).sub(shown, text)) if sign in text else text


def _mask_signed(pattern: re.Pattern[str], sign: str, least: int, shown: Shown, text: str) -> str:
    """Replace a pattern in a text that has a sign often enough."""
    return pattern.sub(shown, text) if text.count(sign) >= least else text


def _mask_compose(text: str) -> str:
    return _COMPOSE.sub(_masked_address, text) if "compose" in text.lower() else text


def _mask_www(text: str) -> str:
    return _WWW.sub(_masked_address, text) if "ww" in text or "WW" in text else text


def _masked_address(found: Match[str]) -> str:
    """The mask, followed by the punctuation that belongs to the sentence."""
    address = found.group()
    if address.startswith("<"):
        return URL
    rest = address[len(address.rstrip(".,:;!?'*_~)]")) :]
    if rest.startswith(")") and "(" in address:
        rest = rest[1:]
    return URL + rest


# --- Telephone numbers, IP addresses, e-mail addresses spelled out ----------------------------------------------------

_MANY_DIGITS = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){6}")
_DATE = re.compile(r"(?<![0-9])(?:[0-3]?[0-9]([./-])[01]?[0-9]\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}([./-])[01][0-9]\2)")
_YEARS = re.compile(r"(?:19|20)[0-9]{2}[- ](?:19|20)[0-9]{2}$")
_END = r"(?![\w%€$£°]|[-.,:/][0-9])"


def _international(found: str) -> bool:
    """`+49 170 1234567`: 9 to 15 digits (E.164), and not a round number."""
    digits = re.sub(r"[^0-9]", "", found).removeprefix("00")
    return 9 <= len(digits) <= 15 and not digits.endswith("0000") and not _DATE.search(found)


def _national(found: str) -> bool:
    """`0170 1234567`, `06 12 34 56 78`, `03-1234-5678`: 9 to 12 digits; not a date or a list of small numbers."""
    parts = re.findall(r"[0-9]+", found)
    small = len(parts) > 2 and all(part.startswith("0") for part in parts)
    return 9 <= sum(map(len, parts)) <= 12 and not small and not _DATE.search(found)


# Patterns, and which of their matches are numbers; None: all.
_PHONES: tuple[tuple[re.Pattern[str], Callable[[str], bool] | None], ...] = (
    (
        re.compile(
            rf"(?<![\w+])(?:\+|00)[1-9][0-9]{{0,2}}(?:[ .\-/\u00a0]{{0,2}}(?:\([0-9]{{1,5}}\)|[0-9]{{1,12}})){{1,6}}"
            rf"{_END}"
        ),
        _international,
    ),
    (  # North America
        re.compile(
            r"(?<![\w.,+$€£/-])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?[0-9]{3}[-. ]|[2-9][0-9]{2}([-.])[0-9]{3}\1)[0-9]{4}"
            + _END
        ),
        None,
    ),
    (re.compile(rf"(?<![\w.,+:$€£/-])0[1-9](?:([ .-])[0-9]{{2}})(?:\1[0-9]{{2}}){{3}}{_END}"), _national),  # France
    (
        re.compile(
            r"(?<![\w.,+:$€£/-])(?:\(0[0-9]{1,4}\) ?|0[0-9]{1,4} ?[-/ ] ?)[0-9]{2,8}(?:[- ][0-9]{2,5}){0,4}" + _END
        ),
        _national,
    ),
    (  # Russia
        re.compile(
            rf"(?<![\w.,+$€£/-])8[ -]?(?:\(9[0-9]{{2}}\)|9[0-9]{{2}})[ -]?[0-9]{{3}}[ -][0-9]{{2}}[ -][0-9]{{2}}{_END}"
        ),
        None,
    ),
    (  # Brazil
        re.compile(rf"(?<!\w)\([1-9][0-9]\) ?9?[0-9]{{4}}[- ][0-9]{{4}}{_END}"),
        lambda found: not _YEARS.search(found),
    ),
)
_NAMED_PHONE = re.compile(
    rf"(?<!\w)({_TELEPHONE}(?:[ -]?(?:number|nummer|no|nr|número|numero|numéro|номер))?"
    r"[.: ]{0,3}(?:(?:is|ist|es|è|est|é) )?)(\+?\(?[0-9](?:[ .\-/()]{0,2}[0-9]){6,14})" + _END,
    re.IGNORECASE,
)

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.[0-9])(?::[0-9]{{1,5}}(?!\w)|/[0-9]{{1,2}}(?!\w))?")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}(?![\w:])", re.IGNORECASE)
_VERSION = re.compile(rf"{_OF_VERSIONS}[.: ]{{0,2}}$", re.IGNORECASE)

_DOT_WORD = r"(?:dot|punkt|punto|point|ponto|точка)"
_LOCAL = r"(?<![\w.+-])[\w.+-]{1,64}"
_LABEL = r"[\w-]{1,63}"
_CLOSED_DOT = rf"\s{{0,2}}[\[({{<]\s?(?:{_DOT_WORD}|\.)\s?[\])}}>]\s{{0,2}}"
_SPOKEN_DOT = rf"(?:{_CLOSED_DOT}|\s{{1,2}}{_DOT_WORD}\s{{1,2}})"
_CLOSED_AT = r"\s{0,2}[\[({<]\s?(?:at|arroba|ät|собака|@)\s?[\])}>]\s{0,2}"
_SPELLED = re.compile(
    rf"{_LOCAL}(?:{_CLOSED_DOT}{_LABEL}){{0,3}}"
    rf"(?:{_CLOSED_AT}{_LABEL}(?:(?:{_SPOKEN_DOT}|\.){_LABEL}){{0,3}}(?:{_SPOKEN_DOT}|\.)"
    rf"|\s?@\s?{_LABEL}{_SPOKEN_DOT}"
    rf"|\sat\s{_PROVIDER}{_SPOKEN_DOT})[^\W\d_]{{2,20}}",
    re.IGNORECASE,
)
_MAY_BE_SPELLED = re.compile(r"[\[({<]\s?(?:at|arroba|ät|собака|@)\s?[\])}>]|@|\sat\s", re.IGNORECASE)


def _mask_spelled(text: str) -> str:
    octets = text.encode("utf-8", "replace")  # scanning bytes takes a third of the patterns' time
    spelled = b" at " in octets or b" AT " in octets or len(octets.translate(None, b"@[({<")) < len(octets)
    return _SPELLED.sub(EMAIL, text) if spelled and _MAY_BE_SPELLED.search(text) else text


def _mask_phones(text: str) -> str:
    octets = text.encode("utf-8", "replace")
    if len(octets) - len(octets.translate(None, b"0123456789")) < 7 or not _MANY_DIGITS.search(text):
        return text
    for pattern, accept in _PHONES:
        text = pattern.sub(partial(_phone, accept), text)
    return _NAMED_PHONE.sub(_named, text)


def _phone(accept: Callable[[str], bool] | None, found: Match[str]) -> str:
    return PHONE if accept is None or accept(found[0]) else found[0]


def _named(found: Match[str]) -> str:
    return found[0] if _DATE.search(found[2]) else found[1] + PHONE


def _ipv4(found: Match[str]) -> str:
    """Not four numbers of one digit: mostly a version or a section; only 1 in 400,000 addresses is like that."""
    numbers = re.findall(r"[0-9]+", found[0])[:4]
    version = _VERSION.search(found.string, max(0, found.start() - 12), found.start())
    return found[0] if version or all(len(number) == 1 for number in numbers) else IP


def _ipv6(found: Match[str]) -> str:
    """Three groups or more, one of them long: not `::1`, `a::b`, a time, or the scores of a match."""
    groups = [group for group in found[0].split(":") if group]
    try:
        ipaddress.IPv6Address(found[0])
    except ValueError:
        return found[0]
    number = len(groups) >= 3 and max(map(len, groups)) >= 3 and any(letter.isdigit() for letter in found[0])
    return IP if number else found[0]


# Patterns in RE2's syntax that find all texts a function changes (see above).
_S, _I = "[sS\u017f]", "[iI\u0130\u0131]"  # what `s` and `i` match, whatever the case
_OTHER = r"\x{80}-\x{10ffff}"  # outside ASCII: letters, and white space
_MAY_BE_PHONE = "|".join(
    (
        r"(?:\+|00)[1-9][0-9 .\-/()\x{a0}]{7}",
        r"\([2-9][0-9]{2}\) ?[0-9]{3}[-. ][0-9]{4}|[2-9][0-9]{2}[-.][0-9]{3}[-.][0-9]{4}",
        r"0[1-9](?:[ .-][0-9]{2}){4}",
        r"(?:^|[^A-Za-z0-9_.,+:$/-])\(?0[0-9]{1,4}[)\-/ ][0-9 /-]{4}",
        r"8[ -]?\(?9[0-9]{2}\)?[ -]?[0-9]{3}[ -][0-9]{2}[ -][0-9]{2}",
        r"\([1-9][0-9]\) ?9?[0-9]{4}[- ][0-9]{4}",
        r"(?:[tT][eE][lL]|[pP][hH][oO][nN]|[cC][eE][lL]|[mM][oO][bB]|[hH][aA][nN]|[fF][aA][xX]|[aA][pP]{2}|"
        rf"[{_OTHER}])[^0-9]*[0-9](?:[ .\-/()]{{0,2}}[0-9]){{6}}",
    )
)
_BLANK = rf"[\t-\r\x1c-\x1f {_OTHER}]"
_MAY_BE_SPELLED_OUT = "|".join(
    (
        rf"[\[({{<]{_BLANK}?(?:@|[aA][tT]|[aA][rR]{{2}}[oO][bB][aA]|[{_OTHER}])",
        rf"@{_BLANK}?[A-Za-z0-9_{_OTHER}-]+{_BLANK}{{0,2}}"
        rf"(?:[\[({{<]|[dD][oO][tT]|[pP][uU][nN]|[pP][oO]|[{_OTHER}])",
        rf"[aA][tT]{_BLANK}(?:[gG][mM][aAxX]|[gG][oO]{{2}}|[yY][aA]|[hH][oO][tT]|[oO][uU][tT]|{_I}[cC][lL]|"
        rf"[aA][oO][lL]|[pP][rR][oO]|[yY][mM][aA]|[mM]{_S}[nN]|[mM][aA]{_I})",
    )
)

_HIDDEN = rf"\\/|&(?:[aA][mM][pP];)*(?:#0*47|#[xX]0*2[fF]|{_S}[oO][lL]);"
MASKS = (
    Step(partial(_mask_slashed, "address", "://", _masked_address), f"://|{_HIDDEN}"),
    Step(
        partial(_mask_slashed, "path", "/", _masked_address),
        rf"\.[A-Za-z0-9\x{{80}}-\x{{10ffff}}-]+(?::[0-9]+)?/|[rR]/[^/ \n]+/(?:[cC]|{_S})|"
        rf"[cC][oO][mM][mM][eE][nN][tT]{_S}/|{_HIDDEN}",
    ),
    Step(_mask_compose, f"/[cC][oO][mM][pP][oO]|{_HIDDEN}"),
    Step(
        partial(_mask_slashed, "user", "/", USER),
        rf"(?:^|[^A-Za-z0-9])[uU]/|/[uU]{_S}[eE][rR]/|[rR]/[uU]\\?_|{_HIDDEN}",
    ),
    Step(partial(_mask_signed, _FULL_ID, "_", 1, URL), r"t[1-6]\\?_[a-z0-9]{5}"),
    Step(_mask_www, r"[wW]{3}[0-9]?\."),
    Step(
        partial(_mask_signed, _EMAIL, "@", 1, EMAIL),
        r"@(?:[A-Za-z0-9\x{80}-\x{10ffff}-]+\.)+[A-Za-z0-9\x{80}-\x{10ffff}-]{2}",
    ),
    Step(_mask_spelled, _MAY_BE_SPELLED_OUT),
    Step(_mask_phones, _MAY_BE_PHONE),
    Step(partial(_mask_signed, _IPV4, ".", 3, _ipv4), r"[0-9]\.[0-9]+\.[0-9]+\.[0-9]"),
    Step(partial(_mask_signed, _IPV6, ":", 2, _ipv6), "[0-9a-fA-F]::?[0-9a-fA-F]{1,4}::?[0-9a-fA-F]"),
)
