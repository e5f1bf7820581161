"""The `evaluate` modules, loaded by folder in a process of their own with temporary caches and no network."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path

import pytest

from mrs_metrics.spaces import module_files
from tests import warm_python

ROOT = Path(__file__).resolve().parents[2]
METRICS = ROOT / "mrs_metrics"


def run_script(script: str, folder: Path, python_path: str = str(ROOT)) -> dict:
    environment = {**warm_python.with_caches_in(folder / "home"), "PYTHONPATH": python_path}
    done = warm_python.run([sys.executable, "-c", textwrap.dedent(script)], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_mrs_rouge_computes_in_one_call_and_in_batches(tmp_path):
    found = run_script(
        f"""
        import evaluate, json
        predictions = [["no", "Yes!"], ["x"], [], ["merci !"]]
        references = ["yes !", ".", "yes", "Merci !"]
        metric = evaluate.load({str(METRICS / "mrs_rouge")!r})
        once = metric.compute(predictions=predictions, references=references, language="fr", per_example=True)
        for suggestions, reference in zip(predictions, references):
            metric.add(prediction=suggestions, reference=reference)
        batched = metric.compute(language="fr")
        try:
            metric.compute(predictions=[["a"]], references=["a"], rules="mine")
        except ValueError as error:
            refused = str(error)
        print(json.dumps([once, batched, refused]))
        """,
        tmp_path,
    )
    once, batched, refused = found
    detail = once.pop("per_example")
    assert once == batched
    assert once["n"] == 3
    assert once["weighted"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert once["skipped"] == {"reference_too_long": 0, "reference_empty": 1}
    assert once["signature"].startswith(
        "mrs_rouge|rules:official|nbest:2|case:lower|tok:treebank-3.8.1|sent:no|lang:fr|"
    )
    assert (detail["kept"], detail["chosen"]) == ([0, 2, 3], [1, -1, 0])
    assert detail["weighted"] == pytest.approx([0.5, 0, 0.5])
    assert detail["rouge3"] == [0, 0, 0]
    assert "must be one of ['official', 'paper']" in refused


def test_dist_n_of_all_and_of_the_best(tmp_path):
    found = run_script(
        f"""
        import evaluate, json
        predictions = [["I do", "I do not"], ["yes", ""]]
        metric = evaluate.load({str(METRICS / "dist_n")!r})
        everything = metric.compute(predictions=predictions)
        metric.add_batch(predictions=predictions[:1])
        metric.add(prediction=predictions[1])
        added = metric.compute(n=[1, 3], denominator="ngrams")
        best = metric.compute(predictions=predictions, references=["I do not", "yes"], chosen="best", n=2)
        refused = []
        for options in ({{"chosen": "best"}}, {{"chosen": "last"}}, {{"denominator": "x"}}):
            try:
                metric.compute(predictions=predictions, **options)
            except ValueError as error:
                refused.append(str(error))
        print(json.dumps([everything, added, best, refused]))
        """,
        tmp_path,
    )
    everything, added, best, refused = found
    # i do | i do not | yes | <empty>: five different tokens of seven, two different bigrams.
    assert everything["dist1"] == pytest.approx(5 / 7)
    assert everything["dist2"] == pytest.approx(2 / 7)
    assert everything["counts"]["dist2"] == {"distinct": 2, "ngrams": 3, "tokens": 7}
    assert everything["signature"].startswith("dist_n|rules:official|chosen:all|nbest:2|per:tokens|case:lower|tok:")
    assert (added["dist1"], added["dist3"]) == (pytest.approx(5 / 7), 1.0)
    assert best["counts"] == {"dist2": {"distinct": 2, "ngrams": 2, "tokens": 4}}
    assert "needs references" in refused[0]
    assert "'all' or 'best'" in refused[1]
    assert "denominator" in refused[2]


@pytest.mark.parametrize("name", ["mrs_rouge", "dist_n"])
def test_a_space_needs_only_the_files_that_the_module_names(tmp_path, name):
    """What a publisher does: copy the named files beside the module and make the imports relative."""
    space = tmp_path / name
    space.mkdir()
    for file, content in module_files(name).items():
        (space / file).write_bytes(content)
    found = run_script(
        f"""
        import evaluate, json, sys
        metric = evaluate.load({str(space)!r})
        result = metric.compute(predictions=[["yes !"]], references=["yes !"])
        print(json.dumps([result, sorted(module for module in sys.modules if module.startswith("mrs_"))]))
        """,
        tmp_path,
        python_path="",
    )
    assert "signature" in found[0]
    assert found[1] == []


@pytest.mark.parametrize("name", ["mrs_rouge", "dist_n"])
def test_readme_has_the_front_matter_of_a_metric_space(name):
    yaml = pytest.importorskip("yaml")
    front = yaml.safe_load((METRICS / name / "README.md").read_text(encoding="utf-8").split("---")[1])
    assert front["sdk"] == "gradio"
    assert {"evaluate", "metric"} <= set(front["tags"])
    assert front["title"]
