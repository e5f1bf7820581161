"""Choosing a set of suggestions: near the best set, and not three wordings of one reply."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics.rouge import score_examples
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.suggest.ranking.choice import choose_expected, expected_best, softmax
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams

REPLIES = ["Yes, see you then!", "Yes, see you there!", "No, sorry.", "👍", "...", "No, I am sorry.", "yes yes yes"]


def ngrams_of(replies: list[str]) -> ReplyNgrams:
    return ReplyNgrams.build(replies, get_tokenizer("en"))


def test_similarity_is_the_weighted_rouge_of_the_metric() -> None:
    found = ngrams_of(REPLIES).similarities(range(len(REPLIES)))
    for row, reference in enumerate(REPLIES):
        scores = score_examples([[reply] for reply in REPLIES], [reference] * len(REPLIES))
        expected = np.zeros(len(REPLIES))
        expected[scores.kept] = scores.weighted
        np.testing.assert_allclose(found[row], expected, atol=1e-9)


def test_n_grams_are_numbered_alike_in_every_process() -> None:
    ngrams = ngrams_of(["e d c b a", *"abcde"])  # Python orders a set of words by a new key in each process
    assert ngrams.numbers[-5:].tolist() == [0, 1, 2, 3, 4]


def test_similarity_of_some_replies_is_that_part_of_the_table() -> None:
    ngrams = ngrams_of(REPLIES)
    whole = ngrams.similarities(range(len(REPLIES)))
    np.testing.assert_allclose(ngrams.similarities([5, 0, 2]), whole[np.ix_([5, 0, 2], [5, 0, 2])])
    again = ReplyNgrams.from_arrays(ngrams.arrays())
    np.testing.assert_array_equal(again.similarities([5, 0, 2]), ngrams.similarities([5, 0, 2]))
    assert len(ngrams) == len(REPLIES)
    with pytest.raises(ValueError, match="do not match"):
        ReplyNgrams.from_arrays({**ngrams.arrays(), "numbers": ngrams.numbers[1:]})


@st.composite
def problems(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int]:
    n = draw(st.integers(1, 7))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table = rng.random((n, n)) * (rng.random((n, n)) < draw(st.floats(0.1, 1)))
    return softmax(rng.normal(size=n), draw(st.floats(0.05, 5))), np.maximum(table, table.T), draw(st.integers(1, 4))


@given(problems())
def test_the_greedy_set_is_within_its_bound_of_the_best(problem: tuple[np.ndarray, np.ndarray, int]) -> None:
    probabilities, similarity, k = problem
    chosen = choose_expected(probabilities, similarity, k)
    assert len(set(chosen)) == len(chosen) == min(k, len(probabilities))
    best = max(
        expected_best(s, probabilities, similarity) for s in combinations(range(len(probabilities)), len(chosen))
    )
    assert expected_best(chosen, probabilities, similarity) >= (1 - 1 / np.e) * best - 1e-12


def test_a_second_wording_gives_way_to_another_answer() -> None:
    similarity = ngrams_of(REPLIES).similarities(range(3))
    assert choose_expected([0.45, 0.3, 0.25], similarity, 2) == [0, 2]
    np.testing.assert_allclose(softmax([1e4, 1e4 + 1], 0.5), softmax([0, 1], 0.5))
    assert expected_best([], [1.0], [[1.0]]) == 0
    assert choose_expected([0.5, 0.5], np.eye(2), 5) == [0, 1]
