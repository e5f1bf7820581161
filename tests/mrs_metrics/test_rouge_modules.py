"""Options of the modules `mrs_rouge` and `dist_n`, loaded by folder as a user loads them, and their pages."""

from __future__ import annotations

import pytest

from mrs_metrics.spaces import module_files
from tests.mrs_metrics.test_generation_modules import load, page

PREDICTIONS = [["I do", "I do not"], ["yes yes", ""], ["never"]]
REFERENCES = ["I do not", "yes", "..."]


def test_mrs_rouge_by_the_paper_s_rules() -> None:
    found = load("mrs_rouge").compute(
        predictions=PREDICTIONS, references=REFERENCES, rules="paper", language="sv", per_example=True
    )
    detail = found["per_example"]
    assert detail["weighted"] == pytest.approx([1, 2 / 3 / 6, 0])
    assert detail["rouge1_precision"] == pytest.approx([1, 1 / 2, 0])
    assert detail["rouge1_recall"] == pytest.approx([1, 1, 0])
    assert detail["ceiling"] == pytest.approx([1, 1 / 6, 1 / 6]), "dots are a token"
    assert found["ceiling"] == pytest.approx((1 + 1 / 6 + 1 / 6) / 3)
    assert found["rouge1_precision"] == pytest.approx(1.5 / 3)
    assert (found["n"], found["empty_suggestions"]) == (3, 1)
    assert found["signature"].startswith("mrs_rouge|rules:paper|nbest:2|case:lower|tok:treebank-3.8.1|sent:no|lang:sv|")
    official = load("mrs_rouge").compute(predictions=PREDICTIONS, references=REFERENCES)
    assert official["skipped"] == {"reference_too_long": 0, "reference_empty": 1}
    assert official["ceiling"] == pytest.approx((1 + 1 / 6) / 2)


def test_dist_n_corrected_for_length() -> None:
    found = load("dist_n").compute(predictions=PREDICTIONS, vocabulary=10, sample_size=1, samples=4, seed=7)
    # i do | i do not | yes yes | <empty> | never: six different tokens of nine
    assert found["dist1"] == pytest.approx(6 / 9)
    assert found["ead"] == pytest.approx(6 / (10 * (1 - 0.9**9)))
    assert 0.5 <= found["dist1_sampled"] <= 1
    assert found["empty_suggestions"] == 1
    assert "|lang:en|vocab:10|size:1|samples:4|seed:7|version:" in found["signature"]
    whole = load("dist_n").compute(predictions=PREDICTIONS, sample_size=5, n=2)
    assert whole["dist2_sampled"] == pytest.approx(whole["dist2"])
    given = load("dist_n").compute(predictions=PREDICTIONS, vocabulary=set("abcdefghij"))
    assert given["ead"] == found["ead"]


def test_dist_n_of_each_response() -> None:
    found = load("dist_n").compute(predictions=PREDICTIONS, level="response", n=1)
    assert found["dist1"] == pytest.approx((1 + 1 + 1 / 2 + 1 + 1) / 5)
    assert "|level:response|" in found["signature"]
    best = load("dist_n").compute(predictions=PREDICTIONS, references=REFERENCES, chosen="best")
    assert best["skipped"] == {"reference_too_long": 0, "reference_empty": 1}
    assert best["counts"]["dist1"]["tokens"] == 5


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"level": "reply"}, "must be one of"),
        ({"level": "response", "vocabulary": 10}, "leave out the level"),
        ({"level": "response", "sample_size": 1}, "leave out the level"),
        ({"vocabulary": 2}, "at least the 6 different tokens"),
        ({"sample_size": 6}, "must be 1 to 5"),
    ],
)
def test_options_of_dist_n_that_make_no_sense_are_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load("dist_n").compute(predictions=PREDICTIONS, **options)


def test_the_pages_show_the_new_figures() -> None:
    figures = page("mrs_rouge").score(load("mrs_rouge"), ["no", "yes yes", ""], "Yes!", "en")
    assert list(figures)[:2] == ["weighted", "ceiling"]
    assert figures["ceiling"] == pytest.approx(0.5)
    assert figures["rouge1_recall"] == pytest.approx(0.5)
    assert (figures["best_suggestion"], figures["empty_suggestions"]) == ("yes yes", 1)
    assert "n" not in figures
    assert page("dist_n").score(load("dist_n"), ["yes yes"], "", "en")["dist1"] == pytest.approx(0.5)


@pytest.mark.parametrize("name", ["mrs_rouge", "dist_n"])
def test_a_space_takes_the_shared_check_along(name: str) -> None:
    assert "topic_suggestions.py" in module_files(name)
