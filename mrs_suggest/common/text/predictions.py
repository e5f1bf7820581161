"""The five-column prediction file of MRS: message, reference, three suggestions; tab-separated.

The project writes no header line. One that another program wrote is left out when the file is read.
"""

import codecs
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import visible

BOM = codecs.BOM_UTF8.decode()
MESSAGE = "message"  # the unit of inference, unless another column is named
SUGGESTIONS = 3  # three replies are shown (Zhang et al. 2021, section 3.3)
PASSED_ON = 0.2  # share of the messages that a fallback answers, at most; ours
# A first line is a header if each of its fields is such a name, in any case.
_PROMPT = re.compile("message|prompt|question|query|context|input|source")
_REFERENCE = re.compile("ref|reference|gold|target|reply|real reply|response|answer")
_SUGGESTION = re.compile(r"(?:suggestion|prediction|hypothesis|candidate|output|reply|response)s?[ _-]?\d*|s\d+")


@dataclass(frozen=True)
class Prediction:
    """One example: `suggestions` holds at most `SUGGESTIONS` texts, best first; any text may be empty. Intervals keep
    examples of one `unit` together: the text of another column, or if empty the message."""

    message: str
    reference: str
    suggestions: tuple[str, ...]
    unit: str = ""


def predictions_name(language: str) -> str:
    """The file of a language's test messages, their replies and the suggestions, in the folder of a run."""
    return f"predictions.{language}.tsv"


def unit_lines(path: Path, unit: str) -> Iterator[tuple[int, str, str]]:
    """Line numbers, lines without the column that the first line calls `unit`, and the texts of this column; InputError
    if the first line does not name it, or a line lacks it."""
    lines = read_lines(path)
    names = next(lines, (1, ""))[1].split("\t")
    if unit not in names:
        raise InputError(f"{path}: expected a header line with a column {unit!r} (--unit), found {names!r:.80}.")
    for number, line in lines:
        fields = line.split("\t")
        if len(fields) <= (place := names.index(unit)):
            raise InputError(f"{path}, line {number}: expected {place + 1} columns or more, found {len(fields)}.")
        own = fields.pop(place)
        yield number, "\t".join(fields), own


def read_predictions(path: Path, nbest: int = SUGGESTIONS, unit: str = MESSAGE) -> list[Prediction]:
    """Read a prediction file; only tab and newline are special, and an empty field stays empty.

    A byte-order mark at the start, which spreadsheets and editors write, is not part of the first message. A header
    line is left out, with a note on stderr. A `unit` other than the message is a column of `unit_lines`.

    Raises:
        InputError: the file is missing, empty, not UTF-8, or a line has fewer than three or more than 2 + `nbest`
            columns.
    """
    predictions = []
    lines = ((*found, "") for found in read_lines(path)) if unit == MESSAGE else unit_lines(path, unit)
    for number, line, own in lines:
        fields = line.split("\t")
        if not 3 <= len(fields) <= 2 + nbest:
            raise InputError(
                f"{path}, line {number}: expected message, reference and 1 to {nbest} suggestions separated by tabs, "
                f"found {len(fields)} column{'s' * (len(fields) != 1)}."
            )
        if number == 1 and _is_header(fields):
            print(f"note: {visible(path.name)}: line 1 has the names of columns and is left out.", file=sys.stderr)
            continue
        predictions.append(Prediction(fields[0], fields[1], tuple(fields[2:]), own))
    if not predictions:
        raise InputError(f"{path}: the file is empty; expected one example per line.")
    return predictions


def _is_header(fields: Sequence[str]) -> bool:
    message, reference, *suggestions = (field.strip().casefold() for field in fields)
    return bool(
        _PROMPT.fullmatch(message) and _REFERENCE.fullmatch(reference) and all(map(_SUGGESTION.fullmatch, suggestions))
    )


def write_predictions(path: Path, predictions: Iterable[Prediction]) -> None:
    """Write a prediction file; tabs and line ends inside a text become spaces. Without a suggestion, an empty one."""
    text = "".join(_line((p.message, p.reference, *(p.suggestions or ("",)))) for p in predictions)
    # If the first message itself begins with U+FEFF, write another one before it: readers remove one.
    atomic_write(path, f"{BOM}{text}" if text.startswith(BOM) else text)


def _line(fields: Sequence[str]) -> str:
    clean = (field.replace("\t", " ").replace("\r\n", " ").replace("\n", " ").replace("\r", " ") for field in fields)
    return "\t".join(clean) + "\n"
