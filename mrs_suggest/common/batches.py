"""Batches of what comes one by one, and of texts of similar length."""

from collections.abc import Iterable, Iterator, Sequence, Sized
from itertools import islice
from typing import Any


def in_batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield so many items at a time, in order; the last batch may have fewer.

    >>> list(in_batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def by_length(texts: Sequence[Sized | int], size: int, tokens: int | None = None) -> Iterator[list[int]]:
    """Yield the numbers of texts in batches, longest first, so that a batch needs little padding.

    Args:
        texts: the texts or token lists, or their lengths; texts of equal length keep their order.
        size: texts in a batch at most.
        tokens: tokens in a batch at most, padding included; a longer text gets its own batch. None: no limit.

    >>> list(by_length(["a", "ccc", "bb"], 2))
    [[1, 2], [0]]
    >>> list(by_length([3, 9, 2, 8], 100, tokens=18))
    [[1, 3], [0, 2]]
    """
    lengths = [text if isinstance(text, int) else len(text) for text in texts]
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    begin = 0
    while begin < len(order):
        longest = lengths[order[begin]]
        width = size if tokens is None or not longest else max(1, min(size, tokens // longest))
        yield order[begin : begin + width]
        begin += width
