"""A model next to the baselines: rows, scopes, signatures, and figures that are the same in every run."""

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation import comparison
from mrs_suggest.evaluation.comparison import (
    MODEL,
    POOLED,
    Comparison,
    ValidationLog,
    baselines,
    compare_on_test,
    grouped_signatures,
)
from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet, load_language
from mrs_suggest.evaluation.results import POOL_SIZE, EvaluationConfig
from mrs_suggest.suggest.answering import Suggestion, System, reply_texts

BASELINES = ["Random", "Most frequent", "TF-IDF"]


class Oracle:
    """Knows the reply to every message of the tests, and ranks it first."""

    def __init__(self, answers: dict[str, str], name: str = MODEL) -> None:
        self.name = name
        self._answers = answers

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        assert k == SUGGESTIONS
        return [[Suggestion(self._answers[message], 0.0), Suggestion("x", 0.0)] for message in messages]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        wanted = [self._answers[message] for message in messages]
        return np.array([[candidates[n] == reply for n in pool] for reply, pool in zip(wanted, pools, strict=True)])


def oracle(part: LanguageData, name: str = MODEL) -> System:
    rows = [*part.validation, *part.test]
    return Oracle({row["message"]: row["reply"] for row in rows}, name)


@pytest.fixture(scope="module")
def parts(prepared: PreparedData) -> list[LanguageData]:
    return [load_language(prepared, code, {}, 0) for code in ("en", "ja")]


@pytest.fixture(scope="module")
def compared(parts: list[LanguageData]) -> Comparison:
    return compare_on_test([oracle], parts, 3, EvaluationConfig())


def test_every_system_in_every_scope(compared: Comparison, parts: list[LanguageData]) -> None:
    figures = compared.figures
    assert list(figures["systems"]) == [MODEL, *BASELINES]
    assert list(figures["differences"]) == BASELINES
    sizes = {part.language: len(part.test) for part in parts}
    for scopes in figures["systems"].values():
        assert {scope: row["n"] for scope, row in scopes.items()} == {POOLED: sum(sizes.values()), **sizes}
    for scopes in figures["differences"].values():
        assert list(scopes) == [POOLED, "en", "ja"]
    for row in compared.figures["systems"][MODEL].values():
        assert row["weighted"] == pytest.approx(row["ceiling"])
        assert row["mrr"] == row["p@1"] == row["macro_mrr"] == row["mrr_in_set"] == 1
        assert row["in_set"] == 1
    for name, scopes in compared.figures["differences"].items():
        assert scopes[POOLED]["mrr"][0] > 0, name
        assert scopes[POOLED]["weighted"][0] >= 0, f"{name}: 15 examples, some of which it answers as well"


def test_figures_are_the_same_in_two_runs(compared: Comparison, parts: list[LanguageData]) -> None:
    again = compare_on_test([oracle], parts, 3, EvaluationConfig())
    assert json.dumps(again.figures) == json.dumps(compared.figures)
    assert again.suggestions == compared.suggestions
    other = compare_on_test([oracle], parts, 4, EvaluationConfig())
    assert other.figures != compared.figures


def test_the_hash_of_the_pools_tells_them_apart(compared: Comparison) -> None:
    def pools(seed: int, replies: list[str], responses: list[str]) -> str:
        pairs = Dataset.from_dict({"message": replies, "reply": replies})
        part = LanguageData("es", pairs, pairs, pairs, ResponseSet(responses, responses, [None] * len(responses)))
        return compare_on_test([oracle], [part], seed, EvaluationConfig()).figures["pools"]["es"]

    assert list(compared.figures["pools"]) == ["en", "ja"]
    assert len({pools(1, ["a", "b"], ["c"]), pools(1, ["a", "b"], ["d"]), pools(1, ["a", "e"], ["c"])}) == 3
    assert pools(1, ["a", "b"], ["c"]) == pools(1, ["a", "b"], ["c"])
    words = [f"reply {n}" for n in range(2 * POOL_SIZE)]
    assert pools(1, words, ["c"]) == pools(1, words, ["d"]), "enough references: the response set fills nothing"
    assert pools(1, words, ["c"]) != pools(2, words, ["c"])


def test_further_systems_stand_behind_the_model(parts: list[LanguageData]) -> None:
    found = compare_on_test(
        [oracle, lambda part: oracle(part, "Other")], parts, 3, EvaluationConfig(ranking=False)
    ).figures
    assert list(found["systems"]) == [MODEL, "Other", *BASELINES]
    assert found["differences"]["Other"][POOLED] == {"weighted": None}, "no difference differs from the others"
    assert "pool_size" not in found
    assert not [key for key in found["systems"][MODEL][POOLED] if "mrr" in key]


# --- signatures


def test_signatures_that_differ_in_the_language_alone_are_joined() -> None:
    figures = {
        "signatures": {
            "en": {"mrs_rouge": "mrs_rouge|tok:a|lang:en|version:1", "r": "r|lang:en|version:1"},
            "ja": {"mrs_rouge": "mrs_rouge|tok:b|lang:ja|version:1", "r": "r|lang:ja|version:1"},
            "es": {"mrs_rouge": "mrs_rouge|tok:a|lang:es|version:1", "r": "r|lang:es|version:1"},
        }
    }
    assert grouped_signatures(figures) == [
        "mrs_rouge|tok:a|lang:en,es|version:1",
        "mrs_rouge|tok:b|lang:ja|version:1",
        "r|lang:en,ja,es|version:1",
    ]


# --- baselines and validation


def test_baselines_know_the_language_and_not_what_the_model_was_trained_on(parts: list[LanguageData]) -> None:
    part = parts[0]
    random, frequent, nearest = baselines(part, 0)
    assert [random.name, frequent.name, nearest.name] == BASELINES
    assert set(reply_texts(random.suggest(["m"] * 50, "en", 3))[0]) <= set(part.responses.replies)
    counts = {reply: part.train["reply"][:].count(reply) for reply in part.responses.replies}
    (top,) = frequent.suggest(["m"], "en", 3)
    assert [counts[suggestion.reply] for suggestion in top] == sorted(counts.values(), reverse=True)[:3]
    for row in list(part.train)[:5]:
        assert reply_texts(nearest.suggest([row["message"]], "en", 1)) == [[row["reply"]]]


def test_baselines_are_evaluated_once_on_validation(parts: list[LanguageData], monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    def counted(part: LanguageData, seed: int) -> Any:
        made.append(part.language)
        return baselines(part, seed)

    monkeypatch.setattr(comparison, "baselines", counted)
    log = ValidationLog(parts, 3, ranking=True)
    first, lines = log.evaluate(oracle)
    second, again = log.evaluate(oracle)
    assert made == ["en", "ja"]
    assert (first, lines) == (second, again)
    assert first["n"] == sum(len(part.validation) for part in parts), "validation, not test"
    assert first["mrr"] == 1
    assert [re.sub(r" ROUGE.*", "", line) for line in lines] == [MODEL, *BASELINES]
    assert lines[0] == f"Model ROUGE {first['weighted']:.4f} MRR 1.000"
    unranked, lines = ValidationLog(parts, 3, ranking=False).evaluate(oracle)
    assert "mrr" not in unranked
    assert "MRR" not in "".join(lines)
