"""How the official STAPLE scorer reads a file: it accepts much that is not in the task's format.

Source: the behaviour of the task's own scripts (Mayhew et al. 2020, section 2.3: `staple_2020_scorer.py` and its
reader). Files that they score are scored here too, with a warning, since no published file is like that:

1. Any line end counts, also several kinds in one file, and a carriage return inside a line.
2. Lines are trimmed and lower-cased, so that case and space around an id do not matter; an id is whatever is before
   the bar, with or without `prompt_`, and the prompt may be empty.
3. A byte-order mark is part of the first id, which therefore matches no other.
4. Of blocks with the same id the last counts, at the place of the first; one without translations does not count; the
   translations of one with an empty id join the next block.
5. A weight is what Python's `float` accepts: nan, inf, below 0, 1_0, digits of other scripts. A text may be empty.

If the scorer ends with an error, `read_official_file` refuses the file, with one exception that the paper's rules
accept: several bars in a line, of which the last one of a translation counts, the first of a prompt.
"""

import math
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import accumulate, chain
from pathlib import Path

from mrs_datasets.readers.staple.staple_files import TaskFile, read_task_file, read_whole
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

Prompts = dict[str, list[tuple[str, float]]]  # id -> texts with their weights


class _Oddities(dict[str, tuple[int, str, int]]):
    """Kind of oddity -> line and example of the first one, and how many there are."""

    def add(self, number: int, kind: str, what: str = "") -> None:
        first, example, count = self.get(kind, (number, what, 0))
        self[kind] = first, example, count + 1

    def sentences(self, path: Path) -> Iterator[str]:
        for kind, (number, what, count) in self.items():
            more = f" and {count - 1:,} more" if count > 1 else ""
            shown = f" {what!r:.60}" if what else ""
            yield f"{path}, line {number}{more}: {kind}{shown}; the task's format does not allow this."


def read_official_file(path: str | Path, weighted: bool, warn: Callable[[str], None]) -> TaskFile:
    """A file as the official scorer reads it.

    Args:
        warn: gets a sentence for each kind of oddity, with file and line.

    Raises:
        InputError: the file cannot be read or has no translations, or the scorer would end with an error; names file,
            line and what was expected.
    """
    path = Path(path)
    data = read_whole(path)
    if data is None:
        return read_task_file(path, weighted)
    with suppress(InputError):
        found = read_task_file(path, weighted, data) if data.count(b"\r") == data.count(b"\r\n") else None
        if found is not None and all(map(str.islower, found.ids)):
            return found
    prompts = _read_prompts(path, data, weighted, warn)
    bounds = [0, *accumulate(map(len, prompts.values()))]
    texts, weights = zip(*(pair for pairs in prompts.values() for pair in pairs), strict=True)
    return TaskFile(list(prompts), bounds, list(texts), list(weights) if weighted else [])


def _read_prompts(path: Path, data: bytes, weighted: bool, warn: Callable[[str], None]) -> Prompts:
    """The translations of each prompt with their weights (1 in prediction files)."""
    oddities, prompts = _Oddities(), Prompts()
    _note_line_ends(data, oddities)
    key, lines, first = "", list[tuple[str, float]](), True
    at = 0
    for number, raw in chain(read_lines(path, keep_bom=True, any_line_end=True, data=data), [(0, "")]):
        line = raw.strip()
        if line and first:
            key, first, at = _key(path, number, line, raw, oddities), False, number
        elif line:
            lines.append(_translation(path, number, line, oddities) if weighted else (line, 1.0))
        else:
            if lines and (key or not number):  # those of an empty id join the next block
                if key in prompts:
                    oddities.add(at, "the last of several blocks of a prompt counts:", key)
                prompts[key], lines = lines, []
            elif key and not first:
                oddities.add(at, "a prompt without translations does not count:", key)
            first = True
    if not prompts:
        raise InputError(f"{path}: the file has no prompt with a translation; expected blocks of id|prompt and texts.")
    for sentence in oddities.sentences(path):
        warn(sentence)
    return prompts


def _note_line_ends(data: bytes, oddities: _Oddities) -> None:
    kinds: set[bytes] = set()
    for number, end in enumerate(re.finditer(rb"\r\n|\r|\n", data) if b"\r" in data else (), start=1):
        kinds.add(end[0])
        if len(kinds) > 1:
            oddities.add(number, "line ends of several kinds, each of which ends a line")
            return


def _key(path: Path, number: int, line: str, raw: str, oddities: _Oddities) -> str:
    name, bar, prompt = line.partition("|")
    if not bar:
        raise InputError(f"{path}, line {number}: expected id|prompt, found {line[:60]!r}.")
    key = name.lower()
    if number == 1 and key.startswith("\ufeff"):
        oddities.add(number, "the byte-order mark is part of the id, which matches no other:", name)
    elif not key.startswith("prompt_"):
        oddities.add(number, "an id without prompt_ is accepted:", name)
    if key != name:
        oddities.add(number, "an id is read in lower case:", name)
    if raw[:1].isspace():
        oddities.add(number, "the space before an id is trimmed:", name)
    if not prompt:
        oddities.add(number, "an id without a prompt after it is accepted:", name)
    return key


def _translation(path: Path, number: int, line: str, oddities: _Oddities) -> tuple[str, float]:
    text, bar, number_text = line.rpartition("|")
    if not bar:
        raise InputError(f"{path}, line {number}: expected text|weight, found {line[-60:]!r}.")
    try:
        weight = float(number_text)
    except ValueError:
        raise InputError(f"{path}, line {number}: expected a number after the last |, found {line[-60:]!r}.") from None
    if not 0 <= weight < math.inf:
        oddities.add(number, "a weight that is not finite or below 0 is accepted:", number_text)
    elif "_" in number_text or not number_text.isascii():
        oddities.add(number, "a weight in an unusual form is accepted:", number_text)
    if not text.strip():
        oddities.add(number, "a translation without text is accepted:", line)
    return text, weight
