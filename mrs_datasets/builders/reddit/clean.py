"""Stage 5, clean: Markdown to text, HTML and wrongly decoded characters repaired, masks for links, names and addresses.

Off in the profile `paper`, on in `clean`: Zhang et al. 2021 do not mention such a step. The result depends only on the
text itself, and cleaning it again changes nothing. The functions of one text remove one layer of nested markup, and are
called until nothing changes. All patterns take linear time: repetitions are bounded, or start only where they cannot
have started one character earlier.
"""

import html
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import Match
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.columns import change_in_turn, with_rows
from mrs_datasets.builders.reddit.plan import KEPT, Outcomes
from mrs_suggest.common.errors import extra_needed
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.masks import LETTERS, MASK_PATTERN, MASKS, URL, USER, Step

MAX_PASSES = 12  # over a text, until nothing changes; real texts need two or three
BATCH_ROWS = 1 << 16  # of texts that are cleaned together

EMPTY_MESSAGE, EMPTY_REPLY = "message empty after cleaning", "reply empty after cleaning"
ONLY_MASKS = "nothing but masks"
MOJIBAKE, TAGS = "mojibake repaired", "HTML tags stripped"  # how the report counts repaired texts

_ONLY_MASKS = re.compile(rf"(?:{MASK_PATTERN}|[\s!-/:-@\[-`{{-~])+")
# In RE2's syntax (see `masks`): white space but U+0020; what a text must be to be empty, or nothing but masks.
_SPACES = r"\t-\r\x1c-\x1f\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_MAY_BE_DROPPED = rf"^(?:{MASK_PATTERN}|[ !-/:-@\[-`{{-~{_SPACES}])*$"


@dataclass(frozen=True)
class CleanRules:
    """Which steps clean a text.

    Attributes:
        markdown: Reddit's Markdown is replaced by its plain text, in one line, without quoted lines (`> ...`); entities
            are decoded.
        masks: links, paths of threads and full ids, `u/name` and `r/u_name`, e-mail addresses, telephone numbers and IP
            addresses become `<url>`, `<user>`, `<email>`, `<phone>` and `<ip>`. A host without a path (example.com) is
            used like a word, and stays, as `r/name` does.
        repairs: wrongly decoded characters are repaired, and HTML tags left out.
    """

    markdown: bool = True
    masks: bool = True
    repairs: bool = True


ALL = CleanRules()


def clean_pairs(pairs: pa.Table, repairs: Counter[str] | None = None) -> tuple[pa.Table, Outcomes]:
    """Clean both texts of every pair, and drop pairs with too little left.

    Args:
        pairs: columns message, reply and language; others are kept.
        repairs: see `clean_column`.

    Returns:
        The kept pairs in their order, and the outcomes per language: `kept`, or the first reason that applies, in the
        order: empty message, empty reply, nothing but masks on one side.
    """
    reasons: list[pa.Array] = []
    sides: list[list[pa.Array]] = [[], []]
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        both = [clean_column(batch[name], repairs=repairs) for name in ("message", "reply")]
        reasons.append(_reasons(*both))
        for arrays, column in zip(sides, both, strict=True):
            arrays.append(column)
    for name, arrays in zip(("message", "reply"), sides, strict=True):
        column = pa.chunked_array(arrays, pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(name), name, column)
    outcomes = pa.chunked_array(reasons, pa.string())
    found = Counter(zip(pairs["language"].to_pylist(), outcomes.to_pylist(), strict=True))
    return pairs.filter(pc.equal(outcomes, KEPT)), found


def clean_column(texts: pa.Array, rules: CleanRules = ALL, repairs: Counter[str] | None = None) -> pa.Array:
    """The texts after cleaning by the rules; they may be empty. Only texts that may change become Python strings.

    Nested markup is removed layer by layer. A text with more than `MAX_PASSES` layers, which does not occur in
    practice, becomes empty: so the time is bounded, and nothing is missed below the last layer.

    Args:
        texts: strings without nulls.
        repairs: counts the texts that were repaired, as `MOJIBAKE` and `TAGS`; added to.

    >>> clean_column(pa.array(["&gt; Where?\\n\\n**See** [the map](https://example.com/a), /u/some_one!"])).to_pylist()
    ['See the map, <user>!']
    """
    changing, rows = texts, np.arange(len(texts))  # the texts that the last pass changed, and where they are
    repaired = {kind: np.zeros(len(texts), bool) for kind in (MOJIBAKE, TAGS)}
    for _ in range(MAX_PASSES):
        after = changing
        changes = np.zeros(len(rows), bool)
        for steps, kind in _steps(rules):
            after, where = change_in_turn(after, steps)
            changes[where] = True
            if kind:
                repaired[kind][rows[where]] = True
        changes &= pc.not_equal(after, changing).to_numpy(zero_copy_only=False)  # a step may undo another
        changing, rows = after.filter(pa.array(changes)), rows[changes]
        texts = with_rows(texts, rows, changing)
        if not len(rows):
            break
    else:
        texts = with_rows(texts, rows, pa.array([""] * len(rows), pa.string()))
    if repairs is not None:
        repairs.update({kind: int(which.sum()) for kind, which in repaired.items() if which.any()})
    return texts


@lru_cache
def _steps(rules: CleanRules) -> list[tuple[Sequence[Step], str]]:
    """The steps of one pass over a text, and how texts that they repair are counted."""
    found: list[tuple[Sequence[Step], str]] = []
    if rules.repairs:
        found.append(([Step(without_mojibake, MAY_BE_MOJIBAKE)], MOJIBAKE))
    if rules.markdown:
        found.append(([Step(plain_text, MAY_BE_MARKED)], ""))
    if rules.repairs:  # after entities, which the dumps use for all tags
        found.append(([Step(without_tags, MAY_BE_TAGGED)], TAGS))
    if rules.masks:
        found.append((MASKS, ""))
    return found


def _reasons(messages: pa.Array, replies: pa.Array) -> pa.Array:
    """`_reason` of every pair; only texts that may be empty or masks become Python strings."""
    few = pc.or_(*(pc.match_substring_regex(side, _MAY_BE_DROPPED) for side in (messages, replies)))
    rows = np.flatnonzero(few.to_numpy(zero_copy_only=False))
    pairs = zip(*(side.take(pa.array(rows)).to_pylist() for side in (messages, replies)), strict=True)
    found = pa.array([_reason(message, reply) for message, reply in pairs], pa.string())
    return with_rows(pa.array([KEPT] * len(messages), pa.string()), rows, found)


def _reason(message: str, reply: str) -> str:
    if not message or message.isspace():
        return EMPTY_MESSAGE
    if not reply or reply.isspace():
        return EMPTY_REPLY
    return ONLY_MASKS if _only_masks(message) or _only_masks(reply) else KEPT


def _only_masks(text: str) -> bool:
    return bool("<" in text and _ONLY_MASKS.fullmatch(text) and re.search(MASK_PATTERN, text))


# --- Markdown -------------------------------------------------------------------------------------------------------

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

# What a text must have for `plain_text` to change it, in RE2's syntax (see `masks`).
MAY_BE_MARKED = "|".join(
    (
        rf"[{_SPACES}]|  | $|^[ +=>#*-]",  # white space not between words, so also a second line; marks of a line
        r"[\x00-\x08\x0e-\x1b\x7f\x{200b}\x{2060}\x{feff}]",
        r"&[#A-Za-z]|\\[!-/:-@\[-`{-~]",
        r"\]\(|^\[|\|.*-|-.*\|",
        r"`.*`|\*.*\*|(?:^|[^A-Za-z0-9_])_.*_|~~|>!|\^",
    )
)


def plain_text(text: str) -> str:
    """The Markdown's plain text, in one line with single spaces.

    Links are replaced by their words, pictures by nothing (by `<url>` if they are elsewhere), links to users by
    `<user>`. Quotes, bullets, rulers, fences and table lines are removed; list numbers stay. Escaped markup counts as
    markup (`\\*hi\\*` becomes `hi`), since a second call would clean it anyway.
    """
    if not _MARKED.search(text) and not _MARKED_LINE.search(text):
        return " ".join(text.split())
    if "&" in text:
        text = _ENTITY.sub(lambda found: html.unescape(found.group()), text)
    if _has_invisible(text):
        text = _INVISIBLE.sub("", text)
    text = " ".join(" ".join(_shown_lines(text)).split())
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


def _shown_lines(text: str) -> list[str]:
    lines = [line.strip() for line in text.splitlines()]
    table = "|" in text and any(_TABLE.fullmatch(line) for line in lines)
    shown = []
    for line in lines:
        first = line[:1]
        if (
            (">" in line and _QUOTE.match(line))
            or (first in _RULES and _RULER.fullmatch(line))
            or (first in "`~" and _FENCE.fullmatch(line))
            or (first == "[" and _DEFINITION.fullmatch(line))
            or (table and _TABLE.fullmatch(line))
        ):
            continue
        line = line.replace("|", " ").strip() if table else line
        shown.append(_BULLET.sub("", line, count=1) if line[:1] in _BULLETS else line)
    return shown


def _link(found: Match[str]) -> str:
    picture, words, target = found.groups()
    if picture or not words.strip():
        return URL if "://" in target or target == URL else ""
    return USER if _PROFILE.match(target) else words


# --- Repairs ----------------------------------------------------------------------------------------------------------

_REPAIRS: dict[str, Any] = read_packaged("mrs_datasets.builders.reddit", "repairs.yaml")
_NAMES = "|".join(_REPAIRS["elements"])
_VALUE = r"""(?:"[^"]{0,1000}"|'[^']{0,1000}'|(?:[^\s<>"'=]|<url>){1,1000})"""
_TAG = re.compile(
    rf"</?({_NAMES})(?:\s{{1,3}}[a-z][a-z0-9:-]{{0,30}}\s{{0,2}}=\s{{0,2}}{_VALUE}){{0,20}}\s{{0,2}}/?>", re.IGNORECASE
)
_HIDDEN = re.compile(r"<!--.{0,2000}?-->|<(script|style)>.{0,2000}?</\1>", re.IGNORECASE | re.DOTALL)
_INLINE = re.compile("|".join(_REPAIRS["inline"]))

# Patterns in RE2's syntax that find all texts these functions change (see `masks`).
MAY_BE_TAGGED = "<[/!A-Za-z\u0130\u0131\u017f\u212a]"
# ftfy changes only texts in which its pattern finds a bad sequence. Each has a character that is hardly used otherwise,
# or a symbol or accented capital after another character outside ASCII, or one of a few before another or a space.
_SYMBOLS, _RARE = _REPAIRS["symbols"], _REPAIRS["rare"]
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
    return _TAG.sub(lambda found: "" if _INLINE.fullmatch(found[1].lower()) else " ", text)


def without_mojibake(text: str) -> str:
    """The text as it was before UTF-8 was decoded as Latin-1, Windows-1252 or the like; otherwise unchanged.

    >>> without_mojibake("voilÃ\xa0, schÃ¶n â€“ naïve café")
    'voilà, schön – naïve café'
    """
    if text.isascii():
        return text
    with extra_needed("ftfy", "reddit", "cleaning texts"):
        from ftfy import fix_encoding
    return str(fix_encoding(text))
