"""Problems of the replies of a response set, found before anyone sees them."""

import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.masks import URL, mask
from mrs_suggest.common.text.scripts import in_other_script, knows_script
from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.language_detector import SURE, LanguageDetector
from mrs_suggest.suggest.own_replies.file import ResponseRow

EMPTY, DUPLICATE, CONTROL, UNKNOWN = "empty", "duplicate", "line break or control character", "not in the index"
LINK, PRIVATE, LANGUAGE, TOXIC = "link", "private data", "wrong language", "toxic"
UNUSABLE = (EMPTY, DUPLICATE, CONTROL)  # cannot be in an index whatever the user decides
Unfit = Callable[[str], str | None]  # a reply -> why it is toxic, by the word lists of its language; None: it is not


@dataclass(frozen=True)
class ResponseFinding:
    """A problem of one row.

    Attributes:
        row: the line in the file, or the row of the index, from 1.
        kind: one of the constants above.
        told: what was found, in words.
    """

    row: int
    kind: str
    reply: str
    told: str


def check_replies(
    rows: Sequence[ResponseRow],
    language: str,
    detector: LanguageDetector | None = None,
    known: Collection[str] = (),
    toxic: Unfit | None = None,
) -> Iterator[ResponseFinding]:
    """Report what is wrong with the rows, in their order; for an empty or duplicate row, only that.

    Args:
        language: in which the replies are to be.
        detector: the model's; a reply counts as another language's where `SURE` of it. None, or one that does not know
            the language: only the script is looked at.
        known: normalised forms of replies that are in the index already.
        toxic: by word lists; None: nothing is found toxic.
    """
    described = find_language(language)
    script = described.script if described is not None and knows_script(described.script) else None
    seen: dict[str, int] = {}
    for row in rows:
        form = normalise_reply(row.reply)
        if is_blank(row.reply):
            yield ResponseFinding(row.number, EMPTY, row.reply, "no visible character")
        elif form in seen or form in known:
            where = f"as row {seen[form]}" if form in seen else "in the index already"
            yield ResponseFinding(row.number, DUPLICATE, row.reply, where)
        else:
            seen[form] = row.number
            yield from _of_text(row, language, detector, script, toxic)


def toxic_by_lists(guard: GuardData, language: str) -> Unfit | None:
    """A function that finds slurs of the guard's list in a reply; None without lists for the language."""
    lists = guard.get(language)
    return None if lists is None else lambda reply: ", ".join(lists.holds("slurs", reply)) or None


def check_removed(rows: Sequence[ResponseRow], known: Collection[str]) -> Iterator[ResponseFinding]:
    """Rows that name no reply of the index; blank ones are passed over.

    Args:
        known: normalised forms of the replies in the index.
    """
    for row in rows:
        if not is_blank(row.reply) and normalise_reply(row.reply) not in known:
            yield ResponseFinding(row.number, UNKNOWN, row.reply, "no reply of the index is similar")


def _of_text(
    row: ResponseRow, language: str, detector: LanguageDetector | None, script: str | None, toxic: Unfit | None
) -> Iterator[ResponseFinding]:
    text = row.reply
    if odd := next((c for c in text if unicodedata.category(c) in ("Cc", "Zl", "Zp")), None):
        yield ResponseFinding(row.number, CONTROL, text, f"U+{ord(odd):04X}")
    masked = mask(text)
    if masked != text:
        links = masked.count(URL) > text.count(URL)
        yield ResponseFinding(row.number, LINK if links else PRIVATE, text, masked)
    if script is not None and in_other_script(text, script):
        yield ResponseFinding(row.number, LANGUAGE, text, f"no letter of {language}'s script")
    elif detector is not None and language in detector.languages:
        found, probability = detector.rank(text)[0]
        if found != language and probability >= SURE:
            yield ResponseFinding(row.number, LANGUAGE, text, f"{found} ({probability:.0%})")
    for example in row.examples:
        if (masked := mask(example)) != example:
            yield ResponseFinding(row.number, PRIVATE, text, f"in an example: {masked}")
    if toxic is not None and (why := toxic(text)):
        yield ResponseFinding(row.number, TOXIC, text, why)
