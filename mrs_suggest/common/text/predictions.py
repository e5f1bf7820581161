"""The five-column prediction file of MRS: message, reference, three suggestions; tab-separated.

The project writes no header line. One that another program wrote is left out when the file is read.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import visible

BOM = codecs.BOM_UTF8.decode()
SUGGESTIONS = 3  # three replies are shown (Zhang et al. 2021, section 3.3)
# A first line is a header if each of its fields is such a name, in any case.
_MESSAGE = re.compile("message|prompt|question|query|context|input|source")
_REFERENCE = re.compile("ref|reference|gold|target|reply|real reply|response|answer")
_SUGGESTION = re.compile(r"(?:suggestion|prediction|hypothesis|candidate|output|reply|response)s?[ _-]?\d*|s\d+")


@dataclass(frozen=True)
class Prediction:
    """One example: `suggestions` holds 1 to `SUGGESTIONS` texts, best first; any text may be empty."""

    message: str
    reference: str
    suggestions: tuple[str, ...]


def predictions_name(language: str) -> str:
    """The file of a language's test messages, their replies and the suggestions, in the folder of a run."""
    return f"predictions.{language}.tsv"


def read_predictions(path: Path, nbest: int = SUGGESTIONS) -> list[Prediction]:
    """Read a prediction file; only tab and newline are special, and an empty field stays empty.

    A byte-order mark at the start, which spreadsheets and editors write, is not part of the first message. A header
    line is left out, with a note on stderr.

    Raises:
        InputError: the file is missing, empty, not UTF-8, or a line has fewer than three or more than 2 + `nbest`
            columns.
    """
    predictions = []
    for number, line in read_lines(path):
        fields = line.split("\t")
        if not 3 <= len(fields) <= 2 + nbest:
            raise InputError(
                f"{path}, line {number}: expected message, reference and 1 to {nbest} suggestions separated by tabs, "
                f"found {len(fields)} column{'s' * (len(fields) != 1)}."
            )
        if number == 1 and _is_header(fields):
            print(f"note: {visible(path.name)}: line 1 has the names of columns and is left out.", file=sys.stderr)
            continue
        predictions.append(Prediction(fields[0], fields[1], tuple(fields[2:])))
    if not predictions:
        raise InputError(f"{path}: the file is empty; expected one example per line.")
    return predictions


def _is_header(fields: Sequence[str]) -> bool:
    message, reference, *suggestions = (field.strip().casefold() for field in fields)
    return bool(
        _MESSAGE.fullmatch(message) and _REFERENCE.fullmatch(reference) and all(map(_SUGGESTION.fullmatch, suggestions))
    )


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write a prediction file; tabs and line ends inside a text become spaces."""
    text = "".join(_line((p.message, p.reference, *p.suggestions)) for p in predictions)
    # If the first message itself begins with U+FEFF, write another one before it: readers remove one.
    atomic_write(path, f"{BOM}{text}" if text.startswith(BOM) else text)


def _line(fields: Sequence[str]) -> str:
    clean = (field.replace("\t", " ").replace("\r\n", " ").replace("\n", " ").replace("\r", " ") for field in fields)
    return "\t".join(clean) + "\n"
