"""n-grams of token sequences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def ngrams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of one token sequence from left to right; none where it is shorter than n.

    Raises:
        ValueError: n is below 1.

    >>> list(ngrams(["a", "b", "c"], 2))
    [('a', 'b'), ('b', 'c')]
    """
    if n < 1:
        raise ValueError(f"The order of an n-gram must be 1 or more, not {n}.")
    return zip(*[tokens[start:] for start in range(n)], strict=False)


def ngram_sets(tokens: Sequence[str], max_order: int) -> tuple[frozenset[tuple[str, ...]], ...]:
    """Return the sets of distinct n-grams of the orders 1 to `max_order`, in that order.

    >>> [len(grams) for grams in ngram_sets(["yes", "yes", "yes"], 3)]
    [1, 1, 1]
    """
    return tuple(frozenset(ngrams(tokens, order)) for order in range(1, max_order + 1))
