"""Reads the files of systems: texts of suggestions, or numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mrs_metrics.tokenize import Tokenizer, get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import KNOWN, LANGUAGES
from mrs_suggest.common.text.predictions import read_predictions

PREDICTION_FILE = "message, reference, suggestions; separated by tabs, a header line is left out"
KNOWN_LANGUAGES = f"MRS has {' '.join(LANGUAGES)}, known are {' '.join(sorted(KNOWN))}"


def read_texts(path: Path, language: str, nbest: int) -> tuple[list[tuple[str, ...]], list[str], list[str], list[str]]:
    """The suggestions and references of a prediction file, what identifies the examples, and their messages."""
    if language not in KNOWN:
        raise InputError(f"--language: unknown language {language!r}; {KNOWN_LANGUAGES}.")
    if nbest < 1:
        raise InputError(f"--nbest {nbest}: expected 1 or more.")
    rows = read_predictions(path, nbest)
    return (
        [row.suggestions for row in rows],
        [row.reference for row in rows],
        [f"{row.message}\t{row.reference}" for row in rows],
        [row.message for row in rows],
    )


def tokenizer_of(language: str, sentences: str, punkt: str | None) -> Tokenizer:
    if sentences != "punkt":
        if punkt is not None:
            raise InputError("--punkt: applies only to --sentences punkt; add that option.")
        return get_tokenizer(language)
    try:
        return get_tokenizer(language, sentences, punkt)
    except (ValueError, ImportError) as error:
        raise InputError(f"--sentences punkt: {error}") from error


def read_numbers(path: Path, what: str, texts: int, count: int | None) -> Iterator[tuple[int, list[str], list[float]]]:
    """Line number, texts and numbers of each line of a file; `count` numbers a line, or two or more."""
    for number, line in read_lines(path):
        fields = line.split("\t")
        words = fields[texts:]
        try:
            values = [float(word) for word in words if "_" not in word]  # Python reads 1_0 as 10
        except ValueError:
            values = []
        if len(values) != (count or max(2, len(words))):
            raise InputError(f"{path}, line {number}: expected {what}, separated by tabs, found {line[:60]!r}.")
        yield number, fields[:texts], values
