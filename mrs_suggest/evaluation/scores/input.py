"""Reads the files of systems: texts of suggestions, or numbers."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mrs_metrics.tokenize import Tokenizer, found_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import KNOWN, LANGUAGES
from mrs_suggest.common.text.predictions import read_predictions, unit_lines

PREDICTION_FILE = "message, reference, suggestions; separated by tabs, a header line is left out"
EXAMPLE = "example"  # the unit of inference where no message is known
KNOWN_LANGUAGES = f"MRS has {' '.join(LANGUAGES)}, known are {' '.join(sorted(KNOWN))}"


class Texts(NamedTuple):
    """The (n,) columns of a prediction file; intervals resample the units."""

    suggestions: list[tuple[str, ...]]
    references: list[str]
    messages: list[str]
    units: list[str]

    @property
    def examples(self) -> list[str]:
        """What identifies each."""
        return ["\t".join(both) for both in zip(self.messages, self.references, strict=True)]

    def units_of(self, kept: Iterable[int]) -> list[str]:
        return [self.units[place] for place in kept]


def read_texts(path: Path, language: str, nbest: int, unit: str) -> Texts:
    """Read a prediction file; InputError for an unknown language, or a file without that column of units."""
    if language not in KNOWN:
        raise InputError(f"--language: unknown language {language!r}; {KNOWN_LANGUAGES}.")
    if nbest < 1:
        raise InputError(f"--nbest {nbest}: expected 1 or more.")
    rows = read_predictions(path, nbest, unit)
    columns = ((row.suggestions, row.reference, row.message, row.unit or row.message) for row in rows)
    return Texts(*map(list, zip(*columns, strict=True)))


def tokenizer_of(language: str, sentences: str, punkt: str | None) -> Tokenizer:
    if punkt is not None and sentences == "no":
        raise InputError("--punkt: applies only to --sentences punkt; add that option.")
    try:
        return found_tokenizer(language, sentences, punkt)
    except (ValueError, ImportError) as error:
        if sentences != "punkt" and punkt is None:
            raise
        raise InputError(f"--sentences punkt: {error}") from error


def read_numbers(
    path: Path, what: str, texts: int, count: int | None, unit: str
) -> Iterator[tuple[int, list[str], list[float], str]]:
    """Line number, texts, numbers and unit of each line of a file; `count` numbers a line, or two or more."""
    lines = ((*found, str(found[0])) for found in read_lines(path)) if unit == EXAMPLE else unit_lines(path, unit)
    for number, line, own in lines:
        fields = line.split("\t")
        words = fields[texts:]
        try:
            values = [float(word) for word in words if "_" not in word]  # Python reads 1_0 as 10
        except ValueError:
            values = []
        if len(values) != (count or max(2, len(words))):
            raise InputError(f"{path}, line {number}: expected {what}, separated by tabs, found {line[:60]!r}.")
        yield number, fields[:texts], values, own or str(number)


def with_skipped(kept: Any, values: Any, n: int) -> list[float]:
    """The scores of the kept examples at the places of all n; nan where an example was skipped."""
    column = np.full(n, np.nan)
    column[kept] = values
    return list(map(float, column))
