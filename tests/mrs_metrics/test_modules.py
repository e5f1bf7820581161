"""The figures of the `evaluate` modules, in one call and in batches, and what they refuse."""

import math
from typing import Any

import pytest

from mrs_metrics.rouge import score_examples
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.spaces import metric_names
from tests.mrs_metrics.modules import MODULES, load

PREDICTIONS = [["I do", "I do not"], ["yes yes", ""], ["never"]]
REFERENCES = ["I do not", "yes", "..."]


def answer(texts: list[str]) -> list[tuple[str, float]]:
    return [("en" if "you" in text else "de", 0.9) for text in texts]


def accepted(**weights: float) -> list[dict[str, Any]]:
    return [{"text": text, "weight": weight} for text, weight in weights.items()]


def in_batches(name: str, inputs: dict[str, list[Any]], **options: Any) -> dict[str, Any]:
    """The figures of one call, which must be those of a batch and of single examples after it."""
    metric = load(name)
    once: dict[str, Any] = metric.compute(**inputs, **options)
    metric.add_batch(**{key: entries[:2] for key, entries in inputs.items()})
    for entries in list(zip(*inputs.values(), strict=True))[2:]:
        metric.add(**{key.removesuffix("s"): entry for key, entry in zip(inputs, entries, strict=True)})
    assert metric.compute(**options) == once
    return once


@pytest.mark.parametrize("name", metric_names())
def test_the_example_of_the_readme_runs(name: str) -> None:
    if name == "reply_bleu":
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    if name == "wrong_language":
        pytest.skip("needs a language model")
    code = (MODULES / f"{name}.md").read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    code = code.replace(f'evaluate.load("{name}")', "metric").replace("metric = metric\n", "")
    found: dict[str, Any] = {"metric": load(name)}
    before, call = code.split("metric.compute(", 1)
    exec(f"{before}result = metric.compute({call}", found)
    assert found["result"]["signature"].startswith(f"{name}|")


