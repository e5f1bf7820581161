"""The user's own message-reply pairs: a file named by its language, or a folder of them; and checks of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.prepared.schema import MT_PREFIX
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pair_files import STOP, Broken, Columns, Row, format_of, read_rows, stem_of
from mrs_datasets.readers.pairs.pairs import chunked, split_pairs
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import MIN_LANGUAGE_SCORE, Identify, is_other_language
from mrs_suggest.common.text.languages import find_language, require_any_language
from mrs_suggest.common.text.scripts import MIN_LETTERS, in_other_script, knows_script
from mrs_suggest.common.text.text import is_blank

# The official training script (train.sh) cuts messages off at 70 tokens and replies at 30. A subword tokenizer makes at
# least one token per word, and tokens of more than ten characters are rare: longer texts are not read completely.
TOKENS = {"message": 70, "reply": 30}
CHARACTERS_A_TOKEN = 10
BATCH = 1024


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


def read_pair_files(
    source: Path, report: Report, options: PairOptions, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Read a file of pairs, or a folder of them: `LANG.tsv`, `LANG.csv`, `LANG.jsonl`, also `.gz` and `.xz`;
    `mt-LANG.*` is for machine-translated training pairs. LANG is any code (see
    `mrs_suggest.common.text.languages.find_language`).
    """
    paths = [source] if source.is_file() else [path for path in sorted(source.iterdir()) if is_pair_file(path)]
    if not paths:
        raise InputError(
            f"{source}: neither the official layout (train/, valid/, test/) nor files of pairs (LANG.tsv, LANG.csv or "
            "LANG.jsonl, with LANG a code such as es or pl) nor a folder that `datasets` can load was found."
        )
    files = {path: _config(path, options.language if source.is_file() else None) for path in paths}
    names = Counter(files.values())
    for path, config in files.items():
        if names[config] > 1:
            raise InputError(f"{path}: there is more than one file for {config}; keep one of them.")
    for path, config in files.items():
        translated = config.startswith(MT_PREFIX)
        part = f"{config}/train" if translated else config
        rows = read_rows(path, options.columns, Broken(report, part, str(path), path.name, options.on_error))
        pairs = checked_pairs(rows, config.removeprefix(MT_PREFIX), part, report, options)
        if translated:
            yield from chunked(config, "train", pairs)
        else:
            yield from split_pairs(config, pairs, report, min_reply_count, max_responses)


def is_pair_file(path: Path) -> bool:
    """Whether a file name is that of a file of pairs."""
    return path.is_file() and format_of(path) is not None and not path.name.startswith(".")


def _config(path: Path, language: str | None) -> str:
    """The config of a file: `es` or `mt-es`, from its name or the given language."""
    if language:
        return require_any_language(language, "--language").code
    stem = stem_of(path)
    require_any_language(stem.removeprefix(MT_PREFIX), str(path))
    return stem


def checked_pairs(
    rows: Iterable[Row], language: str, part: str, report: Report, options: PairOptions
) -> Iterator[tuple[str, str]]:
    """Yield the rows' (message, reply), stripped of spaces at the ends, and record findings under `part`.

    Dropped: rows whose message or reply is blank (see `is_blank`). Kept and counted: texts that are longer than models
    read, rows without a letter of the language's script, rows that `options.identify` identifies as another language.
    """
    described = find_language(language)
    script = described.script if described and knows_script(described.script) else None
    identify = options.identify if language.partition("-")[0] in options.known_languages else None
    source = iter(rows)
    while batch := list(islice(source, BATCH)):
        usable = []
        for row in batch:
            if is_blank(row.message) or is_blank(row.reply):
                report.drop(part, f"empty {'message' if is_blank(row.message) else 'reply'}", where=row.where)
            else:
                usable.append(row)
                for finding in _unusual(row, language, script):
                    report.find(part, finding, row.where)
        if identify:
            answers = identify([f"{row.message} {row.reply}" for row in usable])
            for row, answer in zip(usable, answers, strict=True):
                if is_other_language(answer, language):
                    rule = f"in another language than {language} (fastText, above {MIN_LANGUAGE_SCORE}), kept"
                    report.find(part, rule, row.where)
        for row in usable:
            yield row.message.strip(), row.reply.strip()


def _unusual(row: Row, language: str, script: str | None) -> Iterator[str]:
    if row.message != row.message.strip() or row.reply != row.reply.strip():
        yield "spaces at the ends, removed"
    for side, text in (("message", row.message), ("reply", row.reply)):
        most, characters = TOKENS[side], TOKENS[side] * CHARACTERS_A_TOKEN
        if len(text) > 2 * most and (len(text) > characters or len(text.split()) > most):
            yield (
                f"{side} of more than {most} words or {characters} characters (the official script cuts off at {most} "
                "tokens), kept"
            )
    if script and in_other_script(f"{row.message} {row.reply}", script):
        yield f"{MIN_LETTERS} letters or more, and none of {language}'s script ({script}), kept"
