"""Weighted F1 with values counted by hand, and against the official scorer on real data."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mrs_metrics.weighted_f1 import (
    aggregate,
    oracle_curve,
    oracle_top_k,
    read_official,
    read_paper,
    score_translations,
    weighted_f1_signature,
)

PARTS = ("precision", "recall", "weighted_recall", "micro_f1", "macro_f1", "weighted_micro_f1", "weighted_macro_f1")


def row(prompt_id: str, **weights: float) -> dict[str, Any]:
    translations = [{"text": text.replace("_", " "), "weight": weight} for text, weight in weights.items()]
    return {"id": prompt_id, "translations": translations}


ROWS = [row("a", um=0.5, dois=0.3, tres=0.2), row("b", sim=0.9, claro=0.1), row("c", não=1.0)]


def test_two_prompts_by_hand() -> None:
    scores = score_translations(ROWS[:2], {"a": ["um", "dois", "x", "y"], "b": ["sim"]})
    assert scores.precision.tolist() == [0.5, 1.0]
    assert scores.recall == pytest.approx([2 / 3, 1 / 2])
    assert scores.weighted_recall == pytest.approx([0.8, 0.9])
    assert scores.f1 == pytest.approx([4 / 7, 2 / 3])
    assert scores.weighted_f1 == pytest.approx([0.8 / 1.3, 1.8 / 1.9])
    found = aggregate(scores)
    assert found["n"] == 2
    # both 3, only predicted 2, only accepted 2; weights 1.7 of 2
    assert (found["precision"], found["recall"]) == pytest.approx((3 / 5, 3 / 5))
    assert found["weighted_recall"] == pytest.approx(0.85)
    assert found["micro_f1"] == pytest.approx(0.6)
    assert found["weighted_micro_f1"] == pytest.approx(2 * 0.6 * 0.85 / 1.45)
    assert found["macro_f1"] == pytest.approx((4 / 7 + 2 / 3) / 2)
    assert found["weighted_macro_f1"] == pytest.approx((0.8 / 1.3 + 1.8 / 1.9) / 2)


def test_a_missing_prompt_scores_nothing_by_the_paper_and_what_came_before_it_officially() -> None:
    predictions = {"a": ["um"], "c": ["não"], "zzz": ["x"], "aaa": []}
    paper = score_translations(ROWS, predictions)
    assert paper.weighted_f1 == pytest.approx([2 / 3, 0, 1])
    assert (paper.missing, paper.extra) == (("b",), ("aaa", "zzz"))
    assert aggregate(paper)["recall"] == pytest.approx(2 / 6)
    official = score_translations(ROWS, predictions, "official")
    assert official.weighted_f1 == pytest.approx([2 / 3, 2 / 3, 1])
    assert aggregate(official)["recall"] == pytest.approx(2 / 4), "the micro averages leave it out"
    assert aggregate(official)["weighted_recall"] == pytest.approx(1.5 / 2)
    with pytest.raises(ValueError, match=r"first prompt, 'a', .* official scorer fails"):
        score_translations(ROWS, {"b": ["sim"], "a": []}, "official")


def test_what_the_rules_ignore() -> None:
    assert read_paper("¿Está  CLARA?") == read_paper("está clara 。") == "está clara"
    assert read_paper("a\u0303") == "ã"
    assert read_official("a\u0303") == "a\u0303"
    assert read_paper("x  y") == "x y"
    assert read_official("x  y !") == "x  y"
    assert read_paper("5 €_+ヴー・") == read_official("5 €_+ヴー・") == "5 €+ヴー", "symbols are no punctuation"
    rows = [
        {"id": "a", "translations": [{"text": t, "weight": w} for t, w in (("Oi!", 0.5), ("oi", 0.2), ("olá", 0.3))]}
    ]
    assert score_translations(rows, {"a": ["OI", "oi."]}).weights.tolist() == [[0.7, 0.3]]
    assert score_translations(rows, {"a": ["OI", "oi."]}).counts.tolist() == [[1, 0, 1]]
    assert score_translations(rows, {"a": ["oi"]}, "official").weights.tolist() == [[0.2, 0.3]]


@pytest.mark.parametrize("rules", ["paper", "official"])
def test_the_order_of_prompts_and_predictions_does_not_matter(rules: str) -> None:
    draw = random.Random(3)
    words = [f"w{number}" for number in range(30)]
    rows = [row(f"p{n}", **{word: draw.random() for word in draw.sample(words, 8)}) for n in range(20)]
    predictions = {entry["id"]: draw.sample(words, 6) for entry in rows}
    expected = aggregate(score_translations(rows, predictions, rules))
    draw.shuffle(rows)
    shuffled = {name: draw.sample(texts, len(texts)) * 2 for name, texts in predictions.items()}
    found = aggregate(score_translations(rows, shuffled, rules))
    assert found == pytest.approx(expected)
    assert 0 < expected["weighted_macro_f1"] < 1


def test_the_oracle() -> None:
    rows = [row("a", x=0.2, y=0.6, z=0.2), row("b", v=1.0)]
    assert oracle_top_k(rows, 2) == {"a": ["y", "x"], "b": ["v"]}, "ties keep the order of the data"
    assert oracle_curve(rows, (1, 2, None)) == pytest.approx({1: (0.75 + 1) / 2, 2: (1.6 / 1.8 + 1) / 2, None: 1.0})
    for k in (1, 2):
        scored = score_translations(rows, oracle_top_k(rows, k))
        assert oracle_curve(rows, (k,))[k] == pytest.approx(aggregate(scored)["weighted_macro_f1"])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: score_translations(ROWS, {}, "ours"), "must be one of"),
        (lambda: weighted_f1_signature("ours"), "must be one of"),
        (lambda: score_translations([], {}), "no prompt to score"),
        (lambda: score_translations([*ROWS, ROWS[0]], {}), "'a' comes again"),
        (lambda: score_translations([row("a")], {}), "no accepted translation"),
        (lambda: score_translations([row("a", x=float("nan"))], {}), "finite and 0 or more"),
        (lambda: score_translations([row("a", x=-0.1)], {}), "finite and 0 or more"),
        (lambda: score_translations(ROWS, {"a": "um"}), "must be a list of texts"),
        (lambda: score_translations(ROWS, {"a": [1]}), "must be a list of texts"),
        (lambda: oracle_top_k(ROWS, 0), "k of an oracle"),
    ],
)
def test_bad_arguments(call, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


def test_the_signatures_tell_the_rules_apart() -> None:
    paper, official = weighted_f1_signature(), weighted_f1_signature("official")
    assert "|rules:paper|" in paper
    assert "|rules:official|" in official
    assert score_translations(ROWS, {"a": ["um"]}, "official").signature == official


@pytest.fixture(scope="module")
def real(shared_data: Path) -> tuple[list[dict[str, Any]], dict[str, list[str]], dict[str, Any]]:
    """Return the rows of the real sample, Amazon's translations, and what the official scorer gives."""
    blocks: dict[str, list[list[str]]] = {}
    golden = json.loads((shared_data / "golden" / "staple.json").read_text(encoding="utf-8"))
    for name in ("gold", "pred"):
        text = (shared_data / golden[name]).read_text(encoding="utf-8")
        blocks[name] = [block.split("\n") for block in text.strip("\n").split("\n\n")]
    rows = [
        {
            "id": head.split("|")[0],
            "translations": [
                {"text": line.rpartition("|")[0], "weight": float(line.rpartition("|")[2])} for line in lines
            ],
        }
        for head, *lines in blocks["gold"]
    ]
    return rows, {head.split("|")[0]: lines for head, *lines in blocks["pred"]}, golden


def test_the_official_scorer_on_real_data(real) -> None:
    rows, baseline, golden = real
    for name, predictions in (("aws_baseline", baseline), ("oracle_top_5", oracle_top_k(rows, 5))):
        found = aggregate(score_translations(rows, predictions, "official"))
        assert {part: round(found[part], 4) for part in PARTS} == golden[name], name


def test_the_rules_of_the_paper_on_real_data(real) -> None:
    """Only the summed weights of equal translations differ there."""
    rows, baseline, golden = real
    found = aggregate(score_translations(rows, baseline))
    expected = {**golden["aws_baseline"], "weighted_recall": 0.1466, "weighted_micro_f1": 0.2506}
    assert {part: round(found[part], 4) for part in PARTS} == {**expected, "weighted_macro_f1": 0.2184}
    assert round(oracle_curve(rows, (5,))[5], 4) == 0.6302
    assert oracle_curve(rows, (None,))[None] == 1.0
