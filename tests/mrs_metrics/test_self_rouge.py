"""Self-ROUGE: the package rouge's values, hand-worked ceilings, skipping, and properties."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics.rouge import score_examples
from mrs_metrics.similarity import SimilarityScores, aggregate, score_similarity
from mrs_metrics.tokenize import Tokenizer
from tests.mrs_metrics.modules import golden

GOLDEN: list[dict[str, Any]] = golden("self_rouge")
text = st.one_of(
    st.lists(st.sampled_from(["a", "b", "c", "it's", ".", "!", " ", ""]), max_size=6).map(" ".join),
    st.text(max_size=30),
)
suggestions = st.lists(text, min_size=2, max_size=4)


def _one(texts: list[str]) -> SimilarityScores:
    return score_similarity([texts])


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['language']}: {case['suggestions'][0]}")
def test_worked_cases(case: dict[str, Any], request: pytest.FixtureRequest) -> None:
    if case["language"] == "ja":
        request.getfixturevalue("mecab")
    scores = score_similarity([case["suggestions"]], case["language"])
    assert scores.weighted.tolist() == pytest.approx([case["weighted"]], abs=1e-7)
    assert scores.normalised.tolist() == pytest.approx([case["normalised"]], abs=1e-7)


def test_a_message_with_one_suggestion_is_skipped_and_counted() -> None:
    scores = score_similarity([["a"], ["a", "b", "c"], [], ["a", "a"]])
    assert scores.kept.tolist() == [1, 3]
    assert scores.pairs.tolist() == [3, 1]
    assert scores.skipped == {"fewer_than_two": 2}
    found = aggregate(scores)
    assert (found["n"], found["normalised"]) == (2, pytest.approx(0.5)), "each message weighs alike, not each pair"
    assert found["self_rouge"] == pytest.approx(1 / 12)


def test_empty_suggestions_are_alike_and_counted() -> None:
    scores = score_similarity([["", "...", "yes"], ["yes"]])
    assert scores.empty == aggregate(scores)["empty"] == 2
    assert scores.normalised.tolist() == pytest.approx([1 / 3])
    assert scores.weighted.tolist() == pytest.approx([1 / 18])


def test_a_repeated_word_is_not_the_same_reply() -> None:
    # One word against two equal ones: the same word set, but only the second has a pair of words.
    assert _one(["yes", "yes yes"]).normalised.tolist() == pytest.approx([1 / 3])


def test_a_given_tokenizer_is_used_and_named() -> None:
    letters = Tokenizer("letters", "1", " ".join)
    scores = score_similarity([["abc", "abd"]], tokenizer=letters)
    # of 3 letters 2 are common, of 2 pairs 1, of 1 triple none
    assert scores.weighted.tolist() == pytest.approx([2 / 3 / 6 + 1 / 2 / 3])
    assert "|tok:letters-1|" in scores.signature


def test_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match=r"No example has two suggestions .* \{'fewer_than_two': 1\}"):
        aggregate(score_similarity([["a"]]))


@settings(max_examples=200)
@given(suggestions)
def test_bounds_and_the_ceiling(texts: list[str]) -> None:
    scores = _one(texts)
    assert 0 <= scores.weighted[0] <= scores.normalised[0] + 1e-12
    assert scores.normalised[0] <= 1


@given(text, st.integers(2, 4))
def test_equal_suggestions_are_wholly_alike(suggestion: str, times: int) -> None:
    assert _one([suggestion] * times).normalised.tolist() == pytest.approx([1.0], abs=1e-15)


@given(suggestions, st.randoms())
def test_the_order_of_suggestions_and_examples_changes_nothing(texts: list[str], random: Any) -> None:
    shuffled = random.sample(texts, len(texts))
    assert _one(shuffled).normalised == pytest.approx(_one(texts).normalised)
    rows = [texts, ["a", "a b"], ["c"]]
    assert aggregate(score_similarity(rows)) == pytest.approx(aggregate(score_similarity(rows[::-1])))


@settings(max_examples=200)
@given(text, text)
def test_a_pair_scores_what_mrs_rouge_gives_it(a: str, b: str) -> None:
    forth, back = score_examples([[a]], [b]), score_examples([[b]], [a])
    own = _one([a, b])
    if len(forth.kept) and len(back.kept):
        assert np.allclose(own.weighted, forth.weighted)
        assert np.allclose(own.weighted, back.weighted)
    elif a == b:
        assert own.weighted.tolist() == pytest.approx([1 / 6])
