"""The sweep of the bonus's weight over response sets of known spread, and the figure that picks a checkpoint."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from datasets import Dataset

from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.training.retrieval import evaluation as retrieval_evaluation
from mrs_suggest.training.retrieval.evaluation import METRICS, ReplyEvaluator, rouge_mrr, sweep_alpha

FREQUENT, RARE = ["see you there then"], [f"rare reply number {word}" for word in ("one", "two", "three", "four")]
LOG_PROBS = [-1.0, -3.0, -3.0, -3.0, -3.0]


def language(answers: list[str], log_probs: list[float | None] = LOG_PROBS) -> LanguageData:  # type: ignore[assignment]
    """Messages with these answers; the response set has one frequent reply and four rare ones."""
    rows = Dataset.from_dict({"message": [f"message {n}" for n in range(len(answers))], "reply": answers})
    replies = FREQUENT + RARE
    return LanguageData("en", rows, rows, rows, ResponseSet(replies, replies, log_probs))


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that gives all messages these scores with the five replies."""

    def set_scores(scores: list[float]) -> None:
        def build_index(model: Any, part: LanguageData, alpha: float = 0.0) -> ResponseIndex:
            given = part.responses
            vectors = torch.tensor(scores)[:, None]
            return ResponseIndex.build(lambda texts: vectors, given.replies, given.clusters, given.log_probs, alpha)

        monkeypatch.setattr(retrieval_evaluation, "build_index", build_index)
        monkeypatch.setattr(retrieval_evaluation, "encode_messages", lambda model, texts: torch.ones(len(texts), 1))

    return set_scores


MODEL: Any = None


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_range_follows_the_spread_of_the_scores(scored: Any, scale: float) -> None:
    """The frequent reply is right and comes fourth by score: 2 points of log-probability lift it over the rare ones."""
    scored([0.0, 9.0 * scale, 8.0 * scale, 7.0 * scale, 1.0 * scale])
    found = sweep_alpha(MODEL, [language(FREQUENT * 4)], seed=0)
    least = 3.5 * scale  # from there on it is among the three
    assert found.rouge[0.0] < found.rouge[found.alpha] == max(found.rouge.values())
    assert least < found.alpha < 2 * least
    assert found.alpha < max(found.rouge)
    assert found.unit == pytest.approx(torch.tensor([0.0, 9, 8, 7, 1]).std().item() * scale / 0.8944272, rel=1e-4)


def test_the_grid_grows_until_the_best_lies_inside(scored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retrieval_evaluation, "GRID", (0.0, 0.01, 0.02))
    scored([0.0, 9.0, 8.0, 7.0, 1.0])
    rouge = retrieval_evaluation._Vectors.rouge
    # A figure that rises with the weight up to ten: the first grid ends far below.
    monkeypatch.setattr(retrieval_evaluation._Vectors, "rouge", lambda self, alpha, seed: -abs(alpha - 10.0))
    found = sweep_alpha(MODEL, [language(FREQUENT)], seed=0)
    assert found.alpha == pytest.approx(10, rel=0.25)
    assert found.alpha < max(found.rouge)
    monkeypatch.setattr(retrieval_evaluation._Vectors, "rouge", lambda self, alpha, seed: alpha)
    assert max(sweep_alpha(MODEL, [language(FREQUENT)], seed=0).rouge) < 130 * found.unit, "it ends"
    monkeypatch.setattr(retrieval_evaluation._Vectors, "rouge", rouge)


def test_no_bonus_where_it_does_not_help(scored: Any) -> None:
    scored([0.0, 9.0, 8.0, 7.0, 1.0])
    found = sweep_alpha(MODEL, [language([RARE[0]] * 4)], seed=0)
    assert found.alpha == 0, "of equal figures the smallest weight"


def test_equal_log_probabilities_have_no_weight_to_try(scored: Any) -> None:
    scored([0.0, 9.0, 8.0, 7.0, 1.0])
    found = sweep_alpha(MODEL, [language(FREQUENT, [-2.0] * 5)], seed=0)
    assert (found.alpha, found.unit, list(found.rouge)) == (0.0, 0.0, [0.0])


def test_languages_count_alike(scored: Any) -> None:
    """One that needs the bonus and one that it harms, beside each other."""
    scored([0.0, 9.0, 8.0, 7.0, 1.0])
    one, other = language(FREQUENT * 4), language([RARE[2]] * 40)
    alone = [sweep_alpha(MODEL, [part], seed=0).rouge for part in (one, other)]
    both = sweep_alpha(MODEL, [one, other], seed=0).rouge
    for weight in both.keys() & alone[0].keys() & alone[1].keys():
        assert both[weight] == pytest.approx((alone[0][weight] + alone[1][weight]) / 2)


def test_the_geometric_mean_falls_with_either() -> None:
    assert rouge_mrr(0.04, 0.09) == pytest.approx(0.06)
    assert rouge_mrr(0.04, 0.0) == 0
    assert math.isclose(rouge_mrr(0.044, 0.1), rouge_mrr(0.04, 0.11))


def test_the_evaluator_gives_every_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = ReplyEvaluator([language(FREQUENT)], 0.0, 1)
    figures = {"weighted": 0.04, "mrr": 0.16, "p@1": 0.1}
    monkeypatch.setattr(evaluator._log, "evaluate", lambda make: (figures, ["line"]))
    found = evaluator(MODEL, steps=3)
    assert tuple(found) == METRICS
    assert found["rouge_mrr"] == pytest.approx(0.08)
