"""Dist-n, its corrections for length, and the n-gram helpers: hand-counted values, the authors' own, properties."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics import distinct
from mrs_metrics.distinct import distinct_n, distinct_signature, expectation_adjusted_distinct, sampled_distinct_n
from mrs_metrics.tokenize import get_tokenizer, ngrams, numbered
from tests.mrs_metrics.modules import golden, refused_calls

GOLDEN = golden("dist_n")
token_lists = st.lists(st.lists(st.sampled_from("abcd"), max_size=6), max_size=8)


def test_nothing_generated_is_not_diverse():
    assert distinct_n([], 1) == 0.0
    assert distinct_n([[], []], 2, denominator="ngrams") == 0.0
    assert distinct_n([], 1, level="response") == 0
    assert expectation_adjusted_distinct([[], []], 10) == 0


@pytest.mark.parametrize(("call", "sentence"), refused_calls(__file__, "test_bad_arguments", distinct))
def test_bad_arguments(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("case", GOLDEN["ratios"], ids=lambda case: f"{case['texts']} {case['n']}")
def test_worked_ratios(case):
    found = distinct_n([text.split() for text in case["texts"]], case["n"], case["per"], case["level"])
    assert found == pytest.approx(case["value"], abs=1e-9)


@pytest.mark.parametrize("case", GOLDEN["ead"], ids=lambda case: case["texts"][0])
def test_expectation_adjusted_distinct_of_worked_cases(case):
    tokens = [text.split() for text in case["texts"]]
    assert distinct_n(tokens, 1) == pytest.approx(case["distinct1"], abs=1e-9)
    assert expectation_adjusted_distinct(tokens, case["vocabulary"]) == pytest.approx(case["ead"], abs=1e-9)
    assert expectation_adjusted_distinct(tokens, range(case["vocabulary"])) == pytest.approx(case["ead"], abs=1e-9)


@pytest.mark.parametrize("vocabulary", [10**6, 10**15, 10**18])
def test_expectation_adjusted_distinct_keeps_its_digits_in_a_large_vocabulary(vocabulary):
    tokens = [["a", "b", "a"], ["c"]]
    missed = Fraction(vocabulary - 1, vocabulary) ** 4
    exact = 3 / float(vocabulary * (1 - missed))
    assert expectation_adjusted_distinct(tokens, vocabulary) == pytest.approx(exact, rel=1e-12)


def test_expectation_adjusted_distinct_corrects_for_length():
    """Uniform draws score 1 however many they are, where Dist-1 falls."""
    draws = np.random.default_rng(5).integers(0, 1000, 20_000).astype(str)
    short, long = [[draws[:200].tolist()], [draws.tolist()]]
    assert expectation_adjusted_distinct(short, 1000) == pytest.approx(1, abs=0.05)
    assert expectation_adjusted_distinct(long, 1000) == pytest.approx(1, abs=0.05)
    assert distinct_n(long, 1) < distinct_n(short, 1) / 10


def test_samples_are_seeded_and_of_one_size():
    lists = [[word, "the"] for word in "abcdefghij"]
    values = sampled_distinct_n(lists, 1, size=4, samples=5, seed=1)
    assert values.tolist() == [5 / 8] * 5, "four words of their own and one that they share"
    mixed = [[word] for word in "aabbccddee"]
    values = sampled_distinct_n(mixed, 1, size=3, samples=50, seed=1)
    assert set(values.tolist()) == {2 / 3, 1.0}
    assert values.tolist() == sampled_distinct_n(mixed, 1, 3, 50, seed=1).tolist()
    assert values.tolist() != sampled_distinct_n(mixed, 1, 3, 50, seed=2).tolist()
    # Of the third word: the chance that it is one of the first two's twins, or the second the first's.
    expected = 1 - (1 / 9 + 8 / 9 * 2 / 8) / 3
    assert sampled_distinct_n(mixed, 1, 3, 20_000).mean() == pytest.approx(expected, abs=0.005)


def test_the_signature_names_all_options():
    plain = distinct_signature(3, get_tokenizer("en"), "en")
    assert "level" not in plain
    assert "vocab" not in plain
    every = distinct_signature(3, get_tokenizer("en"), "en", "best", "ngrams", "response", 50, (10, 100, 7), "paper")
    assert every.startswith("dist_n|rules:paper|chosen:best|nbest:3|per:ngrams|case:lower|")
    assert "|lang:en|level:response|vocab:50|size:10|samples:100|seed:7|version:" in every


@given(token_lists, st.integers(1, 3), st.sampled_from(["tokens", "ngrams"]), st.randoms())
def test_any_tokens_give_a_share_that_no_order_of_suggestions_changes(lists, n, denominator, random):
    shuffled = random.sample(lists, len(lists))
    for level in ("corpus", "response"):
        value = distinct_n(lists, n, denominator, level)
        assert 0 <= value <= 1
        assert distinct_n(shuffled, n, denominator, level) == pytest.approx(value)
    alone = [distinct_n([one], n, denominator) for one in lists]
    assert distinct_n(lists, n, denominator, "response") == pytest.approx(np.mean(alone) if alone else 0)


@settings(deadline=None)
@given(token_lists.filter(len), st.integers(1, 3), st.integers(0, 100))
def test_a_sample_of_all_is_the_corpus(lists, n, seed):
    whole = distinct_n(lists, n)
    assert sampled_distinct_n(lists, n, len(lists), samples=3, seed=seed).tolist() == [whole] * 3


@given(st.lists(st.sampled_from("ab"), max_size=8), st.lists(st.sampled_from("ab"), max_size=8), st.integers(1, 3))
def test_numbered_ngrams_make_a_set_of_a_multiset(one, other, n):
    sets = [frozenset(numbered(ngrams(tokens, n))) for tokens in (one, other)]
    counts = [Counter(ngrams(tokens, n)) for tokens in (one, other)]
    assert [len(members) for members in sets] == [count.total() for count in counts]
    assert len(sets[0] & sets[1]) == (counts[0] & counts[1]).total()
