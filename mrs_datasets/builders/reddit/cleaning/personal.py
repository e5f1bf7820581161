"""Masks for contact data other than links: telephone numbers, IP addresses, e-mail addresses spelled out.

The patterns are narrow on purpose: years, dates, times, prices, versions and large numbers stay. A number counts as a
telephone number if it is written like one (with a plus sign or 00 and a country, with an area code and the usual
separators, or after a word such as `tel`), not just by its number of digits. Libraries that know all numbering plans
(phonenumbers) need the writer's country, which is unknown here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import partial
from re import Match

from mrs_datasets.builders.reddit.steps import Step

PHONE, IP, EMAIL = "<phone>", "<ip>", "<email>"

_MANY_DIGITS = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9]){6}")
_DATE = re.compile(r"(?<![0-9])(?:[0-3]?[0-9]([./-])[01]?[0-9]\1(?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}([./-])[01][0-9]\2)")
_YEARS = re.compile(r"(?:19|20)[0-9]{2}[- ](?:19|20)[0-9]{2}$")
_END = r"(?![\w%€$£°]|[-.,:/][0-9])"
_AFTER_WORD = (
    r"(?:tel|telefon|telefono|teléfono|telefone|téléphone|telefoon|phone|cell|mobile|handy|fax|whats ?app|телефон|тел|"
    r"電話|電話番号)"
)


def _international(found: str) -> bool:
    """`+49 170 1234567`: 9 to 15 digits (E.164), and not a round number."""
    digits = re.sub(r"[^0-9]", "", found).removeprefix("00")
    return 9 <= len(digits) <= 15 and not digits.endswith("0000") and not _DATE.search(found)


def _national(found: str) -> bool:
    """`0170 1234567`, `06 12 34 56 78`, `03-1234-5678`: 9 to 12 digits; not a date or a list of small numbers."""
    parts = re.findall(r"[0-9]+", found)
    small = len(parts) > 2 and all(part.startswith("0") for part in parts)
    return 9 <= sum(map(len, parts)) <= 12 and not small and not _DATE.search(found)


def _any(_: str) -> bool:
    return True


_PHONES: tuple[tuple[re.Pattern[str], Callable[[str], bool]], ...] = (
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
        _any,
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
        _any,
    ),
    (  # Brazil
        re.compile(rf"(?<!\w)\([1-9][0-9]\) ?9?[0-9]{{4}}[- ][0-9]{{4}}{_END}"),
        lambda found: not _YEARS.search(found),
    ),
)
_NAMED_PHONE = re.compile(
    rf"(?<!\w)({_AFTER_WORD}(?:[ -]?(?:number|nummer|no|nr|número|numero|numéro|номер))?"
    r"[.: ]{0,3}(?:(?:is|ist|es|è|est|é) )?)(\+?\(?[0-9](?:[ .\-/()]{0,2}[0-9]){6,14})" + _END,
    re.IGNORECASE,
)

_OCTET = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4 = re.compile(rf"(?<![\w.])(?:{_OCTET}\.){{3}}{_OCTET}(?!\w|\.[0-9])(?::[0-9]{{1,5}}(?!\w)|/[0-9]{{1,2}}(?!\w))?")
_IPV6 = re.compile(r"(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,8}(?![\w:])", re.IGNORECASE)
_VERSION = re.compile(
    r"(?:v|ver|version|versión|versão|versione|versie|версия|build|firmware|release|update|patch|driver|kernel|chrome|"
    r"firefox|safari|android|ios|windows|java|php|python|section|§)[.: ]{0,2}$",
    re.IGNORECASE,
)

_DOT_WORD = r"(?:dot|punkt|punto|point|ponto|точка)"
_LOCAL = r"(?<![\w.+-])[\w.+-]{1,64}"
_LABEL = r"[\w-]{1,63}"
_CLOSED_DOT = rf"\s{{0,2}}[\[({{<]\s?(?:{_DOT_WORD}|\.)\s?[\])}}>]\s{{0,2}}"
_SPOKEN_DOT = rf"(?:{_CLOSED_DOT}|\s{{1,2}}{_DOT_WORD}\s{{1,2}})"
_CLOSED_AT = r"\s{0,2}[\[({<]\s?(?:at|arroba|ät|собака|@)\s?[\])}>]\s{0,2}"
_PROVIDER = r"(?:gmail|googlemail|yahoo|hotmail|outlook|icloud|aol|gmx|proton(?:mail)?|ymail|msn|yandex|mail)"
_SPELLED = re.compile(
    rf"{_LOCAL}(?:{_CLOSED_DOT}{_LABEL}){{0,3}}"
    rf"(?:{_CLOSED_AT}{_LABEL}(?:(?:{_SPOKEN_DOT}|\.){_LABEL}){{0,3}}(?:{_SPOKEN_DOT}|\.)"
    rf"|\s?@\s?{_LABEL}{_SPOKEN_DOT}"
    rf"|\sat\s{_PROVIDER}{_SPOKEN_DOT})[^\W\d_]{{2,20}}",
    re.IGNORECASE,
)
_MAY_BE_SPELLED = re.compile(r"[\[({<]\s?(?:at|arroba|ät|собака|@)\s?[\])}>]|@|\sat\s", re.IGNORECASE)


def mask_personal(text: str) -> str:
    """Replace telephone numbers, IP addresses and spelled-out e-mail addresses by masks.

    >>> mask_personal("Call +49 170 1234567 or write to jane (at) mail (dot) example, not 192.168.178.21.")
    'Call <phone> or write to <email>, not <ip>.'
    >>> mask_personal("From 2018-01-02 to 31.12.2019, 10:30:00, version 10.0.19041.388: 1,000,000 for $1.234.567")
    'From 2018-01-02 to 31.12.2019, 10:30:00, version 10.0.19041.388: 1,000,000 for $1.234.567'
    """
    for step in PERSONAL:
        text = step.change(text)
    return text


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


def _mask_ipv4(text: str) -> str:
    return _IPV4.sub(_ipv4, text) if text.count(".") >= 3 else text


def _mask_ipv6(text: str) -> str:
    return _IPV6.sub(_ipv6, text) if text.count(":") >= 2 else text


def _phone(accept: Callable[[str], bool], found: Match[str]) -> str:
    return PHONE if accept(found[0]) else found[0]


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


# What `mask_personal` does, with what a text must have for it (see `columns`).
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
PERSONAL = (
    Step(_mask_spelled, _MAY_BE_SPELLED_OUT),
    Step(_mask_phones, _MAY_BE_PHONE),
    Step(_mask_ipv4, r"[0-9]\.[0-9]+\.[0-9]+\.[0-9]"),
    Step(_mask_ipv6, "[0-9a-fA-F]::?[0-9a-fA-F]{1,4}::?[0-9a-fA-F]"),
)
