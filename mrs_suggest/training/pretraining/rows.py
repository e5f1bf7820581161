"""Rows of tokens: from sentences, cut to a length or packed until they fill it, and from pairs of translations."""

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError

NOTES = ("cut", "unknown", "tokens")
BATCH = 10_000  # sentences tokenized at a time


class TokenRows(Dataset[dict[str, Any]]):
    """The rows of one language.

    Args:
        ids: of all rows, one after the other; or the file that has them, from which rows are read one by one.
        ends: where each row ends.

    Attributes:
        notes: `cut`, sentences or pairs that lost an end, since they were longer than a row; `unknown`, those that were
            left out, since the tokenizer knows none of their pieces (of a pair: of one side); `tokens` of the rows,
            special ones aside.
        shared: what each row has in addition to its ids, such as its language.
    """

    def __init__(self, ids: NDArray[np.int32] | Path, ends: NDArray[np.int64], notes: Mapping[str, int]) -> None:
        self.ids, self.ends, self.notes = ids, ends, notes
        self.shared: Mapping[str, Any] = {}

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.ends, prepend=0)

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, number: int) -> dict[str, Any]:
        begin, end = int(self.ends[number - 1]) if number else 0, int(self.ends[number])
        own = self.ids
        found = np.fromfile(own, np.int32, end - begin, offset=4 * begin) if isinstance(own, Path) else own[begin:end]
        return {"input_ids": found.tolist(), **self.shared}


def encode(
    sentences: Collection[str],
    tokenizer: PreTrainedTokenizerFast,
    most: int,
    pack: bool,
    where: str,
    framed: bool = True,
) -> TokenRows:
    """Tokenize sentences into rows of at most `most` tokens.

    Args:
        pack: fill the rows: sentences follow each other in their order, with the separator between them (as RoBERTa's
            FULL-SENTENCES, Liu et al. 2019, section 4.2); one that no row could hold continues in the next. Else a row
            is a sentence, and its end is cut off.
        where: for the error if the tokenizer knows no piece of the text; empty: there may be no rows.
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

    return _in_memory(rows(), notes, where)


def encode_pairs(
    pairs: Collection[tuple[str, str]], tokenizer: PreTrainedTokenizerFast, most: int, where: str
) -> TokenRows:
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

    return _in_memory(rows(), notes, where)


def _in_memory(rows: Iterator[list[int]], notes: dict[str, int], where: str) -> TokenRows:
    """The rows in memory; `notes` are complete once `rows` are through."""
    ids, lengths = array("i"), array("q")
    for row in rows:
        ids.extend(row)
        lengths.append(len(row))
    if where and not lengths:
        raise InputError(f"{where}: the tokenizer knows no piece of this text; start from another encoder.")
    return TokenRows(np.array(ids, np.int32), np.cumsum(lengths, dtype=np.int64), notes)


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
