"""The `evaluate` module of the XGLUE scores, its Space and its page."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_metrics.spaces import metric_title, module_files, space_files
from mrs_metrics.xglue_tasks import TASKS
from tests.mrs_metrics.test_evaluate_modules import METRICS, run_script


def load() -> Any:
    """The metric; anew each time, since after an error in `compute` one of evaluate 0.4 cannot be used again."""
    import evaluate

    return evaluate.load(str(METRICS / "xglue_score"), keep_in_memory=True)


def page() -> Any:
    """The page's file as a module, as the Space runs it but not served."""
    spec = importlib.util.spec_from_file_location("page_of_xglue_score", METRICS / "xglue_score" / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_tags_in_one_call_and_in_batches() -> None:
    ours, theirs = [[], ["DET", "NOUN", "VERB"]], [["X"], ["DET", "NOUN", "NOUN"]]
    options: dict[str, Any] = {"task": "POS", "language": "de", "interval": True, "per_example": True}
    metric = load()
    once = metric.compute(predictions=ours, references=theirs, **options)
    for prediction, reference in zip(ours, theirs, strict=True):
        metric.add(prediction=prediction, reference=reference)
    assert metric.compute(**options) == once
    assert (once["n"], once["score"], once["accuracy"]) == (2, 0.5, 0.5)
    assert once["chunk_precision"] == pytest.approx(1 / 3)
    assert once["notes"] == {"padded": 1, "unknown": 0}
    assert once["per_example"]["right"] == [0, 2]
    assert once["per_example"]["kept"] == [0, 1]
    assert once["interval"][0] <= 0.5 <= once["interval"][1]
    assert once["signature"].startswith("xglue_score|task:POS|rules:paper|score:accuracy|lang:de|")
    official = metric.compute(predictions=ours, references=theirs, task="POS", rules="official")
    assert official["score"] == official["chunk_precision"]


@pytest.mark.parametrize(
    ("task", "ours", "theirs", "figures"),
    [
        ("NER", [["B-PER", "O"]], [["B-PER", "B-LOC"]], {"f1": 2 / 3, "precision": 1, "recall": 0.5}),
        ("NC", ["sports", "autos"], ["sports", "news"], {"accuracy": 0.5}),
        ("PAWS-X", [1, 0], [1, 1], {"accuracy": 0.5}),
        ("QAM", ["1", "0"], ["1", "1"], {"accuracy": 0.5}),
        ("MLQA", ["in the year 1900", "x"], [["1900", "year 1900"], ["y"]], {"f1": 0.4, "exact_match": 0}),
        ("WPR", [2, 1], [2, 4], {"ndcg": (2 + 4 / math.log2(3)) / (4 + 2 / math.log2(3))}),
        ("WPR", ["0.5", "0.1"], ["4", "0"], {"ndcg": 1}),
        ("QG", ["what is the capital?"], ["What is the capital?"], {"bleu": 1, "brevity_penalty": 1}),
    ],
)
def test_each_kind_of_task(task: str, ours: Any, theirs: Any, figures: dict[str, float]) -> None:
    if task == "QG":
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    queries = ["a", "a"] if task == "WPR" else None
    found = load().compute(predictions=ours, references=theirs, task=task, queries=queries)
    assert {name: found[name] for name in figures} == pytest.approx(figures)
    assert found["score"] == pytest.approx(next(iter(figures.values())))


@pytest.mark.parametrize("first", [0, 1])
def test_a_question_without_an_answer_wherever_it_stands(first: int) -> None:
    answers, right = [None, "x"][:: 1 - 2 * first], [["a"], ["x"]][:: 1 - 2 * first]
    at_once = load().compute(predictions=answers, references=right, task="MLQA")
    metric = load()
    for answer, accepted in zip(answers, right, strict=True):
        metric.add(prediction=answer, reference=accepted)
    for found in (at_once, metric.compute(task="MLQA")):
        assert (found["f1"], found["notes"]) == (0.5, {"unanswered": 1})


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="label predicted for example 0 must be a text, not None"):
        load().compute(predictions=[None, "1"], references=["1", "1"], task="QAM")
    with pytest.raises(ValueError, match="no task ''; its tasks are NER"):
        load().compute(predictions=["1"], references=["1"])
    with pytest.raises(ValueError, match="Reference 0 must be labelled with one of 0, 1 for QAM, not '3'"):
        load().compute(predictions=[1], references=[3], task="QAM")
    with pytest.raises(ValueError, match="query of each page"):
        load().compute(predictions=[1], references=[3], task="WPR")


def test_a_space_needs_only_the_files_that_the_module_names(tmp_path: Path) -> None:
    space = tmp_path / "xglue_score"
    space.mkdir()
    for file, content in module_files("xglue_score").items():
        (space / file).write_bytes(content)
    found, ours = run_script(
        f"""
        import evaluate, json, sys
        metric = evaluate.load({str(space)!r})
        result = metric.compute(predictions=[["B-PER"]], references=[["B-PER"]], task="NER", interval=True)
        print(json.dumps([result, [module for module in sys.modules if module.startswith("mrs_")]]))
        """,
        tmp_path,
        python_path="",
    )
    assert (found["f1"], found["interval"]) == (1, [1, 1])
    assert ours == []


def test_the_files_of_a_space() -> None:
    files = space_files("xglue_score", "org")
    card = files["README.md"].decode()
    front = yaml.safe_load(card.split("---")[1])
    assert (front["sdk"], front["app_file"], front["title"]) == ("gradio", "app.py", metric_title("xglue_score"))
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert 'evaluate.load("org/xglue_score")' in card
    assert not [file for file, content in files.items() if b"[ja]" in content and b"sacrebleu[ja]" not in content]


def test_the_page_offers_the_tasks_and_their_languages() -> None:
    assert tuple(TASKS) == page().TASKS
    assert page().LANGUAGES.split() == sorted({language for task in TASKS.values() for language in task.languages})


def test_the_page_scores_and_explains_errors() -> None:
    gradio = pytest.importorskip("gradio", reason="needs gradio, of the extra [spaces]")
    made = page().page()
    figures, signature = made.fn("POS", "en", "DET NOUN VERB\n", "DET NOUN NOUN")
    assert figures["chunk_precision"] == pytest.approx(1 / 3)
    assert signature.startswith("xglue_score|task:POS|")
    assert made.fn("MLQA", "de", "die Mauer\nx", "Mauer\ny")[0]["exact_match"] == 0.5
    assert made.fn("WPR", "fr", "4\n2\n2", "3\n0\n2")[0]["ndcg"] == pytest.approx(0.9692787260227567)
    for inputs, sentence in (
        (("POS", "en", "DET\nNOUN", "DET"), "There are 2 predictions for 1 right answers"),
        (("QAM", "en", "", ""), "must be labelled"),
        (("WPR", "en", "4\nx", "1\n2"), "finite number"),
        (("MLQA", "fr", "a", "a"), "not for 'fr'"),
    ):
        with pytest.raises(gradio.Error, match=sentence):
            made.fn(*inputs)
