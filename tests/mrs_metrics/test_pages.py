"""The pages of the metrics' Spaces, without a server."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from mrs_metrics.page import make_page, read_pages
from tests.cases import cases
from tests.mrs_metrics.modules import MODULES, load

PAGES = read_pages()


def score(name: str, *inputs: str) -> dict[str, Any]:
    return PAGES[name].score(load(name), *inputs)


@pytest.fixture
def served() -> Callable[..., tuple[dict[str, Any], str]]:
    """What a page answers, with errors as gradio shows them."""
    pytest.importorskip("gradio", reason="needs gradio, of the extra [spaces]")
    return lambda name, *inputs: make_page(MODULES / f"{name}.py").fn(*inputs)


def test_the_pages_of_suggestions_score() -> None:
    figures = score("mrs_rouge", "no\nyes yes", "Yes!", "en")
    assert list(figures)[:2] == ["weighted", "ceiling"]
    assert figures["ceiling"] == pytest.approx(0.5)
    assert figures["rouge1_recall"] == pytest.approx(0.5)
    assert (figures["best_suggestion"], figures["empty_suggestions"]) == ("yes yes", 0)
    assert "n" not in figures
    assert score("dist_n", "yes yes", "", "en")["dist1"] == pytest.approx(0.5)
    assert score("self_rouge", "yes\n Yes", "en")["normalised"] == pytest.approx(1)
    clicks = score("simulated_clicks", "no\nYes!", "yes")
    assert (clicks["clicked"], clicks["exact"], clicks["saved"]) == ("Yes!", 0, pytest.approx(2 / 3))
    assert score("simulated_clicks", "no", "yes")["clicked"] == ""


def test_the_page_of_bleu_scores() -> None:
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    found = score("reply_bleu", "no\nyes", "yes", "en")
    assert (found["best_suggestion"], found["sentence_bleu"], found["bleu"]) == ("yes", pytest.approx(100), 0)


@pytest.mark.parametrize(("name", "inputs", "sentence"), cases(__file__, "test_the_pages_explain_errors"))
def test_the_pages_explain_errors(name: str, inputs: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        score(name, *inputs)


def test_the_page_of_wrong_language_looks_for_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    for path, named in (("x/mine.ftz", r"mine\.ftz"), ("", r"lid\.176\.ftz")):
        monkeypatch.setenv("MRS_LANGUAGE_MODEL", path)
        with pytest.raises((ValueError, ImportError), match=rf"{named}|pip install fasttext"):
            score("wrong_language", "see you then", "en")


def test_a_page_answers_with_figures_and_signature(served: Callable[..., Any]) -> None:
    import gradio

    figures, signature = served("reply_perplexity", "1.5 1.5\n\n0")
    assert figures["perplexity"] == pytest.approx(math.e)
    assert signature.startswith("reply_perplexity|")
    with pytest.raises(gradio.Error, match="must be numbers"):
        served("reply_perplexity", "1 x")
    figures, signature = served("response_ranking", "0.9 Yes, at eight!\n\n-0.2  Bye \n0.9 No", " No ")
    assert (figures["rank"], figures["mrr"], figures["p@1"]) == (2, 0.5, 0)
    assert signature.startswith("response_ranking|pool:all|")
    figures, signature = served("weighted_f1", "sim, claro\nclaro\n", "Sim, claro.|0.75\n\nSim!|0.25", "paper")
    assert figures["weighted_f1"] == pytest.approx(0.6)
    assert (figures["precision"], figures["weighted_recall"]) == (0.5, 0.75)
    assert signature.startswith("weighted_f1|rules:paper|")
    figures, signature = served("xglue_score", "POS", "en", "DET NOUN VERB\n", "DET NOUN NOUN")
    assert figures["chunk_precision"] == pytest.approx(1 / 3)
    assert signature.startswith("xglue_score|task:POS|")
    assert served("xglue_score", "MLQA", "de", "die Mauer\nx", "Mauer\ny")[0]["exact_match"] == 0.5
    assert served("xglue_score", "WPR", "fr", "4\n2\n2", "3\n0\n2")[0]["ndcg"] == pytest.approx(0.9692787260227567)
