"""The `evaluate` modules of BLEU, perplexity, Self-ROUGE and wrong languages, loaded by folder as a user loads them."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_metrics.spaces import metric_title, module_files, space_files
from tests.mrs_metrics.test_evaluate_modules import METRICS, run_script

NAMES = ["reply_bleu", "reply_perplexity", "self_rouge", "wrong_language"]
CALLS = {
    "reply_bleu": 'predictions=[["see you tomorrow then"]], references=["see you tomorrow then"]',
    "reply_perplexity": "predictions=[[1.0, 2.0]]",
    "self_rouge": 'predictions=[["yes", "yes"]]',
    "wrong_language": 'predictions=[["see you"]], language="de", identify=lambda texts: [("en", 0.9)] * len(texts)',
}


def load(name: str) -> Any:
    """The metric; anew each time, since after an error in `compute` one of evaluate 0.4 cannot be used again."""
    import evaluate

    return evaluate.load(str(METRICS / name), keep_in_memory=True)


def page(name: str) -> Any:
    """The page's file as a module, as the pages' Space runs it but not served."""
    spec = importlib.util.spec_from_file_location(f"page_of_{name}", METRICS / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reply_bleu_in_one_call_and_in_batches() -> None:
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    predictions = [["no", "see you at eight then"], ["x"], [], ["merci !"]]
    references = ["see you at eight then", " ", "yes", "Merci !"]
    metric = load("reply_bleu")
    options: dict[str, Any] = {"language": "fr", "per_example": True, "interval": True}
    once = metric.compute(predictions=predictions, references=references, **options)
    for suggestions, reference in zip(predictions, references, strict=True):
        metric.add(prediction=suggestions, reference=reference)
    assert metric.compute(**options) == once
    assert once["per_example"]["kept"] == [0, 2, 3]
    assert once["per_example"]["chosen"] == [1, -1, 0]
    # of merci / ! one word of two, no pair: 100 * (1/2 * 1/2) ** (1/2)
    assert once["per_example"]["sentence_bleu"] == pytest.approx([100, 0, 50])
    assert once["sentence_bleu"] == pytest.approx(50)
    assert (once["n"], once["empty"], once["skipped"]) == (3, 1, {"reference_empty": 1})
    assert once["interval"][0] <= once["bleu"] <= once["interval"][1]
    assert once["signature"].startswith("reply_bleu|chosen:best|nbest:2|lang:fr|")
    first = metric.compute(predictions=predictions, references=references, chosen="first", lowercase=True)
    assert first["sentence_bleu"] == pytest.approx(100 / 3)
    assert "case:lc" in first["signature"]


def test_reply_perplexity_takes_losses_of_tokens_or_sums() -> None:
    metric = load("reply_perplexity")
    options: dict[str, Any] = {"tokenizer": "words", "interval": True}
    listed = metric.compute(predictions=[[1.0, 2.0], [], [3.0]], **options)
    metric.add_batch(predictions=[3.0, 0.0])
    metric.add_batch(predictions=[3.0])
    assert metric.compute(tokens=[2, 0, 1], **options) == listed
    assert listed["perplexity"] == pytest.approx(math.exp(2))
    assert (listed["n"], listed["empty"], listed["tokens"], listed["overflow"]) == (3, 1, 3, False)
    assert listed["interval"][0] <= listed["perplexity"] <= listed["interval"][1]
    assert listed["signature"].startswith("reply_perplexity|avg:token|log:natural|tok:words|")


@pytest.mark.parametrize(
    ("predictions", "options", "sentence"),
    [
        ([[1.0]], {"tokens": [1]}, "Give the losses of each token, or sums"),
        ([1.0], {}, "Give the losses of each token, or sums"),
        ([[-1.0]], {}, "0 or more"),
        ([1.0, 2.0], {"tokens": [1]}, "not 2 and 1"),
    ],
)
def test_reply_perplexity_refuses(predictions: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load("reply_perplexity").compute(predictions=predictions, **options)


def test_self_rouge() -> None:
    metric = load("self_rouge")
    metric.add_batch(predictions=[["yes", "Yes", "no"], ["yes"]])
    metric.add(prediction=["Vielen Dank!", "vielen dank!"])
    found = metric.compute(language="de", interval=True, per_example=True)
    assert found["per_example"]["kept"] == [0, 2]
    assert found["per_example"]["self_rouge"] == pytest.approx([1 / 18, 1])
    assert found["per_example"]["normalised"] == pytest.approx([1 / 3, 1])
    assert (found["n"], found["skipped"], found["empty"]) == (2, {"fewer_than_two": 1}, 0)
    assert found["normalised"] == pytest.approx(2 / 3)
    assert found["interval"] == pytest.approx([1 / 3, 1])
    assert found["signature"].startswith("self_rouge|rules:official|pairs:all|nbest:3|")


def answer(texts: list[str]) -> list[tuple[str, float]]:
    return [("en" if "you" in text else "de", 0.9) for text in texts]


def test_wrong_language() -> None:
    predictions = [["see you then", "bis dann also", "ok"], ["see you then"]]
    result = load("wrong_language").compute(
        predictions=predictions,
        language=["de", "en"],
        identify=answer,
        identifier="mine",
        per_suggestion=True,
        interval=True,
    )
    assert result["per_suggestion"] == {
        "example": [0, 0, 0, 1],
        "identified": ["en", "de", "und", "en"],
        "wrong": [True, False, False, False],
    }
    assert (result["wrong"], result["any_wrong"], result["too_short"]) == (pytest.approx(1 / 3), 0.5, 0.25)
    assert "|identifier:mine|" in result["signature"]
    assert len(result["interval"]) == 2


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "Give either"),
        ({"identify": answer, "language_model": "x"}, "Give either"),
        ({"language_model": "absent.ftz"}, "no language model 'absent.ftz'|pip install fasttext"),
    ],
)
def test_wrong_language_needs_one_identifier(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, ImportError), match=sentence):
        load("wrong_language").compute(predictions=[["see you then"]], language="de", **options)


def test_a_space_needs_only_the_files_that_the_module_names(tmp_path: Path) -> None:
    names = [name for name in NAMES if name != "reply_bleu" or importlib.util.find_spec("sacrebleu")]
    for name in names:
        (tmp_path / name).mkdir()
        for file, content in module_files(name).items():
            (tmp_path / name / file).write_bytes(content)
    calls = "\n".join(
        f"found.append(evaluate.load({str(tmp_path / name)!r}).compute({CALLS[name]})['signature'])" for name in names
    )
    script = (
        f"import evaluate, json, sys\nfound = []\n{calls}\n"
        "print(json.dumps([found, [module for module in sys.modules if module.startswith('mrs_')]]))"
    )
    signatures, ours = run_script(script, tmp_path, python_path="")
    assert [signature.split("|")[0] for signature in signatures] == names
    assert ours == []


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_space(name: str) -> None:
    files = space_files(name, "org")
    front = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert (front["sdk"], front["app_file"], front["title"]) == ("gradio", "app.py", metric_title(name))
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert f'evaluate.load("org/{name}")' in files["README.md"].decode()
    assert not [file for file, content in files.items() if b"[ja]" in content and b"sacrebleu[ja]" not in content]


def test_the_pages_score() -> None:
    found = page("self_rouge").score(load("self_rouge"), ["yes", "Yes"], "", "en")
    assert found["normalised"] == pytest.approx(1)
    with pytest.raises(ValueError, match="at least two suggestions"):
        page("self_rouge").score(load("self_rouge"), ["yes"], "", "en")
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    found = page("reply_bleu").score(load("reply_bleu"), ["no", "yes"], "yes", "en")
    assert (found["best_suggestion"], found["sentence_bleu"], found["bleu"]) == ("yes", pytest.approx(100), 0)
    with pytest.raises(ValueError, match="Type the real reply"):
        page("reply_bleu").score(load("reply_bleu"), ["yes"], "", "en")


def test_the_page_of_wrong_language_looks_for_its_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", str(tmp_path / "mine.ftz"))
    with pytest.raises((ValueError, ImportError), match=r"mine\.ftz|pip install fasttext"):
        page("wrong_language").score(load("wrong_language"), ["see you then"], "", "en")
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", "")
    with pytest.raises((ValueError, ImportError), match=r"wrong_language/lid\.176\.ftz|pip install fasttext"):
        page("wrong_language").score(load("wrong_language"), ["see you then"], "", "en")


def test_the_page_of_perplexity_reads_losses_and_explains_errors() -> None:
    gradio = pytest.importorskip("gradio", reason="needs gradio, of the extra [spaces]")
    score = page("reply_perplexity").page().fn
    figures, signature = score("1.5 1.5\n\n0")
    assert figures["perplexity"] == pytest.approx(math.e)
    assert signature.startswith("reply_perplexity|")
    for text, sentence in (("", "at least one reply"), ("1 x", "must be numbers"), ("-1", "0 or more")):
        with pytest.raises(gradio.Error, match=sentence):
            score(text)
