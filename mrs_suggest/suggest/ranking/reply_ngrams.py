"""The n-grams of stored replies, which give the similarity of two replies without a tokenizer.

Similarity is weighted ROUGE by the official rules (`mrs_metrics.rouge`; Zhang et al. 2021, section 3.3), by which the
best of three suggestions is scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.rouge import EPSILON, MAX_ORDER, WEIGHTS, prepare_official
from mrs_metrics.tokenize import Tokenizer


@dataclass(frozen=True)
class ReplyNgrams:
    """N replies; create it with `build`.

    Attributes:
        numbers: (P,) int32, equal for equal n-grams.
        starts: (3 N + 1,) int64; those of order o (from 0) of reply r begin at `starts[3 r + o]`.
    """

    numbers: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def build(cls, replies: Sequence[str], tokenizer: Tokenizer) -> ReplyNgrams:
        """From replies, with the metric's tokenizer of their language."""
        known: dict[tuple[str, ...], int] = {}
        numbers: list[int] = []
        ends: list[int] = [0]
        for reply in replies:
            for grams in prepare_official(reply, tokenizer).ngrams:
                numbers += sorted(known.setdefault(gram, len(known)) for gram in sorted(grams))
                ends.append(len(numbers))
        return cls(np.array(numbers, np.int32), np.array(ends, np.int64))

    def __len__(self) -> int:
        return len(self.starts) // MAX_ORDER

    def part(self, replies: NDArray[np.int64]) -> ReplyNgrams:
        """The n-grams of some of the replies, in the order of their numbers."""
        begins, ends = self.starts[replies * MAX_ORDER], self.starts[(replies + 1) * MAX_ORDER]
        entries = [self.numbers[begin:end] for begin, end in zip(begins, ends, strict=True)]
        sizes = np.diff(self.starts).reshape(-1, MAX_ORDER)[replies]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return ReplyNgrams(np.concatenate([self.numbers[:0], *entries]), starts)

    def similarities(self, replies: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float64]:
        """(n, n) weighted ROUGE between n replies, 0 to 1; symmetric."""
        count = len(replies)
        places = (np.asarray(replies, np.int64) * MAX_ORDER + np.arange(MAX_ORDER)[:, None]).reshape(-1)
        sizes = self.starts[places + 1] - self.starts[places]
        ends = sizes.cumsum()
        entries = self.numbers[np.repeat(self.starts[places] - ends + sizes, sizes) + np.arange(ends[-1])]
        columns = np.empty(self._different, np.int64)
        columns[entries] = np.arange(len(entries))  # of equal n-grams, the last place
        columns = columns[entries]
        several = np.bincount(columns, minlength=1) > 1  # only an n-gram of several replies is an overlap
        kept, ranks = several[columns], np.concatenate([[0], several.cumsum()])
        has = np.zeros((count, ranks[-1]), np.float32)
        has[np.repeat(np.arange(len(places)) % count, sizes)[kept], ranks[columns[kept]]] = 1
        by_order = np.split(has, ranks[np.minimum(ends[count - 1 : -1 : count], len(several))], axis=1)
        total = np.zeros((count, count))
        for own, size, weight in zip(by_order, np.split(sizes, MAX_ORDER), WEIGHTS, strict=True):
            overlap = own @ own.T
            np.fill_diagonal(overlap, size)
            share = overlap / np.maximum(size, 1)  # of the n-grams of the column's reply
            other = share.T.copy()
            total += weight * 2 * share * other / (share + other + EPSILON)
        return total

    @cached_property
    def _different(self) -> int:
        return int(self.numbers.max(initial=0)) + 1

    def arrays(self) -> dict[str, np.ndarray]:
        return {"numbers": self.numbers, "starts": self.starts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> ReplyNgrams:
        """The n-grams that `arrays` wrote; KeyError or ValueError if they are damaged."""
        ngrams = cls(np.asarray(arrays["numbers"], np.int32), np.asarray(arrays["starts"], np.int64))
        starts = ngrams.starts
        if len(starts) % MAX_ORDER != 1 or starts[-1] != len(ngrams.numbers) or np.any(np.diff(starts) < 0):
            raise ValueError("the arrays of the replies' n-grams do not match")
        return ngrams
