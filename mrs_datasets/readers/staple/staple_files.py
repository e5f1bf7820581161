"""The files of the STAPLE task (Mayhew et al. 2020): read prompt by prompt or whole; and prediction files written.

A file has blocks separated by an empty line: `prompt_<md5>|prompt`, then one `text|weight` a line in gold files, the
text alone in prediction files; plain, `.gz` or `.xz`, UTF-8.
"""

import codecs
import hashlib
import lzma
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.lines import BLOCK, EDITED, MAX_LINE, NUL, ends_inside_a_line, open_binary, read_lines
from mrs_suggest.common.text.text import is_blank

ID_PREFIX = "prompt_"
CUT_TOLERANCE = 1e-6  # the published weights of a prompt sum to 1 within 1e-15
MAX_AT_ONCE = 1 << 30  # chosen: the largest published file has 60 MB; larger files are read line by line


def prompt_id(prompt: str) -> str:
    """The id of a prompt: `prompt_` and the MD5 of its text, as in the task."""
    return f"{ID_PREFIX}{hashlib.md5(prompt.encode(), usedforsecurity=False).hexdigest()}"


class Block(NamedTuple):
    """One prompt of a file: the number of its first line, its id, its text, and the lines below it."""

    number: int
    id: str
    prompt: str
    lines: list[str]


class TaskFile(NamedTuple):
    """The content of a file: prompt i has the texts, and in gold files the weights, from bounds[i] to bounds[i + 1]."""

    ids: list[str]
    bounds: list[int]
    texts: list[str]
    weights: list[float]


def read_task_file(path: str | Path, weighted: bool = False, data: bytes | None = None) -> TaskFile:
    """Read a prediction file or, with `weighted`, a gold file; `data` has its bytes, if they were read already."""
    path = Path(path)
    found = TaskFile([], [0], [], [])
    blocks = read_gold(path, data) if weighted else ((block, block.lines, []) for block in read_blocks(path, data=data))
    for block, texts, weights in blocks:
        found.ids.append(block.id)
        found.texts.extend(texts)
        found.weights.extend(weights)
        found.bounds.append(len(found.texts))
    return found


def read_blocks(path: Path, prompts_alone: bool = False, data: bytes | None = None) -> Iterator[Block]:
    """Yield the blocks of a file in the task's format.

    Args:
        prompts_alone: every line is a prompt, with or without an empty line between, as in blind files.
        data: the file's bytes, if they were read already.

    Raises:
        InputError: the file cannot be read or has no prompts, a block does not start with one, or an id is repeated.
    """
    first: dict[str, int] = {}
    block: Block | None = None
    for number, line in _lines(path, read_whole(path) if data is None else data):
        if "\0" in line:
            raise InputError(f"{path}, line {number}: {NUL}, which the published file does not have; {EDITED}")
        if not line or line.isspace():
            if block:
                yield block
            block = None
        elif block and not prompts_alone:
            block.lines.append(line)
        else:
            if block:
                yield block
            prompt_id, bar, prompt = line.partition("|")
            if not bar or not prompt_id.startswith(ID_PREFIX) or is_blank(prompt):
                raise InputError(f"{path}, line {number}: expected {ID_PREFIX}<md5>|prompt, found {line[:60]!r}.")
            block = Block(number, prompt_id, prompt, [])
            other = first.setdefault(prompt_id, number)
            if other != number:
                raise InputError(f"{path}, line {number}: the prompt {prompt_id} is in line {other} already.")
    if block:
        yield block
    if not first:
        raise InputError(f"{path}: the file has no prompts; expected blocks that start with {ID_PREFIX}<md5>|text.")


def read_gold(path: Path, data: bytes | None = None) -> Iterator[tuple[Block, list[str], list[float]]]:
    """Yield the blocks of a gold file, each with its translations and their weights (one at least)."""
    block, weights = None, [1.0]
    data = read_whole(path) if data is None else data
    for block in read_blocks(path, data=data):
        texts, weights = _weighted(path, block)
        yield block, texts, weights
    if block and abs(math.fsum(weights) - 1) > CUT_TOLERANCE and ends_inside_a_line(path, data):
        raise InputError(
            f"{path}, line {block.number + len(block.lines)}: the file ends without a line end, and the weights of its "
            f"last prompt sum to {math.fsum(weights):.6g}, not 1; it is truncated, so fetch it again."
        )


