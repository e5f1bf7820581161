"""Rows of tokens: from sentences, cut to a length or packed until they fill it, and from pairs of translations."""

import json
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, Any

import numpy as np
import tokenizers
from numpy.typing import NDArray
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.pretraining.cache import cached_folder
from mrs_suggest.training.pretraining.texts import Streamed, in_batches

STORED = 10_000  # texts from which the rows of training are kept on disk
NOTES = ("cut", "unknown", "tokens")
BATCH = 10_000  # sentences tokenized at a time


class TokenRows(Dataset[dict[str, Any]]):
    """Rows of ids, in one array, which may be memory-mapped.

    Args:
        ids: of all rows, one after the other.
        ends: where each row ends.

    Attributes:
        shared: what each row has in addition to its ids, such as its language.
    """

    def __init__(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        self.shared: dict[str, Any] = {}
        self._ids, self._ends = ids, ends

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self._ends, prepend=0)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number: int) -> dict[str, Any]:
        begin = int(self._ends[number - 1]) if number else 0
        return {"input_ids": self._ids[begin : int(self._ends[number])].tolist(), **self.shared}


@dataclass(frozen=True)
class Encoded:
    """The rows of one language.

    Attributes:
        cut: sentences or pairs that lost an end, since they were longer than a row.
        unknown: those that were left out, since the tokenizer knows none of their pieces (of a pair: of one side).
        tokens: of the rows, special ones aside.
    """

    rows: TokenRows
    cut: int
    unknown: int
    tokens: int


def encode(
    sentences: Collection[str],
    tokenizer: PreTrainedTokenizerFast,
    most: int,
    pack: bool,
    language: str,
    framed: bool = True,
) -> Encoded:
    """Tokenize sentences into rows of at most `most` tokens.

    Args:
        pack: fill the rows: sentences follow each other in their order, with the separator between them (as RoBERTa's
            FULL-SENTENCES, Liu et al. 2019, section 4.2); one that no row could hold continues in the next. Else a row
            is a sentence, and its end is cut off.
        framed: put the tokenizer's special tokens around each row.
    """
    begin, end = frame(tokenizer) if framed else ([], [])
    room = most - len(begin) - len(end)
    special = set(tokenizer.all_special_ids)
    notes = dict.fromkeys(NOTES, 0)

    def bodies() -> Iterator[list[int]]:
        for batch in in_batches(sentences, BATCH):
            for ids in tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"]:
                if special.issuperset(ids):
                    notes["unknown"] += 1
                else:
                    notes["cut"] += not pack and len(ids) > room
                    yield ids if pack else ids[:room]

    def rows() -> Iterator[list[int]]:
        for ids in _packed(bodies(), room, tokenizer.sep_token_id) if pack else bodies():
            if not special.issuperset(ids):  # what is left of a long sentence may be unknown
                notes["tokens"] += len(ids)
                yield [*begin, *ids, *end]

    return _encoded(
        rows(), notes, sentences, f"{begin} {room} {end} {pack} {tokenizer.sep_token_id}", tokenizer, language
    )


def encode_pairs(
    pairs: Collection[tuple[str, str]], tokenizer: PreTrainedTokenizerFast, most: int, where: str
) -> Encoded:
    """Tokenize translations into rows of at most `most` tokens, a pair in each (Conneau and Lample 2019, section 3.4).

    A row is the tokenizer's own row of two texts, such as `[CLS] a [SEP] b [SEP]`.

    Raises:
        InputError: the tokenizer knows none of the text, or a row has no room for two texts.
    """
    begin, between, end = pair_frame(tokenizer)
    room = most - len(begin) - len(between) - len(end)
    if room < 2:
        raise InputError(f"--max_tokens {most}: leaves no room for two texts next to the special tokens; raise it.")
    special = set(tokenizer.all_special_ids)
    notes = dict.fromkeys(NOTES, 0)

    def rows() -> Iterator[list[int]]:
        for batch in in_batches(pairs, BATCH):
            sides = (
                tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
                for texts in zip(*batch, strict=True)
            )
            for one, two in zip(*sides, strict=True):
                lengths = fair_cut(len(one), len(two), room)
                kept = one[: lengths[0]], two[: lengths[1]]
                if any(special.issuperset(ids) for ids in kept):
                    notes["unknown"] += 1
                    continue
                notes["cut"] += lengths != (len(one), len(two))
                notes["tokens"] += sum(lengths)
                yield [*begin, *kept[0], *between, *kept[1], *end]

    return _encoded(rows(), notes, pairs, f"{begin} {between} {room} {end}", tokenizer, where)


