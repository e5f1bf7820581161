"""Rows of tokens from sentences: cut to a length, or packed until they fill it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Dataset

from mrs_core.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BATCH = 10_000  # sentences tokenized at a time


class TokenRows(Dataset[dict[str, list[int]]]):
    """Rows of ids, in one array.

    Args:
        rows: each the ids of a row with its special tokens.
    """

    def __init__(self, rows: Iterable[Sequence[int]]) -> None:
        parts = [np.asarray(row, dtype=np.int32) for row in rows]
        self.lengths: NDArray[np.int64] = np.array([len(row) for row in parts], dtype=np.int64)
        self._ends = np.cumsum(self.lengths)
        self._ids = np.concatenate(parts) if parts else np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        end = int(self._ends[number])
        return {"input_ids": self._ids[end - int(self.lengths[number]) : end].tolist()}


@dataclass(frozen=True)
class Encoded:
    """The rows of one language.

    Attributes:
        cut: sentences that lost their end, since they were longer than a row.
        unknown: sentences that were left out, since the tokenizer knows none of their pieces.
        tokens: of the rows, special ones aside.
    """

    rows: TokenRows
    cut: int
    unknown: int
    tokens: int


def encode(
    sentences: Sequence[str], tokenizer: PreTrainedTokenizerFast, most: int, pack: bool, language: str
) -> Encoded:
    """Tokenize sentences into rows of at most `most` tokens.

    Args:
        pack: fill the rows: sentences follow each other in their order, with the separator between them (as RoBERTa's
            FULL-SENTENCES, Liu et al. 2019, section 4.2); one that no row could hold goes on in the next. Else a row
            is a sentence, and its end is cut off.
        language: for the error.

    Raises:
        InputError: the tokenizer knows none of the text.
    """
    begin, end = frame(tokenizer)
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
    if not bodies:
        raise InputError(
            f"{language}: the tokenizer knows no piece of this text; pass --new_pieces to add some, such as 5000."
        )
    return Encoded(TokenRows([*begin, *ids, *end] for ids in bodies), cut, unknown, sum(map(len, bodies)))


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