def read_staple_predictions(path: Path) -> dict[str, list[str]]:
    """The translations of each prompt id of a prediction file, in its order; see `read_blocks` for errors."""
    return {block.id: block.lines for block in read_blocks(path)}


def write_staple_predictions(prompts: Mapping[str, str], predictions: Mapping[str, Sequence[str]], path: Path) -> int:
    """Write predictions in the task's format; return how many translations.

    A prompt without translations stays as a block without lines, so that reading the file back loses no prompt.

    Args:
        prompts: id -> text, in the order of the file.
        predictions: id -> translations; equal ones are written once.

    Raises:
        InputError: a text that the format cannot hold.
    """
    blocks, count = [], 0
    for key, prompt in prompts.items():
        if "|" in key or len(f"{key}{prompt}".splitlines()) != 1:
            raise InputError(
                f"{path}: prompt {key!r:.80}: the format allows no | in an id and no line end in a prompt."
            )
        texts = list(dict.fromkeys(predictions.get(key, ())))
        count += len(texts)
        blocks.append("\n".join([f"{key}|{prompt}", *texts, ""]))
    atomic_write(path, "\n".join(blocks))
    return count


def read_whole(path: Path) -> bytes | None:
    """The bytes of a file; None if it cannot be read or is too large, as reading it line by line will report."""
    parts = []
    size = unended = 0
    try:
        with open_binary(path) as file:
            while block := file.read(BLOCK):
                ended = block.rfind(b"\n") + 1
                unended = len(block) - ended if ended else unended + len(block)
                size += len(block)
                if unended > MAX_LINE or size > MAX_AT_ONCE:
                    return None
                parts.append(block)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        return None
    return b"".join(parts)


def _lines(path: Path, data: bytes | None) -> Iterator[tuple[int, str]]:
    """The numbered lines of a file; an ordinary one is split in one step, which is faster."""
    returns = data.count(b"\r") if data else 0
    one_end = not returns or (data is not None and returns == data.count(b"\n") == data.count(b"\r\n"))
    if data and one_end and not data.startswith(codecs.BOM_UTF8):
        with suppress(UnicodeDecodeError):
            return enumerate(data.decode().replace("\r\n", "\n").split("\n"), start=1)
    return read_lines(path, as_published=True, data=data)


def _weight(text: str) -> float:
    """The number in a text; ValueError also for forms that only Python accepts (1_0, Arabic digits)."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _weighted(path: Path, block: Block) -> tuple[list[str], list[float]]:
    """The translations of a block and their weights; InputError at the first line that is not `text|weight`."""
    parts = [line.rpartition("|") for line in block.lines]
    texts = [part[0] for part in parts]
    try:
        values = {number: _weight(number) for number in {part[2] for part in parts}}  # most weights are repeated
        weights = [values[part[2]] for part in parts]
    except ValueError:
        weights = []
    blank = {first for first in {text[:1] for text in texts} if is_blank(first)}  # few characters are first ones
    is_text = not any(text[:1] in blank and is_blank(text) for text in texts) if blank else True
    if weights and is_text and all(0 <= value < math.inf for value in values.values()):
        return texts, weights
    if not block.lines:
        raise InputError(
            f"{path}, line {block.number}: the prompt {block.id} has no translation; a gold file needs one."
        )
    below = ((number, line, _problem(line)) for number, line in enumerate(block.lines, start=block.number + 1))
    number, line, problem = next(entry for entry in below if entry[2])
    raise InputError(f"{path}, line {number}: {problem}, found {line[-60:]!r}.")


def _problem(line: str) -> str:
    """The problem of a line in a gold file that is not `text|weight`; empty for other lines."""
    text, bar, weight = line.rpartition("|")
    if bar and line.startswith(ID_PREFIX):
        return "expected an empty line before the next prompt"
    if not bar or is_blank(text):
        return "expected text|weight"
    try:
        return "" if 0 <= _weight(weight) < math.inf else "expected a finite weight of 0 or more"
    except ValueError:
        return "expected a number after the last |"
