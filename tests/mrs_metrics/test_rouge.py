"""Weighted ROUGE: the official script's output, worked cases, and properties that hold on any text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics.distinct import distinct_counts
from mrs_metrics.rouge import RougeScores, aggregate, rouge_signature, score_examples
from mrs_metrics.tokenize import Tokenizer, get_tokenizer

CASES = json.loads((Path(__file__).parent / "golden" / "rouge_cases.json").read_text(encoding="utf-8"))
LANGUAGES = ("en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru")

reply = st.lists(st.sampled_from(["a", "b", "c", "it's", ".", "..", "!", " ", "\n", ""]), max_size=8).map(" ".join)
any_text = st.one_of(reply, st.text(max_size=40))


@pytest.mark.parametrize("language", LANGUAGES)
def test_scores_equal_the_official_script(shared_data, language, request):
    if language == "ja":
        request.getfixturevalue("mecab")
    folder = shared_data / "golden" / "rouge"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))[language]
    lines = (folder / f"{language}.tsv").read_text(encoding="utf-8").strip("\n").split("\n")
    rows = [line.strip().split("\t") for line in lines]
    scores = score_examples([row[2:5] for row in rows], [row[1] for row in rows], language)
    found = aggregate(scores)
    for n in (1, 2):
        found[f"distinct{n}"] = distinct_counts(scores.chosen_tokens, n).distinct
    assert found == pytest.approx(expected, abs=1e-6)
    assert found["n"] == expected["n"]
    assert found["n"] + sum(scores.skipped.values()) == len(rows)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_worked_cases(case, request):
    if case["language"] == "ja":
        request.getfixturevalue("mecab")
    scores = score_examples([case["suggestions"]], [case["reference"]], case["language"])
    assert scores.weighted.tolist() == pytest.approx([case["weighted"]], abs=case["tolerance"])
    if "chosen" in case:
        assert scores.chosen.tolist() == [case["chosen"]]
    if "chosen_tokens" in case:
        assert scores.chosen_tokens == [case["chosen_tokens"]]


def test_arrays_follow_the_kept_examples():
    too_long = " ".join(["word"] * 101)
    scores = score_examples([["x"], ["b", "yes"], ["x"], ["x"], ["no"]], [too_long, "yes", ".", "", "maybe so"])
    assert scores.kept.tolist() == [1, 4]
    assert scores.chosen.tolist() == [1, 0]
    assert scores.rouge.shape == (2, 3)
    assert scores.skipped == {"reference_too_long": 1, "reference_empty": 2}
    assert scores.chosen_tokens == [["yes"], ["no"]]


def test_empty_references_are_skipped_in_japanese_too(mecab):
    scores = score_examples([["はい"], ["はい"]], ["", "はい"], "ja")
    assert (scores.kept.tolist(), scores.skipped["reference_empty"]) == ([1], 1)


def test_a_reference_of_100_tokens_is_kept_and_a_suggestion_is_cut_there():
    words = [f"w{i}" for i in range(101)]
    scores = score_examples([[" ".join(words)]], [" ".join(words[:100])])
    assert scores.weighted.tolist() == pytest.approx([1.0])
    assert scores.chosen_tokens == [words[:100]]


def test_weighted_mean_equals_the_weighted_means():
    scores = score_examples([["a b c"], ["b"], ["x y"]], ["a b c d", "b", "x z"])
    assert aggregate(scores)["weighted"] == pytest.approx(float(scores.weighted.mean()))


def test_a_given_tokenizer_is_used_and_named():
    letters = Tokenizer("letters", "1", " ".join)
    scores = score_examples([["abc"]], ["abc"], tokenizer=letters)
    assert scores.weighted.tolist() == pytest.approx([1.0])
    assert "|tok:letters-1|" in scores.signature


def test_signature_counts_the_suggestions():
    scores = score_examples([["a"], ["a", "b", "c"]], ["a", "b"], "fr")
    assert scores.signature == rouge_signature(3, get_tokenizer("fr"), "fr")
    assert scores.signature.startswith("mrs_rouge|rules:official|nbest:3|case:lower|tok:treebank-3.8.1|lang:fr|eff:no|")


def test_all_skipped_has_no_average():
    scores = score_examples([["a"]], ["."])
    assert scores.rouge.shape == (0, 3)
    with pytest.raises(ValueError, match="no example left to score"):
        aggregate(scores)


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    [
        ([["a"]], ["a", "b"], {}, "1 predictions and 2 references"),
        (["a"], ["a"], {}, "predictions of example 0 must be a list of texts"),
        ([["a"], [None]], ["a", "b"], {}, "predictions of example 1 must be a list of texts"),
        ([None], ["a"], {}, "predictions of example 0 must be a list of texts"),
        ([["a"]], [None], {}, "reference of example 0 must be a text"),
        ([["a"]], "a", {}, "not one text"),
        ([["a"]], ["a"], {"rules": "mine"}, r"must be one of \['official'\], not 'mine'"),
        ([["a"]], ["a"], {"language": "?"}, "BCP-47"),
    ],
)
def test_bad_arguments_are_refused_with_one_sentence(predictions, references, options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        score_examples(predictions, references, **options)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def _one(suggestions: list[str], reference: str, language: str = "en") -> RougeScores:
    return score_examples([suggestions], [reference], language)


@settings(max_examples=300, deadline=None)
@given(st.lists(any_text, max_size=4), any_text)
def test_any_text_scores_between_0_and_1(suggestions, reference):
    scores = _one(suggestions, reference)
    assert len(scores.kept) + sum(scores.skipped.values()) == 1
    assert np.all((scores.rouge >= 0) & (scores.rouge <= 1))
    assert np.all((scores.weighted >= 0) & (scores.weighted <= 1))


@settings(max_examples=100, deadline=None)
@given(st.lists(any_text, max_size=3), any_text)
def test_any_text_can_be_scored_in_japanese(mecab, suggestions, reference):
    assert np.all(_one(suggestions, reference, "ja").weighted <= 1)


@given(st.lists(reply, min_size=1, max_size=3), reply, reply)
def test_one_more_suggestion_never_lowers_the_score(suggestions, extra, reference):
    fewer, more = _one(suggestions, reference), _one([*suggestions, extra], reference)
    assert np.all(more.weighted >= fewer.weighted)


@given(st.lists(reply, min_size=1, max_size=4), reply, st.randoms())
def test_the_order_of_suggestions_changes_no_score(suggestions, reference, random):
    shuffled = random.sample(suggestions, len(suggestions))
    assert _one(suggestions, reference).weighted.tolist() == _one(shuffled, reference).weighted.tolist()


@given(reply, st.integers(1, 4), reply)
def test_of_equal_suggestions_the_first_is_chosen(suggestion, times, reference):
    scores = _one([suggestion] * times, reference)
    assert scores.chosen.tolist() == [0] * len(scores.kept)


@given(st.from_regex(r"[a-zäöß]{1,8}", fullmatch=True).filter(lambda word: len(get_tokenizer("de")(word)) == 1))
def test_a_perfect_match_of_one_token_scores_a_sixth(word):
    assert _one([word], word.upper() if "ß" not in word else word, "de").weighted.tolist() == pytest.approx([1 / 6])
