"""From the files of the STAPLE task to their weighted F1, at once: the fast way to score a prediction file.

A file of the task (Mayhew et al. 2020) holds blocks separated by an empty line: `prompt_<md5>|prompt`, then one
`text|weight` a line in gold files, the text alone in prediction files; plain, `.gz` or `.xz`, UTF-8.

A file is read and compared as a whole: one decoding, one lower-casing, one pass for each punctuation mark that occurs.
Where anything in it is unusual, it is read again line by line, which finds what is wrong and where. The reader of the
data set, `mrs_datasets.readers.staple`, accepts the same files and refuses the others with the same sentences (a test
compares them); metrics import nothing of the data sets. Under the official rules, `mrs_metrics.staple_official` reads
what is unusual, as the official scorer does.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import math
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from mrs_metrics.staple_official import read_official_file
from mrs_metrics.translations_f1 import Tally, WeightedF1Scores, merge_equal, read_texts, weighted_f1_signature

ID_PREFIX = "prompt_"
BLOCK = 1 << 22
MAX_LINE = 64 << 20  # as for data sets: a file of zero bytes packed 1000:1 would fill the memory
CUT_TOLERANCE = 1e-6  # the published weights of a prompt sum to 1 within 1e-15
MAX_AT_ONCE = 1 << 30  # chosen: the largest published file has 60 MB; larger ones are read line by line
_NO_ENDS = bytes(set(range(256)) - set(b"|\n"))
EDITED = "somebody edited the file, so fetch it again."


class TaskFile(NamedTuple):
    """The content of a file: prompt i has the texts, and in gold files the weights, from bounds[i] to bounds[i + 1]."""

    ids: list[str]
    bounds: list[int]
    texts: list[str]
    weights: list[float]


def score_files(
    gold: str | Path, predictions: str | Path, rules: str = "paper", warn: Callable[[str], None] | None = None
) -> WeightedF1Scores:
    """Score a prediction file of the task against its gold file.

    Args:
        gold: the file of the accepted translations and their weights.
        predictions: the file of the predicted translations; a prompt may be missing or have none.
        rules: `paper` or `official`, see `mrs_metrics.translations_f1`. The paper's refuse a file that is not in the
            task's format; the official ones read it as the official scorer does, see `mrs_metrics.staple_official`.
        warn: gets a sentence, with file and line, for each kind of oddity that the official rules let through;
            `warnings.warn` if None.

    Returns:
        what `score_translations` gives for the same content, to the last bit.

    Raises:
        ValueError: the rules are unknown, a file cannot be read, holds no prompt or is not in the task's format (file,
            line and what was expected), or (official) the scorer would end with an error, as where the first prompt
            has no prediction.
    """
    weighted_f1_signature(rules)  # unknown rules are refused before anything is read
    read = partial(_read_official, warn=warn or warnings.warn) if rules == "official" else read_task_file
    accepted = read(gold, weighted=True)
    predicted = read(predictions, weighted=False)
    accepted_texts = read_texts(accepted.texts, rules, accepted=True)
    predicted_texts = read_texts(predicted.texts, rules)
    where = dict(zip(predicted.ids, pairwise(predicted.bounds), strict=True))
    tally = Tally(rules)
    for prompt_id, (start, end) in zip(accepted.ids, pairwise(accepted.bounds), strict=True):
        first, last = where.get(prompt_id, (0, 0))
        tally.add(
            prompt_id,
            merge_equal(accepted_texts[start:end], accepted.weights[start:end], rules),
            set(predicted_texts[first:last]),
        )
    return tally.scores(predicted.ids)


def read_task_file(path: str | Path, weighted: bool = False) -> TaskFile:
    """Read a prediction file or, with `weighted`, a gold file.

    Raises:
        ValueError: see `score_files`.
    """
    path = Path(path)
    data = _whole(path)
    found = _at_once(data, weighted) if data is not None else None
    return _line_by_line(path, data, weighted) if found is None else found


def _read_official(path: str | Path, weighted: bool, warn: Callable[[str], None]) -> TaskFile:
    """A file as the official scorer reads it; an ordinary one at once."""
    path = Path(path)
    data = _whole(path)
    if data is None:
        return _line_by_line(path, data, weighted)
    found = _at_once(data, weighted) if data.count(b"\r") == data.count(b"\r\n") else None
    if found is not None and all(map(str.islower, found.ids)):
        return found
    prompts = read_official_file(path, data, weighted, warn)
    bounds = [0, *accumulate(map(len, prompts.values()))]
    texts, weights = zip(*(pair for pairs in prompts.values() for pair in pairs), strict=True)
    return TaskFile(list(prompts), bounds, list(texts), list(weights) if weighted else [])


def _whole(path: Path) -> bytes | None:
    """The bytes of a file; None where reading it line by line must tell what is wrong."""
    parts = []
    size = unended = 0
    try:
        with _open(path) as file:
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


def _at_once(data: bytes, weighted: bool) -> TaskFile | None:
    """The content of a file; None where it is not as expected."""
    if data.startswith(codecs.BOM_UTF8):
        return None
    if b"\r" in data:
        returns = data.count(b"\r\n")
        if returns and returns != data.count(b"\n"):
            return None
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    blocks = [block.strip("\n").partition("\n") for block in text.split("\n\n") if block.strip("\n")]
    ids = [_prompt_id(head) for head, _, _ in blocks]
    if not ids or not all(ids) or len(set(ids)) < len(ids):
        return None
    bounds = [0, *accumulate(lines.count("\n") + 1 if lines else 0 for _, _, lines in blocks)]
    whole = "\n".join(lines for _, _, lines in blocks if lines)
    if not weighted:
        texts = whole.split("\n") if whole else []
        return None if any(map(str.isspace, texts)) else TaskFile(ids, bounds, texts, [])
    if any(start == end for start, end in pairwise(bounds)) or not _one_bar_a_line(whole):
        return None
    parts = whole.replace("|", "\n").split("\n")
    texts, numbers = parts[::2], parts[1::2]
    try:
        values = {number: _weight(number) for number in set(numbers)}  # most weights come often
    except ValueError:
        return None
    if not _are_weighted(texts, values.values()):
        return None
    weights = list(map(values.__getitem__, numbers))
    if not data.endswith(b"\n") and _is_part(weights[bounds[-2] :]):
        return None
    return TaskFile(ids, bounds, texts, weights)


def _is_part(weights: Sequence[float]) -> bool:
    """Whether the weights of a prompt may lack some: they do not sum to 1."""
    return abs(math.fsum(weights) - 1) > CUT_TOLERANCE


def _ends_inside_a_line(path: Path, data: bytes | None) -> bool:
    last = data or b"\n"
    if data is None:
        with _open(path) as file:
            while block := file.read(BLOCK):
                last = block
    return not last.endswith(b"\n")


def _one_bar_a_line(text: str) -> bool:
    """Whether bars and line ends alternate, from a bar to a bar."""
    ends = text.encode().translate(None, _NO_ENDS)
    return ends == b"|\n" * (len(ends) // 2) + b"|"


def _line_by_line(path: Path, data: bytes | None, weighted: bool) -> TaskFile:
    """The content of a file; ValueError at the first line that is not as expected."""
    found = TaskFile([], [0], [], [])
    for number, prompt_id, lines in _blocks(path, data):
        texts = lines
        if weighted:
            texts, weights = _weighted(path, number, prompt_id, lines)
            found.weights.extend(weights)
        found.ids.append(prompt_id)
        found.texts.extend(texts)
        found.bounds.append(len(found.texts))
        last = number + len(lines)
    total = found.weights[found.bounds[-2] :] if weighted else [1.0]
    if _is_part(total) and _ends_inside_a_line(path, data):
        raise ValueError(
            f"{path}, line {last}: the file ends without a line end, and the weights of its last prompt sum to "
            f"{math.fsum(total):.6g}, not 1; it was cut off, so fetch it again."
        )
    return found


def _blocks(path: Path, data: bytes | None) -> Iterator[tuple[int, str, list[str]]]:
    """(line of the prompt, its id, the lines below it) of each block."""
    first: dict[str, int] = {}
    block: tuple[int, str, list[str]] | None = None
    for number, line in _lines(path, data):
        if not line or line.isspace():
            if block:
                yield block
            block = None
        elif block:
            block[2].append(line)
        else:
            prompt_id = _prompt_id(line)
            if not prompt_id:
                raise ValueError(f"{path}, line {number}: expected {ID_PREFIX}<md5>|prompt, found {line[:60]!r}.")
            if prompt_id in first:
                raise ValueError(
                    f"{path}, line {number}: the prompt {prompt_id} stands in line {first[prompt_id]} already."
                )
            first[prompt_id] = number
            block = number, prompt_id, []
    if block:
        yield block
    if not first:
        raise ValueError(f"{path}: the file holds no prompt; expected blocks that start with {ID_PREFIX}<md5>|text.")


def _lines(path: Path, data: bytes | None) -> Iterator[tuple[int, str]]:
    """(line number from 1, text) of each line of the bytes, or of the file where they could not be read at once."""
    number = 0
    rest = b""
    returns = None  # whether lines end with a carriage return
    try:
        with _open(path) if data is None else io.BytesIO(data) as file:
            while block := file.read(BLOCK):
                if number == 0 and not rest and block.startswith(codecs.BOM_UTF8):
                    raise ValueError(
                        f"{path}, line 1: a byte-order mark, which the published file does not have; {EDITED}"
                    )
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    if line.endswith(b"\r") is not returns:
                        if returns is not None:
                            raise ValueError(
                                f"{path}, line {number}: another line end than in the lines before; {EDITED}"
                            )
                        returns = line.endswith(b"\r")
                    yield number, _decode(path, number, line)
                if len(rest) > MAX_LINE:
                    raise ValueError(
                        f"{path}, line {number + 1}: no line end within {MAX_LINE >> 20} MiB; expected a text file "
                        "with one row a line."
                    )
            if rest:
                yield number + 1, _decode(path, number + 1, rest)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path}: the compressed file is damaged or cut off ({error}); fetch it again.") from None
    except OSError as error:
        raise ValueError(f"{path}: cannot read the file ({error.strerror}).") from None


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        return line.removesuffix(b"\r").decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); "
            "convert the file to UTF-8."
        ) from None


def _prompt_id(line: str) -> str:
    """The id of a prompt's line; empty where it is no such line."""
    prompt_id, bar, prompt = line.partition("|")
    return prompt_id if bar and prompt_id.startswith(ID_PREFIX) and prompt.strip() else ""


