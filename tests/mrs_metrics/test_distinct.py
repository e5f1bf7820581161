"""Dist-n and the n-gram helpers with hand-counted values."""

from __future__ import annotations

import pytest

from mrs_metrics.distinct import DistinctCounts, distinct_counts, distinct_n
from mrs_metrics.ngrams import ngram_sets, ngrams

REPLIES = [["i", "do", "not", "know"], ["i", "do"], []]


def test_distinct_counts_by_hand():
    assert distinct_counts(REPLIES, 1) == DistinctCounts(distinct=4, ngrams=6, tokens=6)
    assert distinct_counts(REPLIES, 2) == DistinctCounts(distinct=3, ngrams=4, tokens=6)


def test_denominators():
    assert distinct_n(REPLIES, 2) == pytest.approx(3 / 6)
    assert distinct_n(REPLIES, 2, denominator="ngrams") == pytest.approx(3 / 4)


def test_nothing_generated_is_not_diverse():
    assert distinct_n([], 1) == 0.0
    assert distinct_n([[], []], 2, denominator="ngrams") == 0.0


def test_bad_arguments():
    with pytest.raises(ValueError, match="must be 1 or more, not 0"):
        distinct_n(REPLIES, 0)
    with pytest.raises(ValueError, match="must be one of"):
        distinct_n(REPLIES, 1, denominator="words")
    with pytest.raises(ValueError, match="was given the text"):
        distinct_n(["i do"], 1)
    with pytest.raises(ValueError, match="order of an n-gram"):
        ngrams(["a"], 0)


def test_ngrams_of_a_short_sequence():
    assert list(ngrams(["a"], 2)) == []
    assert ngram_sets(["a", "b", "a", "b"], 2) == (frozenset({("a",), ("b",)}), frozenset({("a", "b"), ("b", "a")}))
