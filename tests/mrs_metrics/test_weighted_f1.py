"""Weighted F1: counted by hand, against the official scorer on made and on real data, and properties."""

import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics import translations_f1
from mrs_metrics.translations_f1 import (
    WeightedF1Scores,
    aggregate,
    oracle_curve,
    oracle_top_k,
    read_official,
    read_paper,
    read_texts,
    score_translations,
)
from tests.mrs_metrics.modules import golden

GOLDEN: list[dict[str, Any]] = golden("weighted_f1")
RULES = ("paper", "official")
# with marks, white space of all kinds, what NFC joins, and letters whose lower case is another length or depends
CHARACTERS = "aAéÉΣΑσİIßçc\u0327e\u0301가가。、!-_|'’ \t\u00a0\u3000\x85\r\n0.€\u00ad\U0001d15e\ud800"
text = st.one_of(st.text(CHARACTERS, max_size=12), st.text(max_size=12))
word = st.text("abAB !é", max_size=3)
weight = st.floats(0, 1, allow_subnormal=False)


@st.composite
def prompts(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Rows and predictions, with a prediction for the first prompt."""
    rows = []
    for number in range(draw(st.integers(1, 4))):
        entries = draw(st.lists(st.tuples(word, weight), min_size=1, max_size=6))
        rows.append({"id": str(number), "translations": [{"text": t, "weight": w} for t, w in entries]})
    predictions = draw(st.dictionaries(st.sampled_from("0123x"), st.lists(word, min_size=1, max_size=6)))
    return rows, {"0": draw(st.lists(word, min_size=1)), **predictions}


def row(prompt_id: str, **weights: float) -> dict[str, Any]:
    translations = [{"text": text.replace("_", " "), "weight": weight} for text, weight in weights.items()]
    return {"id": prompt_id, "translations": translations}


ROWS = [row("a", um=0.5, dois=0.3, tres=0.2), row("b", sim=0.9, claro=0.1), row("c", não=1.0)]


def official(scores: WeightedF1Scores) -> dict[str, float]:
    """The seven figures that the official scorer prints."""
    return {name: figure for name, figure in aggregate(scores).items() if name not in ("n", "missing", "extra")}


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
    assert read_official(" x  y !") == "x  y ", "the official scorer trims before it drops the mark"
    assert read_official(" x ! ", accepted=True) == "x  "
    assert read_paper("5 €_+ヴー・") == read_official("5 €_+ヴー・") == "5 €+ヴー", "symbols are no punctuation"
    rows = [
        {"id": "a", "translations": [{"text": t, "weight": w} for t, w in (("Oi!", 0.5), ("oi", 0.2), ("olá", 0.3))]}
    ]
    assert score_translations(rows, {"a": ["OI", "oi."]}).weights.tolist() == [[0.7, 0.3]]
    assert score_translations(rows, {"a": ["OI", "oi."]}).counts.tolist() == [[1, 0, 1]]
    assert score_translations(rows, {"a": ["oi"]}, "official").weights.tolist() == [[0.2, 0.3]]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["why"])
def test_golden_cases(case: dict[str, Any]) -> None:
    rows = [
        {"id": prompt_id, "translations": [{"text": text, "weight": weight} for text, weight in accepted]}
        for prompt_id, accepted in case["accepted"].items()
    ]
    scores = score_translations(rows, case["predicted"], case["rules"])
    assert official(scores) == pytest.approx(case["figures"], abs=1e-7)


@settings(max_examples=200)
@given(prompts(), st.sampled_from(RULES))
def test_bounds(given: tuple[list[dict[str, Any]], dict[str, list[str]]], rules: str) -> None:
    scores = score_translations(*given, rules)
    for name in ("precision", "recall", "weighted_recall", "f1", "weighted_f1"):
        values = getattr(scores, name)
        assert ((values >= 0) & (values <= 1)).all()
    assert all(0 <= value <= 1 for value in official(scores).values())


@given(prompts(), st.randoms(use_true_random=False), st.sampled_from(RULES))
def test_no_order_changes_a_bit_of_a_score(
    given: tuple[list[dict[str, Any]], dict[str, list[str]]], random: Any, rules: str
) -> None:
    rows, predictions = given
    expected = aggregate(score_translations(rows, predictions, rules))
    if rules == "paper":  # officially the prompt before a missing one counts, and the last of equal translations
        rows = [
            {**entry, "translations": random.sample(entry["translations"], len(entry["translations"]))}
            for entry in random.sample(rows, len(rows))
        ]
    shuffled = {name: random.sample(texts, len(texts)) * 2 for name, texts in predictions.items()}
    assert aggregate(score_translations(rows, shuffled, rules)) == expected


@given(prompts(), st.sampled_from(RULES))
def test_all_accepted_translations_are_a_perfect_prediction(
    given: tuple[list[dict[str, Any]], dict[str, list[str]]], rules: str
) -> None:
    rows = [
        {**row, "translations": [{**entry, "text": entry["text"].strip()} for entry in row["translations"]]}
        for row in given[0]
    ]
    scores = score_translations(rows, oracle_top_k(rows, None), rules)
    assert set(scores.f1.tolist()) == {1.0}
    assert all(score in (0.0, 1.0) for score in scores.weighted_f1.tolist())  # 0: no weight at all
    worse = score_translations(rows, {name: [*texts, "zzz"] for name, texts in oracle_top_k(rows, None).items()}, rules)
    assert (worse.f1 < scores.f1).all()
    assert (worse.weighted_f1 <= scores.weighted_f1).all()


@settings(max_examples=500)
@given(st.lists(text, max_size=6))
def test_texts_read_at_once_are_what_each_is_alone(texts: list[str]) -> None:
    assert read_texts(texts) == [read_paper(text) for text in texts]
    assert read_texts(texts, "official") == [read_official(text) for text in texts]
    assert read_texts(texts, "official", accepted=True) == [read_official(text, accepted=True) for text in texts]


def test_no_character_that_depends_on_its_neighbours_is_read_by_itself() -> None:
    """All of Unicode: in NFC a character joins the one before it only as the second part of a decomposition."""
    every = [chr(code) for code in range(sys.maxunicode + 1) if code != ord("\n")]  # what the texts are joined by
    parts = (unicodedata.decomposition(character).split() for character in every)
    seconds = {chr(int(two[1], 16)) for two in parts if len(two) == 2 and not two[0].startswith("<")}
    seconds |= {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}  # Hangul, composed by rule
    assert {"\u0301", "\u3099"} < seconds
    for character in every:
        code = translations_f1._read_character(character, paper=True)
        if code == translations_f1._NOT_ALONE:
            continue
        lower = character.lower()
        assert lower not in seconds, ascii(character)
        assert unicodedata.combining(lower) == 0, ascii(character)
        alone = read_paper(f"x{character}x")
        assert alone == ("xx" if code == translations_f1._DROPPED else f"x{chr(code)}x"), ascii(character)


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
        (lambda: score_translations([], {}), "No prompts to score"),
        (lambda: score_translations([*ROWS, ROWS[0]], {}), "'a' occurs again"),
        (lambda: score_translations([row("a")], {}), "no accepted translation"),
        (lambda: score_translations([row("a", x=float("nan"))], {}), "finite and 0 or more"),
        (lambda: score_translations([row("a", x=-0.1)], {}), "finite and 0 or more"),
        (lambda: score_translations(ROWS, {"a": "um"}), "must be a list of texts"),
        (lambda: score_translations(ROWS, {"a": [1]}), "must be a list of texts"),
        (lambda: score_translations([{"id": "a", "translations": [{"text": None, "weight": 1}]}], {}), "'a' has None"),
        (lambda: oracle_top_k(ROWS, 0), "k of an oracle"),
    ],
)
def test_bad_arguments(call, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()


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
        found = official(score_translations(rows, predictions, "official"))
        assert {part: round(figure, 4) for part, figure in found.items()} == golden[name], name


def test_the_rules_of_the_paper_on_real_data(real) -> None:
    """Only the summed weights of equal translations differ there."""
    rows, baseline, golden = real
    found = official(score_translations(rows, baseline))
    expected = {**golden["aws_baseline"], "weighted_recall": 0.1466, "weighted_micro_f1": 0.2506}
    assert {part: round(figure, 4) for part, figure in found.items()} == {**expected, "weighted_macro_f1": 0.2184}
    assert round(oracle_curve(rows, (5,))[5], 4) == 0.6302
    assert oracle_curve(rows, (None,))[None] == 1.0
