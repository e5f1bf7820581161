"""Rows of tokens: from sentences, cut to a length or packed until they fill it, and from pairs of translations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset
from transformers import PreTrainedTokenizerFast

from mrs_suggest.common.errors import InputError

BATCH = 10_000  # sentences tokenized at a time


class TokenRows(Dataset[dict[str, Any]]):
    """Rows of ids, in one array.

    Attributes:
        shared: what each row has in addition to its ids, such as its language.
    """

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        self.shared: dict[str, Any] = {}
        parts = [np.asarray(row, dtype=np.int32) for row in rows]
        self.lengths: NDArray[np.int64] = np.array([len(row) for row in parts], dtype=np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.concatenate(parts) if parts else np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> dict[str, Any]:
        end = int(self._ends[number])
        return {"input_ids": self._ids[end - int(self.lengths[number]) : end].tolist(), **self.shared}


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
    sentences: Sequence[str],
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
    bodies: list[list[int]] = []
    cut = unknown = 0
    for first in range(0, len(sentences), BATCH):
        batch = list(sentences[first : first + BATCH])
        for ids in tokenizer(batch, add_special_tokens=False, verbose=False)["input_ids"]:
            if special.issuperset(ids):
                unknown += 1
            elif pack:
                bodies.append(ids)
            else:
                cut += len(ids) > room
                bodies.append(ids[:room])
    if pack:
        bodies = _packed(bodies, room, tokenizer.sep_token_id)
    bodies = [ids for ids in bodies if not special.issuperset(ids)]  # what is left of a long sentence may be unknown
    _require_known(bodies, language)
    return Encoded(TokenRows([*begin, *ids, *end] for ids in bodies), cut, unknown, sum(map(len, bodies)))


def encode_pairs(
    pairs: Sequence[tuple[str, str]], tokenizer: PreTrainedTokenizerFast, most: int, where: str
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
    rows: list[list[int]] = []
    cut = unknown = tokens = 0
    for first in range(0, len(pairs), BATCH):
        batch = pairs[first : first + BATCH]
        sides = (
            tokenizer(list(texts), add_special_tokens=False, verbose=False)["input_ids"]
            for texts in zip(*batch, strict=True)
        )
        for one, two in zip(*sides, strict=True):
            lengths = fair_cut(len(one), len(two), room)
            kept = one[: lengths[0]], two[: lengths[1]]
            if any(special.issuperset(ids) for ids in kept):
                unknown += 1
                continue
            cut += lengths != (len(one), len(two))
            tokens += sum(lengths)
            rows.append([*begin, *kept[0], *between, *kept[1], *end])
    _require_known(rows, where)
    return Encoded(TokenRows(rows), cut, unknown, tokens)


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


def _require_known(rows: Sequence[object], where: str) -> None:
    if not rows:
        raise InputError(f"{where}: the tokenizer knows no piece of this text; start from another encoder.")


def frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The special tokens before and after a text."""
    whole: Any = tokenizer("a")["input_ids"]
    body: Any = tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next(n for n in range(len(whole) + 1) if whole[n : n + len(body)] == body)
    return whole[:at], whole[at + len(body) :]


def _packed(bodies: Iterable[list[int]], room: int, separator: int | None) -> list[list[int]]:
    rows: list[list[int]] = [[]]
    between = [] if separator is None else [separator]
    for ids in bodies:
        needed = len(rows[-1]) + len(between) + len(ids)
        if not rows[-1]:
            rows[-1] = list(ids)
        elif needed <= room:
            rows[-1] += [*between, *ids]
        else:
            rows.append(list(ids))
        while len(rows[-1]) > room:
            rows[-1], rest = rows[-1][:room], rows[-1][room:]
            rows.append(rest)
    return rows if rows[-1] else rows[:-1]
