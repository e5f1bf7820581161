"""The `evaluate` modules of response ranking and of STAPLE's weighted F1, loaded by folder as a user loads them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_metrics.spaces import metric_title, module_files, space_files
from tests.mrs_metrics.test_evaluate_modules import METRICS, run_script

NAMES = ["response_ranking", "weighted_f1"]
CALLS = {
    "response_ranking": "predictions=[[0.5, -1.0]], references=[0], pool=2",
    "weighted_f1": 'predictions=[["sim"]], references=[[{"text": "Sim.", "weight": 1}]]',
}


def load(name: str) -> Any:
    """The metric; anew each time, since after an error in `compute` one of evaluate 0.4 cannot be used again."""
    import evaluate

    return evaluate.load(str(METRICS / name), keep_in_memory=True)


def page(name: str) -> Any:
    """The page's file as a module, as its Space runs it but not served."""
    spec = importlib.util.spec_from_file_location(f"page_of_{name}", METRICS / name / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def accepted(**weights: float) -> list[dict[str, Any]]:
    return [{"text": text, "weight": weight} for text, weight in weights.items()]


def test_response_ranking_in_one_call_and_in_batches() -> None:
    predictions = [[5.0, -1.0], [0.5, 0.7, 0.1], [1, 2, 3], [1, 2, 3, -4], []]
    references = [0, 0, -1, 1, -1]
    options: dict[str, Any] = {
        "replies": ["yes", "yes", "no", "bye", "no"],
        "k": [1, 2],
        "of": "response_set",
        "language": "en",
        "interval": True,
        "per_example": True,
    }
    metric = load("response_ranking")
    once = metric.compute(predictions=predictions, references=references, **options)
    metric.add_batch(predictions=predictions[:3], references=references[:3])
    metric.add(prediction=predictions[3], reference=references[3])
    metric.add(prediction=predictions[4], reference=references[4])
    assert metric.compute(**options) == once
    assert (once["n"], once["skipped"], once["replies"]) == (3, {"reply_absent": 2}, 2)
    assert (once["mrr"], once["macro_mrr"]) == pytest.approx((2 / 3, 0.625))
    assert (once["p@1"], once["p@2"]) == pytest.approx((1 / 3, 1 / 2))
    assert once["per_example"] == {
        "rank": [1, 2, 2],
        "reciprocal_rank": [1.0, 0.5, 0.5],
        "pool_size": [2, 3, 4],
        "kept": [0, 1, 3],
    }
    assert once["interval"][0] <= once["mrr"] <= once["interval"][1]
    assert once["signature"].startswith(
        "response_ranking|pool:all|of:response_set|ties:pessimistic|absent:skip|lang:en|"
    )
    pooled = metric.compute(predictions=predictions, references=references, pool=2, seed=3, missing_reference="zero")
    assert (pooled["n"], "macro_mrr" in pooled) == (5, False)
    assert "|pool:2|of:candidates|seed:3|ties:pessimistic|absent:zero|" in pooled["signature"]
    assert metric.compute(predictions=predictions, references=references, pool=2, seed=3, absent="zero") == pooled


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    [
        ([[1.0, float("nan")]], [0], {}, "example 0 contain NaN"),
        ([[1.0, None]], [0], {}, "example 0 must be a list of numbers|example 0 contain NaN"),
        ([[1.0]], [1], {}, "target of example 0"),
        ([[1.0]], [0], {"replies": []}, "and 0 replies"),
        ([[1.0]], [0], {"k": 0}, "must be 1 or more"),
        ([[1.0]], [-1], {}, "no example left to rank"),
    ],
)
def test_response_ranking_refuses(predictions: Any, references: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load("response_ranking").compute(predictions=predictions, references=references, **options)


def test_weighted_f1_in_one_call_and_in_batches() -> None:
    predictions = [["um", "dois", "x", "y"], [], ["Sim!"], ["a"]]
    references = [accepted(um=0.5, dois=0.3, tres=0.2), accepted(no=1), accepted(sim=0.9, claro=0.1), []]
    metric = load("weighted_f1")
    options: dict[str, Any] = {"interval": True, "per_prompt": True}
    once = metric.compute(predictions=predictions, references=references, **options)
    metric.add_batch(predictions=predictions[:2], references=references[:2])
    for texts, entries in zip(predictions[2:], references[2:], strict=True):
        metric.add(prediction=texts, reference=entries)
    assert metric.compute(**options) == once
    detail = once["per_prompt"]
    assert detail["weighted_f1"] == pytest.approx([0.8 / 1.3, 0, 1.8 / 1.9])
    assert detail["f1"] == pytest.approx([4 / 7, 0, 2 / 3])
    assert (detail["kept"], detail["missing"], detail["extra"]) == ([0, 1, 2], [1], [3])
    assert (once["n"], once["missing"], once["extra"]) == (3, 1, 1)
    assert once["weighted_macro_f1"] == pytest.approx((0.8 / 1.3 + 1.8 / 1.9) / 3)
    assert (once["precision"], once["recall"]) == pytest.approx((3 / 5, 3 / 6))
    assert once["interval"][0] <= once["weighted_macro_f1"] <= once["interval"][1]
    assert once["signature"].startswith("weighted_f1|rules:paper|")
    official = metric.compute(predictions=predictions, references=references, rules="official")
    assert official["weighted_macro_f1"] == pytest.approx((2 * 0.8 / 1.3 + 1.8 / 1.9) / 3)
    assert "|rules:official|" in official["signature"]


@pytest.mark.parametrize(
    ("predictions", "references", "options", "sentence"),
    [
        ([["a"]], [accepted(a=-1)], {}, "finite and 0 or more, but prompt '0' has -1.0"),
        ([["a"]], [accepted(a=float("nan"))], {}, "finite and 0 or more"),
        ([["a"]], [[{"text": "a", "weight": None}]], {}, "finite and 0 or more"),
        ([[None]], [accepted(a=1)], {}, "expected format"),
        ([["a"]], [[]], {}, "no prompt to score"),
        ([["a"]], [accepted(a=1)], {"rules": "ours"}, "must be one of"),
        ([[], ["a"]], [accepted(a=1), accepted(a=1)], {"rules": "official"}, "first prompt, '0', has no prediction"),
    ],
)
def test_weighted_f1_refuses(predictions: Any, references: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        load("weighted_f1").compute(predictions=predictions, references=references, **options)


def test_a_space_needs_only_the_files_that_the_module_names(tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / name).mkdir()
        for file, content in module_files(name).items():
            (tmp_path / name / file).write_bytes(content)
    calls = "\n".join(
        f"found.append(evaluate.load({str(tmp_path / name)!r}).compute({CALLS[name]})['signature'])" for name in NAMES
    )
    script = (
        f"import evaluate, json, sys\nfound = []\n{calls}\n"
        "print(json.dumps([found, [module for module in sys.modules if module.startswith('mrs_')]]))"
    )
    signatures, ours = run_script(script, tmp_path, python_path="")
    assert [signature.split("|")[0] for signature in signatures] == NAMES
    assert ours == []


@pytest.mark.parametrize("name", NAMES)
def test_the_files_of_a_space(name: str) -> None:
    files = space_files(name, "org")
    front = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert (front["sdk"], front["app_file"], front["title"]) == ("gradio", "app.py", metric_title(name))
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert f'evaluate.load("org/{name}")' in files["README.md"].decode()


@pytest.mark.parametrize("name", NAMES)
def test_the_example_of_the_readme_runs(name: str) -> None:
    code = (METRICS / name / "README.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    code = code.replace(f'evaluate.load("{name}")', "metric").replace("metric = metric\n", "")
    found: dict[str, Any] = {"metric": load(name)}
    before, call = code.split("metric.compute(")
    exec(f"{before}result = metric.compute({call}", found)
    assert found["result"]["signature"].startswith(f"{name}|")


def test_the_page_of_response_ranking() -> None:
    gradio = pytest.importorskip("gradio", reason="needs gradio, of the extra [spaces]")
    made = page("response_ranking")
    figures, signature = made.page().fn("0.9 Yes, at eight!\n\n-0.2  Bye \n0.9 No", " No ")
    assert (figures["rank"], figures["mrr"], figures["p@1"]) == (2, 0.5, 0)
    assert signature.startswith("response_ranking|pool:all|")
    for text, reply, sentence in (
        ("", "x", "at least one candidate"),
        ("x 1", "1", "a score, a space and a candidate"),
        ("1 x\n2 x", "x", "among the candidates exactly once"),
        ("1 x", "y", "among the candidates exactly once"),
        ("nan x", "x", "NaN"),
    ):
        with pytest.raises(gradio.Error, match=sentence):
            made.page().fn(text, reply)


def test_the_page_of_weighted_f1() -> None:
    gradio = pytest.importorskip("gradio", reason="needs gradio, of the extra [spaces]")
    answer = page("weighted_f1").page().fn
    figures, signature = answer("sim, claro\nclaro\n", "Sim, claro.|0.75\n\nSim!|0.25", "paper")
    assert figures["weighted_f1"] == pytest.approx(0.6)
    assert (figures["precision"], figures["weighted_recall"]) == (0.5, 0.75)
    assert signature.startswith("weighted_f1|rules:paper|")
    assert answer("", "Sim|1", "paper")[0]["weighted_f1"] == 0
    for predicted, texts, sentence in (
        ("x", "", "at least one accepted"),
        ("x", "x", r"must be text\|weight"),
        ("x", "x|-1", "0 or more"),
    ):
        with pytest.raises(gradio.Error, match=sentence):
            answer(predicted, texts, "paper")
