"""The sweep of the bonus's weight over response sets of known spread, and the figure that picks a checkpoint."""

import numpy as np
import pytest
from datasets import Dataset

from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.training.retrieval import alpha_sweep
from mrs_suggest.training.retrieval.alpha_sweep import AlphaSweep, sweep_alpha
from mrs_suggest.training.retrieval.model import ReplyEvaluator
from mrs_suggest.training.retrieval.options import METRICS

FREQUENT, RARE = ["see you there then"], [f"rare reply number {word}" for word in ("one", "two", "three", "four")]
LOG_PROBS = [-1.0, -3.0, -3.0, -3.0, -3.0]


def language(answers: list[str], log_probs: list[float | None] = LOG_PROBS) -> LanguageData:  # type: ignore[assignment]
    """Messages with these answers; the response set has one frequent reply and four rare ones."""
    rows = Dataset.from_dict({"message": [f"message {n}" for n in range(len(answers))], "reply": answers})
    replies = FREQUENT + RARE
    return LanguageData("en", rows, rows, rows, ResponseSet(replies, replies, log_probs))


def sweep(scores: list[float], *parts: LanguageData) -> AlphaSweep:
    """A sweep where all messages have these scores with the five replies."""

    def index(responses: ResponseSet) -> ResponseIndex:
        vectors = np.array(scores, np.float32)[:, None]
        return ResponseIndex.build(lambda _: vectors, responses.replies, responses.clusters, responses.log_probs)

    return sweep_alpha(lambda texts: np.ones((len(texts), 1), np.float32), [(p, index(p.responses)) for p in parts], 0)


SCORES = [0.0, 9.0, 8.0, 7.0, 1.0]


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_range_follows_the_spread_of_the_scores(scale: float) -> None:
    """The frequent reply is right and comes fourth by score: 2 points of log-probability lift it over the rare ones."""
    found = sweep([score * scale for score in SCORES], language(FREQUENT * 4))
    least = 3.5 * scale  # from there on it is among the three
    assert found.rouge[0.0] < found.rouge[found.alpha] == max(found.rouge.values())
    assert least < found.alpha < 2 * least
    assert found.alpha < max(found.rouge)
    assert found.unit == pytest.approx(np.std(SCORES, ddof=1) * scale / 0.8944272, rel=1e-4)


def test_the_grid_grows_until_the_best_lies_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alpha_sweep, "GRID", (0.0, 0.01, 0.02))
    # A figure that rises with the weight up to ten: the first grid ends far below.
    monkeypatch.setattr(alpha_sweep._Vectors, "rouge", lambda self, alpha, seed: -abs(alpha - 10.0))
    found = sweep(SCORES, language(FREQUENT))
    assert found.alpha == pytest.approx(10, rel=0.25)
    assert found.alpha < max(found.rouge)
    monkeypatch.setattr(alpha_sweep._Vectors, "rouge", lambda self, alpha, seed: alpha)
    assert max(sweep(SCORES, language(FREQUENT)).rouge) < 130 * found.unit, "it ends"


def test_no_bonus_where_it_does_not_help_or_says_nothing() -> None:
    found = sweep(SCORES, language([RARE[0]] * 4))
    assert found.alpha == 0, "of equal figures the smallest weight"
    found = sweep(SCORES, language(FREQUENT, [-2.0] * 5))
    assert (found.alpha, found.unit, list(found.rouge)) == (0.0, 0.0, [0.0])


def test_languages_count_alike() -> None:
    """One that needs the bonus and one that it harms, beside each other."""
    one, other = language(FREQUENT * 4), language([RARE[2]] * 40)
    alone = [sweep(SCORES, part).rouge for part in (one, other)]
    both = sweep(SCORES, one, other).rouge
    for weight in both.keys() & alone[0].keys() & alone[1].keys():
        assert both[weight] == pytest.approx((alone[0][weight] + alone[1][weight]) / 2)


def test_the_evaluator_gives_every_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluator = ReplyEvaluator([language(FREQUENT)], 0.0, 1)
    figures = {"weighted": 0.04, "mrr": 0.16, "p@1": 0.1}
    monkeypatch.setattr(evaluator._log, "evaluate", lambda make: (figures, ["line"]))
    found = evaluator(None, steps=3)
    assert tuple(found) == METRICS
    assert found["rouge_mrr"] == pytest.approx(0.08)
