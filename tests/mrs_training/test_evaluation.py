"""Evaluation by hand: a stub system, replies whose ROUGE is known from the paper's rules, ranks that can be counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from mrs_training.evaluation import SystemResult, difference, evaluate_system, summary

# What each candidate scores in every pool; the higher the better.
SCORES = {"yes": 3.0, "no way": 2.0, "so what": 2.0, "never": 1.0, "later": 0.0}


class Stub:
    """Answers from a table, ranks by `SCORES`, and notes what it was asked."""

    name = "Stub"

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def suggest(self, messages: Sequence[str], k: int) -> list[list[str]]:
        assert k == 3
        self.asked += messages
        return [self.answers[message] for message in messages]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        assert len(messages) == len(pools)
        return np.array([[SCORES[candidates[number].lower().strip(".!")] for number in pool] for pool in pools])


MESSAGES = ["hi", "bye", "hi", "why"]
REFERENCES = ["Yes.", "no way", "never", "later"]
ANSWERS = {
    "hi": ["later", "yes", "so what"],  # one of one word: ROUGE-1 1, so 1/6; for the reference "never": 0
    "bye": ["no", "no way", "way"],  # the second one is perfect: 1/6 + 1/3
    "why": ["later later", "what", "so"],  # unigrams are sets: 1/6
}
RESPONSES = ["so what", "YES", "never"]


@pytest.fixture
def result() -> SystemResult:
    return evaluate_system(Stub(ANSWERS), "en", MESSAGES, REFERENCES, RESPONSES, seed=1)


def test_scores_by_hand(result: SystemResult) -> None:
    assert result.weighted == pytest.approx([1 / 6, 1 / 2, 0, 1 / 6], abs=1e-6)
    assert result.rouge == pytest.approx(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]]), abs=1e-6)
    # Five candidates (YES of the response set is the reference "Yes."), so every pool holds all of them. "no way"
    # shares its score with "so what", and comes last among equals.
    assert result.reciprocal_rank == pytest.approx([1, 1 / 3, 1 / 4, 1 / 5])
    assert result.suggestions == [ANSWERS[message] for message in MESSAGES]
    assert result.chosen_tokens == [["yes"], ["no", "way"], ["later"], ["later", "later"]]
    assert "pool:5" in result.signatures["response_ranking"]
    assert "seed:1" in result.signatures["response_ranking"]
    assert "lang:en" in result.signatures["mrs_rouge"]


def test_a_message_that_comes_twice_is_answered_once() -> None:
    stub = Stub(ANSWERS)
    evaluate_system(stub, "en", MESSAGES, REFERENCES, RESPONSES, seed=1)
    assert stub.asked == ["hi", "bye", "why"]


def test_summary_by_hand(result: SystemResult) -> None:
    figures = summary([result], seed=0)
    assert figures["n"] == 4
    assert figures["weighted"] == pytest.approx((1 / 6 + 1 / 2 + 1 / 6) / 4, abs=1e-6)
    assert [figures[f"rouge{n}"] for n in (1, 2, 3)] == pytest.approx([3 / 4, 1 / 4, 0], abs=1e-6)
    assert figures["mrr"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 5) / 4)
    assert figures["p@1"] == 1 / 4
    assert figures["dist1"] == pytest.approx(4 / 6)  # yes no way later, of six tokens
    assert figures["dist2"] == pytest.approx(2 / 6)  # "no way", "later later"; over the same six
    assert figures["weighted_interval"][0] <= figures["weighted"] <= figures["weighted_interval"][1]
    assert figures["mrr_interval"][0] <= figures["mrr"] <= figures["mrr_interval"][1]


def test_a_pooled_summary_is_over_examples_not_over_languages(result: SystemResult) -> None:
    single = evaluate_system(Stub({"hi": ["yes"]}), "es", ["hi"], ["yes"], RESPONSES, seed=1)
    figures = summary([result, single], seed=0)
    assert figures["n"] == 5
    assert figures["weighted"] == pytest.approx((1 / 6 + 1 / 2 + 1 / 6 + 1 / 6) / 5, abs=1e-6)
    assert figures["mrr"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 5 + 1) / 5)


def test_skipped_references_are_counted_and_still_ranked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCORES, "", -1.0)  # the candidate "..." without its dots
    answers = {"hi": ["yes"], "bye": ["no way"]}
    result = evaluate_system(Stub(answers), "en", ["hi", "bye"], ["yes", "..."], ["never"], seed=0)
    assert (len(result.weighted), len(result.reciprocal_rank)) == (1, 2)
    assert sum(result.skipped.values()) == 1
    assert summary([result, result], 0)["skipped"] == {reason: 2 * n for reason, n in result.skipped.items()}


def test_difference_is_paired_and_signed(result: SystemResult) -> None:
    assert difference([result], [result], seed=0) == {"weighted": [0, 0], "mrr": [0, 0]}
    unrelated = Stub({message: ["unrelated"] for message in ANSWERS})
    worse = evaluate_system(unrelated, "en", MESSAGES, REFERENCES, RESPONSES, seed=1)
    ahead, behind = difference([result] * 3, [worse] * 3, seed=0), difference([worse] * 3, [result] * 3, seed=0)
    assert ahead["weighted"][0] > 0
    assert behind["weighted"] == pytest.approx([-value for value in reversed(ahead["weighted"])], abs=0.1)
    assert behind["weighted"][1] < 0
    assert ahead["mrr"] == [0, 0]


def test_equal_seeds_give_every_system_the_same_pools() -> None:
    words = [f"reply{n}" for n in range(400)]
    pools = []

    class Watch:
        name = "Watch"

        def suggest(self, messages: Sequence[str], k: int) -> list[list[str]]:
            return [["x"]] * len(messages)

        def score_pools(self, messages: Sequence[str], candidates: Sequence[str], found: np.ndarray) -> np.ndarray:
            pools.append([[candidates[number] for number in pool] for pool in found])
            return np.zeros(found.shape)

    for seed in (1, 1, 2):
        evaluate_system(Watch(), "en", ["a", "b"], words[:2], words, seed)
    assert pools[0] == pools[1] != pools[2]
    for reference, pool in zip(words, pools[0], strict=False):
        assert len(pool) == len(set(pool)) == 100
        assert pool[0] == reference
