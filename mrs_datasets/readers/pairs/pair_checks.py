"""Checks of the user's own pairs: unusual rows are found, counted and, if unusable, dropped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from mrs_datasets.prepared.report import Report
from mrs_datasets.readers.pairs.pair_files import STOP, Columns, Row
from mrs_suggest.common.text.language_id import MIN_LANGUAGE_SCORE, Identify, is_other_language
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.scripts import MIN_LETTERS, in_other_script, knows_script
from mrs_suggest.common.text.text import is_blank

# The official training script (train.sh) cuts messages off at 70 tokens and replies at 30. A subword tokenizer makes at
# least one token per word, and tokens of more than ten characters are rare: longer texts are not read completely.
MESSAGE_TOKENS, REPLY_TOKENS = 70, 30
CHARACTERS_A_TOKEN = 10
BATCH = 1024
SPACES = "spaces at the ends, removed"


@dataclass(frozen=True)
class PairOptions:
    """How the user's own pairs are read.

    Attributes:
        on_error: `stop` at the first row that breaks the layout, or `skip` such rows and count them.
        language: of a file or data set whose name does not give it.
        identify, known_languages: identifies the language of texts, and the languages it knows (see
            `mrs_datasets.check.check.check`); None leaves the languages unchecked.
    """

    columns: Columns = field(default_factory=Columns)
    on_error: str = STOP
    language: str | None = None
    identify: Identify | None = None
    known_languages: frozenset[str] = frozenset()


def long_rule(side: str, tokens: int) -> str:
    """The name of the finding for messages (replies) that are longer than models read."""
    return (
        f"{side} of more than {tokens} words or {tokens * CHARACTERS_A_TOKEN} characters (the official script cuts off "
        f"at {tokens} tokens), kept"
    )


def checked_pairs(
    rows: Iterable[Row], language: str, part: str, report: Report, options: PairOptions
) -> Iterator[tuple[str, str]]:
    """Yield the rows' (message, reply), stripped of spaces at the ends, and record findings under `part`.

    Dropped: rows whose message or reply is blank (see `mrs_suggest.common.text.text.is_blank`). Kept and counted: sides
    that are longer than models read, rows without a letter of the language's script, rows that `options.identify`
    identifies as another language.
    """
    described = find_language(language)
    script = described.script if described and knows_script(described.script) else None
    identify = options.identify if language.partition("-")[0] in options.known_languages else None
    source = iter(rows)
    while batch := list(islice(source, BATCH)):
        usable = [row for row in batch if not _dropped(row, part, report)]
        for row in usable:
            _note(row, language, script, part, report)
        if identify:
            answers = identify([f"{row.message} {row.reply}" for row in usable])
            for row, answer in zip(usable, answers, strict=True):
                if is_other_language(answer, language):
                    rule = f"in another language than {language} (fastText, above {MIN_LANGUAGE_SCORE}), kept"
                    report.find(part, rule, row.where)
        for row in usable:
            yield row.message.strip(), row.reply.strip()


def _dropped(row: Row, part: str, report: Report) -> bool:
    for side, text in (("message", row.message), ("reply", row.reply)):
        if is_blank(text):
            report.drop(part, f"empty {side}", where=row.where)
            return True
    return False


def _note(row: Row, language: str, script: str | None, part: str, report: Report) -> None:
    if row.message != row.message.strip() or row.reply != row.reply.strip():
        report.find(part, SPACES, row.where)
    for side, text, tokens in (("message", row.message, MESSAGE_TOKENS), ("reply", row.reply, REPLY_TOKENS)):
        if len(text) > 2 * tokens and (len(text) > tokens * CHARACTERS_A_TOKEN or len(text.split()) > tokens):
            report.find(part, long_rule(side, tokens), row.where)
    if script and in_other_script(f"{row.message} {row.reply}", script):
        rule = f"{MIN_LETTERS} letters or more, and none of {language}'s script ({script}), kept"
        report.find(part, rule, row.where)
