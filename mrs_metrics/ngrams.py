"""n-grams of token sequences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def ngrams(tokens: Sequence[str], n: int) -> Iterator[tuple[str, ...]]:
    """Yield the n-grams of one token sequence from left to right; none if it is shorter than n.

    Raises:
        ValueError: n is below 1.

    >>> list(ngrams(["a", "b", "c"], 2))
    [('a', 'b'), ('b', 'c')]
    """
    if n < 1:
        raise ValueError(f"The order of an n-gram must be 1 or more, not {n}.")
    if n == 1:
        return zip(tokens)
    return zip(tokens, *[tokens[start:] for start in range(1, n)], strict=False)


def ngram_sets(tokens: Sequence[str], max_order: int) -> tuple[frozenset[tuple[str, ...]], ...]:
    """Return the sets of distinct n-grams of the orders 1 to `max_order`, in that order.

    >>> [len(grams) for grams in ngram_sets(["yes", "yes", "yes"], 3)]
    [1, 1, 1]
    """
    return tuple(frozenset(ngrams(tokens, order)) for order in range(1, max_order + 1))


def numbered(grams: Iterable[tuple[str, ...]]) -> list[tuple[object, ...]]:
    """Make repeated n-grams distinct: each repetition is paired with the number of its earlier occurrences.

    So a multiset becomes a set, and the size of the intersection of two is the sum of ROUGE-N's clipped counts (Lin
    2004): for each n-gram the smaller of its two counts.

    >>> numbered(ngrams(["yes", "no", "yes"], 1))
    [('yes',), ('no',), (('yes',), 1)]
    """
    counts: dict[tuple[str, ...], int] = {}
    members: list[tuple[object, ...]] = []
    for gram in grams:
        before = counts.get(gram, 0)
        counts[gram] = before + 1
        members.append((gram, before) if before else gram)
    return members
