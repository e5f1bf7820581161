"""Evaluation by hand: a stub system, replies whose ROUGE is known from the paper's rules, ranks that can be counted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.results import (
    EvaluationConfig,
    SystemResult,
    difference,
    evaluate_system,
    summary,
    units_of,
)
from mrs_suggest.suggest.answering import Suggestion

# What each candidate scores in every pool; the higher the better.
SCORES = {"yes": 3.0, "no way": 2.0, "so what": 2.0, "never": 1.0, "later": 0.0}


class Stub:
    """Answers from a table, ranks by `SCORES`, and notes what it was asked."""

    name = "Stub"

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        assert k == 3
        self.asked += messages
        return [[Suggestion(reply, 0.0) for reply in self.answers[message]] for message in messages]

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


def test_a_model_that_scores_no_numbers_has_diverged() -> None:
    class Diverged(Stub):
        def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
            return super().score_pools(messages, candidates, pools) * np.nan

    with pytest.raises(InputError, match="the training has diverged .* lower --learning_rate"):
        evaluate_system(Diverged(ANSWERS), "en", MESSAGES, REFERENCES, RESPONSES, seed=1)


def test_scores_by_hand(result: SystemResult) -> None:
    assert result.scores.weighted == pytest.approx([1 / 6, 1 / 2, 0, 1 / 6], abs=1e-6)
    assert result.scores.rouge == pytest.approx(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 0], [1, 0, 0]]), abs=1e-6)
    # Five candidates (YES of the response set is the reference "Yes."), so every pool holds all of them. "no way"
    # shares its score with "so what", and comes last among equals.
    assert result.ranking is not None
    assert result.ranking.reciprocal == pytest.approx([1, 1 / 3, 1 / 4, 1 / 5])
    assert result.ranking.pool_size == 5
    assert result.suggestions == [ANSWERS[message] for message in MESSAGES]
    assert result.scores.chosen_tokens == [["yes"], ["no", "way"], ["later"], ["later", "later"]]
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


def test_intervals_are_by_message(result: SystemResult) -> None:
    numbers = {unit: number for number, unit in enumerate(dict.fromkeys(units_of([result], kept=False)))}
    assert [numbers[unit] for unit in units_of([result])] == [result.message[place] for place in result.scores.kept]
    single = evaluate_system(Stub({"hi": ["yes"]}), "es", ["hi"], ["yes"], RESPONSES, seed=1)
    assert len(set(units_of([result, single]))) == 4, "the same text in two languages is two messages"
    rows = 12
    many = {f"message {n}": ["yes"] if n % 2 else ["later"] for n in range(rows)}
    so_what = {message: ["so what"] for message in many}

    def evaluated(answers: dict[str, list[str]], times: int = 1, *more: Any) -> SystemResult:
        return evaluate_system(Stub(answers), "en", list(many) * times, ["yes"] * rows * times, RESPONSES, 1, *more)

    one, three = (summary([evaluated(many, times)], seed=0)["weighted_interval"] for times in (1, 3))
    assert three == pytest.approx(one, abs=0.02)
    one, three = (difference([evaluated(many, n)], [evaluated(so_what, n)], 0)["weighted"] for n in (1, 3))
    assert three == pytest.approx(one, abs=0.02)
    threads = evaluated(many, 1, EvaluationConfig(unit="thread"), ["a", "b"] * 6)
    assert "|unit:thread|" in threads.signatures["mrs_rouge"]
    assert len(set(units_of([threads]))) == 2


def test_two_languages_are_pooled_over_their_examples(result: SystemResult) -> None:
    single = evaluate_system(Stub({"hi": ["yes"]}), "es", ["hi"], ["yes"], RESPONSES, seed=1)
    figures = summary([result, single], seed=0)
    assert figures["n"] == 5
    assert figures["weighted"] == pytest.approx((1 / 6 + 1 / 2 + 1 / 6 + 1 / 6) / 5, abs=1e-6)
    assert figures["mrr"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 5 + 1) / 5)
    assert summary([result, single], 0)["macro_mrr"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 5 + 1) / 5)
    assert summary([single, result], 0)["macro_mrr"] == pytest.approx((1 + 1 / 3 + 1 / 4 + 1 / 5 + 1) / 5)


# --- ranking


def test_macro_mrr_is_the_mean_over_different_replies() -> None:
    answers = {"hi": ["yes"], "bye": ["no"], "why": ["x"]}
    references = ["yes", "YES!", "no way"]  # ranked 1, 1, and behind "so what" 3
    found = summary([evaluate_system(Stub(answers), "en", list(answers), references, ["so what"], seed=1)], 0)
    assert found["mrr"] == pytest.approx((1 + 1 + 1 / 3) / 3)
    assert found["macro_mrr"] == pytest.approx((1 + 1 / 3) / 2)


def test_ranking_of_the_replies_that_the_response_set_has(result: SystemResult) -> None:
    figures = summary([result], seed=0)
    assert figures["in_set"] == 1 / 2  # "Yes." as "YES", and "never"
    assert figures["mrr_in_set"] == pytest.approx((1 + 1 / 4) / 2)
    other = evaluate_system(Stub(ANSWERS), "en", MESSAGES, REFERENCES, ["so what"], seed=1)
    assert (summary([other], 0)["in_set"], summary([other], 0)["mrr_in_set"]) == (0, None)


def test_what_ranks_nothing_has_no_ranking() -> None:
    """A system that cannot, or a run that does not ask."""

    class Mute:
        name = "Mute"
        suggest = Stub(ANSWERS).suggest

    for system, config in ((Mute(), EvaluationConfig()), (Stub(ANSWERS), EvaluationConfig(ranking=False))):
        result = evaluate_system(system, "en", MESSAGES, REFERENCES, RESPONSES, 1, config)
        assert result.ranking is None
        assert list(result.signatures) == ["mrs_rouge"]
        figures = summary([result], 0)
        assert not {key for key in figures if "mrr" in key or key in ("p@1", "in_set")}
        assert difference([result], [result], 0) == {"weighted": None}


# --- languages and BLEU


LANGUAGES = {"see you later": ("en", 0.9), "bis morgen": ("de", 0.99), "hasta luego": ("es", 0.6)}  # the last: unsure


class Identifier:
    """Knows three sentences."""

    name = "lid.ftz@12345678"

    def identify(self, texts: Sequence[str]) -> list[tuple[str, float]]:
        return [LANGUAGES[text] for text in texts]


TRAVELLERS = {
    "hi": ["see you later", "bis morgen", "yes"],  # the last one is too short to tell
    "bye": ["hasta luego", "see you later", "bis morgen"],
}


def test_suggestions_in_a_wrong_language() -> None:
    config = EvaluationConfig(False, Identifier())  # type: ignore[arg-type]
    result = evaluate_system(Stub(TRAVELLERS), "en", ["hi", "bye", "hi"], ["a", "b", "c"], [], 1, config)
    assert result.languages == (2, 4)  # each message counts once, however often it comes
    assert summary([result], 0)["wrong_language"] == 1 / 2
    assert "lang:en" in result.signatures["wrong_language"]
    assert "identifier:lid.ftz@12345678|" in result.signatures["wrong_language"]
    assert result.first_languages == (0, 1), "nobody is sure of `hasta luego`"
    assert summary([result], 0)["wrong_language_first"] == 0
    german = evaluate_system(Stub(TRAVELLERS), "de", ["hi"], ["a"], [], 1, config)
    assert summary([german], 0)["wrong_language"] == 1 / 2
    assert summary([result, german], 0)["wrong_language"] == (2 + 1) / (4 + 2)
    nobody = evaluate_system(Stub({"hi": ["yes"]}), "en", ["hi"], ["a"], [], 1, config)
    assert summary([nobody], 0)["wrong_language"] is None
    unasked = replace(result, languages=None, first_languages=None)
    assert "wrong_language" not in summary([result, unasked], 0)


def test_how_alike_the_suggestions_are_is_averaged_over_examples() -> None:
    """`hi` comes twice: its three replies share nothing; of `bye` one pair shares nothing, two share a word of two."""
    found = evaluate_system(
        Stub(ANSWERS), "en", MESSAGES, REFERENCES, RESPONSES, 1, EvaluationConfig(ranking=False, similarity=True)
    )
    pair = 2 / 3 / 6  # F1 of one word and two, one in common, on the scale of weighted ROUGE
    assert found.similarity is not None
    assert found.similarity == pytest.approx([0, 2 * pair / 3, 0, 0])
    assert summary([found], 1)["self_rouge"] == pytest.approx(2 * pair / 3 / 4)
    assert found.signatures["self_rouge"].startswith("self_rouge|")
    alone = Stub({message: ["yes"] for message in MESSAGES})
    config = EvaluationConfig(ranking=False, similarity=True)
    single = evaluate_system(alone, "en", MESSAGES, REFERENCES, RESPONSES, 1, config)
    assert summary([single], 1)["self_rouge"] is None, "one suggestion is like no other"


def test_a_missing_tokenizer_of_bleu_does_not_end_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found missing after hours of training."""
    bleu = pytest.importorskip("mrs_metrics.bleu")

    def refuse(*_: object) -> None:
        raise ImportError("What the tokenizer 'ja-mecab' of BLEU needs is not installed")

    monkeypatch.setattr(bleu, "_metric", refuse)
    result = evaluate_system(
        Stub(ANSWERS), "en", MESSAGES, REFERENCES, RESPONSES, 1, EvaluationConfig(False, bleu=True)
    )
    assert result.bleu is None
    assert list(result.signatures) == ["mrs_rouge"]
    assert "bleu" not in summary([result], 0)


def test_a_language_model_that_was_asked_for_must_be_there() -> None:
    with pytest.raises(InputError, match=r"^nowhere\.bin: no such file; .*`mrs install --language-model`"):
        EvaluationConfig.available(False, "nowhere.bin")


# --- comparisons


def test_difference_is_paired_and_signed(result: SystemResult) -> None:
    assert difference([result], [result], seed=0) == {"weighted": None, "mrr": None}
    unrelated = Stub({message: ["unrelated"] for message in ANSWERS})
    worse = evaluate_system(unrelated, "en", MESSAGES, REFERENCES, RESPONSES, seed=1)
    ahead, behind = difference([result] * 3, [worse] * 3, seed=0), difference([worse] * 3, [result] * 3, seed=0)
    assert ahead["weighted"][0] > 0
    assert behind["weighted"] == pytest.approx([-value for value in reversed(ahead["weighted"])], abs=0.1)
    assert behind["weighted"][1] < 0
    assert ahead["mrr"] is None