def test_mrs_rouge() -> None:
    inputs = {"predictions": [["no", "Yes!"], ["x"], [], ["merci !"]], "references": ["yes !", ".", "yes", "Merci !"]}
    found = in_batches("mrs_rouge", inputs, language="fr", per_example=True)
    detail = found["per_example"]
    assert found["n"] == 3
    assert found["weighted"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert found["skipped"] == {"reference_too_long": 0, "reference_empty": 1}
    assert found["signature"].startswith("mrs_rouge|rules:mrs|nbest:2|case:lower|tok:treebank-3.8.1|sent:no|lang:fr|")
    assert (detail["kept"], detail["chosen"]) == ([0, 2, 3], [1, -1, 0])
    assert detail["weighted"] == pytest.approx([0.5, 0, 0.5])
    assert detail["rouge3"] == [0, 0, 0]


def test_intervals_resample_units_and_say_how() -> None:
    predictions = [["See you tomorrow", "No"] if n % 3 else ["No"] for n in range(30)]
    references = [[f"See you tomorrow {n}"] if n != 5 else [" "] for n in range(30)]  # the sixth is skipped
    inputs: dict[str, Any] = {"predictions": predictions, "references": references, "interval": True}
    units = [f"message {n // 6}" for n in range(30)]
    own, grouped = (load("mrs_rouge").compute(**inputs, units=given) for given in (None, units))
    for found in (own, grouped):
        assert found["interval"][0] < found["weighted"] < found["interval"][1]
    assert (own["interval_method"], grouped["interval_method"]) == (
        "studentised bootstrap", "studentised bootstrap, by unit",
    )  # fmt: skip
    scores = score_examples(predictions, references)
    kept = [unit for n, unit in enumerate(units) if n != 5]
    assert grouped["interval"] == bootstrap_interval(scores.weighted, units=kept).ends != own["interval"]
    equal = load("mrs_rouge").compute(predictions=[["Yes please"]] * 4, references=["Yes please"] * 4, interval=True)
    assert (equal["interval"], equal["interval_method"]) == (None, "no interval: all 4 scores are equal")
    with pytest.raises(ValueError, match="Each of the 30 examples needs its unit, but 29 are given"):
        load("mrs_rouge").compute(**inputs, units=units[1:])
    ranked = load("response_ranking").compute(
        predictions=[[0.2, 0.1], [0.1, 0.2], [0.5]], references=[0, 0, -1], interval=True, units=["a", "b", "b"]
    )
    assert ranked["interval_method"] == "studentised bootstrap, by unit"
    alike = load("wrong_language").compute(
        predictions=[["See you tomorrow"] * 3] * 9, language="en", identify=lambda texts: [("en", 0.9)] * len(texts),
        interval=True, units=[n // 3 for n in range(9)],
    )  # fmt: skip
    assert alike["interval"] == pytest.approx([0, 1 - 0.025 ** (1 / 3)]), "three units"
    prompts = [[{"text": "sim", "weight": 1.0}], [], [{"text": "não", "weight": 1.0}, {"text": "nao", "weight": 0.5}]]
    found = load("weighted_f1").compute(
        predictions=[["sim"], ["x"], ["não"]], references=prompts, interval=True, units=["a", "b", "c"]
    )
    assert found["interval_method"] == "studentised bootstrap, by unit"
    assert "|unit:given|" in found["signature"]


def test_figures_that_are_not_means_have_intervals_by_unit() -> None:
    units = [n // 4 for n in range(24)]
    texts = [[f"see you at {n if n % 3 else 0} then", f"no {n // 4}"] for n in range(24)]
    right = [["NOUN", "VERB", "X" if n % 5 else "NOUN"] for n in range(24)]
    tags = [["NOUN" if n // 4 % 2 else "VERB"] * 3 for n in units]
    losses = [[0.5 + n // 4, 1.0] for n in range(24)]
    for name, given in (
        ("dist_n", {"predictions": texts}),
        ("reply_perplexity", {"predictions": losses}),
        ("xglue_score", {"predictions": tags, "references": right, "task": "POS"}),
    ):
        metric, inputs = load(name), {**given, "interval": True}
        own, grouped = metric.compute(**inputs), metric.compute(**inputs, units=units)
        assert grouped["interval_method"] == f"{own['interval_method']}, by unit"
        assert grouped["interval"] != own["interval"]
        assert ("|unit:example|" in own["signature"], "|unit:given|" in grouped["signature"]) == (True, True)
        main = next(grouped[key] for key in ("dist1", "perplexity", "score") if key in grouped)
        assert grouped["interval"][0] <= main <= grouped["interval"][1]


def test_dist_n_of_all_and_of_the_best() -> None:
    predictions = [["I do", "I do not"], ["yes", ""]]
    # i do | i do not | yes | <empty>: five different tokens of seven, two different bigrams.
    everything = in_batches("dist_n", {"predictions": predictions})
    assert (everything["dist1"], everything["dist2"]) == pytest.approx((5 / 7, 2 / 7))
    assert everything["counts"]["dist2"] == {"distinct": 2, "ngrams": 3, "tokens": 7}
    assert everything["signature"].startswith("dist_n|rules:mrs|chosen:all|nbest:2|per:tokens|case:lower|tok:")
    scaled = load("dist_n").compute(predictions=predictions, n=[1, 3], denominator="ngrams")
    assert (scaled["dist1"], scaled["dist3"]) == (pytest.approx(5 / 7), 1.0)
    best = load("dist_n").compute(predictions=predictions, references=["I do not", "yes"], chosen="best", n=2)
    assert best["counts"] == {"dist2": {"distinct": 2, "ngrams": 2, "tokens": 4}}


def test_reply_bleu() -> None:
    pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    inputs: dict[str, Any] = {
        "predictions": [["no", "see you at eight then"], ["x"], [], ["merci !"]],
        "references": ["see you at eight then", " ", "yes", "Merci !"],
    }
    found = in_batches("reply_bleu", inputs, language="fr", per_example=True, interval=True)
    assert found["per_example"]["kept"] == [0, 2, 3]
    assert found["per_example"]["chosen"] == [1, -1, 0]
    # of merci / ! one word of two, no pair: 100 * (1/2 * 1/2) ** (1/2)
    assert found["per_example"]["sentence_bleu"] == pytest.approx([100, 0, 50])
    assert found["sentence_bleu"] == pytest.approx(50)
    assert (found["n"], found["empty"], found["skipped"]) == (3, 1, {"reference_empty": 1})
    assert found["interval"][0] <= found["bleu"] <= found["interval"][1]
    assert found["signature"].startswith("reply_bleu|chosen:best|nbest:2|lang:fr|")
    first = load("reply_bleu").compute(**inputs, chosen="first", lowercase=True)
    assert first["sentence_bleu"] == pytest.approx(100 / 3)
    assert "case:lc" in first["signature"]


def test_reply_perplexity_takes_losses_of_tokens_or_sums() -> None:
    options: dict[str, Any] = {"tokenizer": "words", "interval": True}
    listed = in_batches("reply_perplexity", {"predictions": [[1.0, 2.0], [], [3.0]]}, **options)
    assert load("reply_perplexity").compute(predictions=[3.0, 0.0, 3.0], tokens=[2, 0, 1], **options) == listed
    assert listed["perplexity"] == pytest.approx(math.exp(2))
    assert (listed["n"], listed["empty"], listed["tokens"], listed["overflow"]) == (3, 1, 3, False)
    assert listed["interval"][0] <= listed["perplexity"] <= listed["interval"][1]
    assert listed["signature"].startswith("reply_perplexity|avg:token|log:natural|tok:words|")


def test_simulated_clicks() -> None:
    inputs = {
        "predictions": [["no", "Yes!"], ["x"], ["x"], ["merci !", "a"]],
        "references": ["yes", "", "yes", "Merci !"],
    }
    found = in_batches("simulated_clicks", inputs, interval=True, per_example=True)
    assert [found[name] for name in ("n", "clicked", "first", "exact")] == pytest.approx([3, 2 / 3, 1 / 3, 1 / 3])
    assert found["saved"] == pytest.approx((2 + 7) / (3 + 3 + 7))
    assert found["per_example"] == {"place": [1, -1, 0], "saved": [2, 0, 7], "length": [3, 3, 7], "kept": [0, 2, 3]}
    assert found["skipped"] == {"reference_empty": 1}
    assert found["interval"][0] < 2 / 3 < found["interval"][1]
    strict = load("simulated_clicks").compute(**inputs, edits=0)
    assert strict["clicked"] == strict["exact"] == pytest.approx(1 / 3)


def test_self_rouge() -> None:
    predictions = [["yes", "Yes", "no"], ["yes"], ["Vielen Dank!", "vielen dank!"]]
    found = in_batches("self_rouge", {"predictions": predictions}, language="de", interval=True, per_example=True)
    assert found["per_example"]["kept"] == [0, 2]
    assert found["per_example"]["self_rouge"] == pytest.approx([1 / 18, 1])
    assert found["per_example"]["normalised"] == pytest.approx([1 / 3, 1])
    assert (found["n"], found["skipped"], found["empty"]) == (2, {"fewer_than_two": 1}, 0)
    assert found["normalised"] == pytest.approx(2 / 3)
    assert found["interval"] == pytest.approx([1 / 3, 1])
    assert found["signature"].startswith("self_rouge|rules:mrs|pairs:all|nbest:3|")


def test_wrong_language() -> None:
    found = load("wrong_language").compute(
        predictions=[["see you then", "bis dann also", "ok"], ["see you then"]],
        language=["de", "en"], identify=answer, identifier="mine", per_suggestion=True, interval=True,
    )  # fmt: skip
    assert found["per_suggestion"] == {
        "example": [0, 0, 0, 1],
        "identified": ["en", "de", "und", "en"],
        "wrong": [True, False, False, False],
    }
    assert (found["wrong"], found["any_wrong"], found["too_short"]) == (pytest.approx(1 / 3), 0.5, 0.25)
    assert "|identifier:mine|" in found["signature"]
    assert len(found["interval"]) == 2


def test_response_ranking() -> None:
    inputs: dict[str, Any] = {
        "predictions": [[5.0, -1.0], [0.5, 0.7, 0.1], [1, 2, 3], [1, 2, 3, -4], []],
        "references": [0, 0, -1, 1, -1],
    }
    found = in_batches(
        "response_ranking", inputs, replies=["yes", "yes", "no", "bye", "no"], k=[1, 2], of="response_set",
        language="en", interval=True, per_example=True,
    )  # fmt: skip
    assert (found["n"], found["skipped"], found["replies"]) == (3, {"reply_absent": 2}, 2)
    assert (found["mrr"], found["macro_mrr"]) == pytest.approx((2 / 3, 0.625))
    assert (found["p@1"], found["p@2"]) == pytest.approx((1 / 3, 1 / 2))
    assert found["per_example"] == {
        "rank": [1, 2, 2], "reciprocal_rank": [1.0, 0.5, 0.5], "pool_size": [2, 3, 4], "kept": [0, 1, 3],
    }  # fmt: skip
    assert found["interval"][0] <= found["mrr"] <= found["interval"][1]
    assert found["signature"].startswith(
        "response_ranking|pool:all|of:response_set|ties:pessimistic|absent:skip|lang:en|"
    )
    pooled = load("response_ranking").compute(**inputs, pool=2, seed=3, missing_reference="zero")
    assert (pooled["n"], "macro_mrr" in pooled) == (5, False)
    assert "|pool:2|of:candidates|seed:3|ties:pessimistic|absent:zero|" in pooled["signature"]


def test_weighted_f1() -> None:
    inputs: dict[str, Any] = {
        "predictions": [["um", "dois", "x", "y"], [], ["Sim!"], ["a"]],
        "references": [accepted(um=0.5, dois=0.3, tres=0.2), accepted(no=1), accepted(sim=0.9, claro=0.1), []],
    }
    found = in_batches("weighted_f1", inputs, interval=True, per_prompt=True)
    detail = found["per_prompt"]
    assert detail["weighted_f1"] == pytest.approx([0.8 / 1.3, 0, 1.8 / 1.9])
    assert detail["f1"] == pytest.approx([4 / 7, 0, 2 / 3])
    assert (detail["kept"], detail["missing"], detail["extra"]) == ([0, 1, 2], [1], [3])
    assert (found["n"], found["missing"], found["extra"]) == (3, 1, 1)
    assert found["weighted_macro_f1"] == pytest.approx((0.8 / 1.3 + 1.8 / 1.9) / 3)
    assert (found["precision"], found["recall"]) == pytest.approx((3 / 5, 3 / 6))
    assert found["interval"][0] <= found["weighted_macro_f1"] <= found["interval"][1]
    assert found["signature"].startswith("weighted_f1|rules:paper|")
    official = load("weighted_f1").compute(**inputs, rules="official")
    assert official["weighted_macro_f1"] == pytest.approx((2 * 0.8 / 1.3 + 1.8 / 1.9) / 3)
    assert "|rules:official|" in official["signature"]


def test_xglue_score_of_tags() -> None:
    inputs: dict[str, Any] = {
        "predictions": [[], ["DET", "NOUN", "VERB"]],
        "references": [["X"], ["DET", "NOUN", "NOUN"]],
    }
    found = in_batches("xglue_score", inputs, task="POS", language="de", interval=True, per_example=True)
    assert (found["n"], found["score"], found["accuracy"]) == (2, 0.5, 0.5)
    assert found["chunk_precision"] == pytest.approx(1 / 3)
    assert found["notes"] == {"padded": 1, "unknown": 0}
    assert found["per_example"]["right"] == [0, 2]
    assert found["per_example"]["kept"] == [0, 1]
    assert found["interval"][0] <= 0.5 <= found["interval"][1]
    assert found["signature"].startswith("xglue_score|task:POS|rules:paper|score:accuracy|lang:de|")
    official = load("xglue_score").compute(**inputs, task="POS", rules="official")
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
def test_xglue_score_of_each_kind_of_task(task: str, ours: Any, theirs: Any, figures: dict[str, float]) -> None:
    if task == "QG":
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    queries = ["a", "a"] if task == "WPR" else None
    found = load("xglue_score").compute(predictions=ours, references=theirs, task=task, queries=queries)
    assert {name: found[name] for name in figures} == pytest.approx(figures)
    assert found["score"] == pytest.approx(next(iter(figures.values())))


@pytest.mark.parametrize("first", [0, 1])
def test_a_question_without_an_answer_wherever_it_stands(first: int) -> None:
    answers, right = [None, "x"][:: 1 - 2 * first], [["a"], ["x"]][:: 1 - 2 * first]
    found = in_batches("xglue_score", {"predictions": answers, "references": right}, task="MLQA")
    assert (found["f1"], found["notes"]) == (0.5, {"unanswered": 1})


LOSSES, NEEDS_TEXTS = "reply_perplexity", {"predictions": PREDICTIONS, "references": REFERENCES}
BAD: list[tuple[str, dict[str, Any], str]] = [
    ("mrs_rouge", {**NEEDS_TEXTS, "rules": "mine"}, r"must be one of \['official', 'paper'\]"),
    ("dist_n", {**NEEDS_TEXTS, "references": None, "chosen": "best"}, "needs references"),
    ("dist_n", {**NEEDS_TEXTS, "chosen": "last"}, "'all' or 'best'"),
    ("dist_n", {**NEEDS_TEXTS, "level": "response", "vocabulary": 10}, "leave out the level"),
    ("dist_n", {**NEEDS_TEXTS, "level": "response", "sample_size": 1}, "leave out the level"),
    (LOSSES, {"predictions": [[1.0]], "tokens": [1]}, "Give the losses of each token, or sums"),
    (LOSSES, {"predictions": [1.0]}, "Give the losses of each token, or sums"),
    ("wrong_language", {"predictions": [["x"]]}, "Give either"),
    ("wrong_language", {"predictions": [["x"]], "identify": answer, "language_model": "x"}, "Give either"),
    ("wrong_language", {"predictions": [["x"]], "language_model": "absent.ftz"},
     "language model 'absent.ftz' does not exist|pip install fasttext"),
    ("response_ranking", {"predictions": [[1.0, None]], "references": [0]}, "example 0 (must be a|contain NaN)"),
    ("response_ranking", {"predictions": [[1.0]], "references": [0], "replies": []}, "and 0 replies"),
    ("weighted_f1", {"predictions": [["a"]], "references": [[{"text": "a", "weight": None}]]}, "finite and 0 or more"),
    ("weighted_f1", {"predictions": [[None]], "references": [accepted(a=1)]}, "expected format"),
    ("weighted_f1", {"predictions": [["a"]], "references": [[]]}, "No prompts to score"),
    ("xglue_score", {"predictions": [None, "1"], "references": ["1", "1"], "task": "QAM"}, "must be a text, not None"),
    ("xglue_score", {"predictions": ["1"], "references": ["1"]}, "no task ''; its tasks are NER"),
    ("xglue_score", {"predictions": [1], "references": [3], "task": "QAM"},
     "Reference 0 must be labelled with one of 0, 1 for QAM, not '3'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "inputs", "sentence"), BAD)
def test_what_the_modules_refuse(name: str, inputs: dict[str, Any], sentence: str) -> None:
    with pytest.raises((ValueError, ImportError), match=sentence):
        load(name).compute(**inputs)