def _weight(text: str) -> float:
    """The number in a text; ValueError also where Python alone would take it for one (1_0, Arabic digits)."""
    if "_" in text or not text.isascii():
        raise ValueError(text)
    return float(text)


def _are_weighted(texts: list[str], weights: Collection[float]) -> bool:
    return bool(weights) and min(weights) >= 0 and all(map(math.isfinite, weights)) and all(map(str.strip, texts))


def _weighted(path: Path, number: int, prompt_id: str, lines: list[str]) -> tuple[list[str], list[float]]:
    """The translations below the prompt in line `number`, and their weights."""
    parts = [line.rpartition("|") for line in lines]
    texts = [part[0] for part in parts]
    try:
        weights = [_weight(part[2]) for part in parts]
    except ValueError:
        weights = []
    if _are_weighted(texts, weights):
        return texts, weights
    if not lines:
        raise ValueError(f"{path}, line {number}: the prompt {prompt_id} has no translation; a gold file needs one.")
    below = ((at, line, _problem(line)) for at, line in enumerate(lines, start=number + 1))
    at, line, problem = next(entry for entry in below if entry[2])
    raise ValueError(f"{path}, line {at}: {problem}, found {line[-60:]!r}.")


def _problem(line: str) -> str:
    """What a line of a gold file that is no `text|weight` should be."""
    text, bar, weight = line.rpartition("|")
    if bar and line.startswith(ID_PREFIX):
        return "expected an empty line before the next prompt"
    if not bar or not text.strip():
        return "expected text|weight"
    try:
        return "" if 0 <= _weight(weight) < math.inf else "expected a finite weight of 0 or more"
    except ValueError:
        return "expected a number after the last |"