def _encoded(
    rows: Iterator[list[int]],
    notes: dict[str, int],
    texts: Collection[Any],
    settings: str,
    tokenizer: PreTrainedTokenizerFast,
    where: str,
) -> Encoded:
    """The rows in memory or, of many texts that are streamed, memory-mapped files (`cached_folder`), written once.

    Args:
        notes: complete once `rows` are through.
        settings: on which the rows depend, in addition to texts and tokenizer.
    """

    def write(file: IO[bytes]) -> NDArray[np.int64]:
        lengths = array("q")
        for row in rows:
            file.write(array("i", row))
            lengths.append(len(row))
        if not lengths:
            raise InputError(f"{where}: the tokenizer knows no piece of this text; start from another encoder.")
        return np.cumsum(lengths)

    if not isinstance(texts, Streamed) or len(texts) < STORED:
        buffer = BytesIO()
        ends = write(buffer)
        return Encoded(TokenRows(np.frombuffer(buffer.getbuffer(), np.int32), ends), **notes)

    def write_files(folder: Path) -> None:
        with (folder / "ids.bin").open("wb") as file:
            np.save(folder / "ends.npy", write(file))
        (folder / "notes.json").write_text(json.dumps(notes))

    special, own = sorted(tokenizer.all_special_ids), tokenizer.backend_tokenizer.to_str()
    folder = cached_folder(f"{tokenizers.__version__} {settings} {special} {own}\n{texts.digest}", write_files)
    ids, ends = np.memmap(folder / "ids.bin", np.int32, "r"), np.load(folder / "ends.npy", mmap_mode="r")
    return Encoded(TokenRows(ids, ends), **json.loads((folder / "notes.json").read_text()))


def fair_cut(one: int, two: int, room: int) -> tuple[int, int]:
    """How many tokens two texts keep in a row with room for so many: the longer one loses tokens first.

    >>> fair_cut(9, 2, 8), fair_cut(9, 7, 8), fair_cut(3, 4, 8), fair_cut(9, 9, 7)
    ((6, 2), (4, 4), (3, 4), (4, 3))
    """
    if one + two <= room:
        return one, two
    half = room // 2
    if one <= half:
        return one, room - one
    return (room - two, two) if two <= half else (room - half, half)


def pair_frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int], list[int]]:
    """The special tokens before, between and after two texts; between them at least the separator, if there is one."""
    whole: Any = tokenizer("a", "a")
    ids, side = whole["input_ids"], whole.sequence_ids(0)
    first, second = ([n for n, part in enumerate(side) if part == number] for number in (0, 1))
    begin, between, end = ids[: first[0]], ids[first[-1] + 1 : second[0]], ids[second[-1] + 1 :]
    if not between and tokenizer.sep_token_id is not None:
        between = [int(tokenizer.sep_token_id)]
    return begin, between, end


def frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    whole: Any = tokenizer("a")["input_ids"]
    body: Any = tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next(n for n in range(len(whole) + 1) if whole[n : n + len(body)] == body)
    return whole[:at], whole[at + len(body) :]


def _packed(bodies: Iterable[list[int]], room: int, separator: int | None) -> Iterator[list[int]]:
    between = [] if separator is None else [separator]
    row: list[int] = []
    for ids in bodies:
        if row and len(row) + len(between) + len(ids) <= room:
            row += [*between, *ids]
        else:
            if row:
                yield row
            row = list(ids)
        while len(row) > room:
            yield row[:room]
            row = row[room:]
    if row:
        yield row
