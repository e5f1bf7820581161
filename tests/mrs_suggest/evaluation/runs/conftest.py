"""Folders of finished runs, made by the real evaluation of a stub that knows some of the answers."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset

from mrs_suggest.common.text.predictions import Prediction, predictions_name, write_predictions
from mrs_suggest.evaluation.comparison import compare_on_test
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData, ResponseSet, examples_hash
from mrs_suggest.evaluation.results import EvaluationConfig
from mrs_suggest.suggest.answering import MODEL, Suggestion

N = 24
WORDS = {
    "en": "the cat sat on my warm red hat today",
    "es": "el gato come pan en mi casa roja hoy",
    "fr": "le chat dort",
}
MakeRun = Callable[..., Path]


def part_of(language: str, rows: str = "") -> LanguageData:
    """N test examples; other `rows` are other examples."""
    words = WORDS[language].split()
    replies = [f"{words[n % len(words)]} {words[(n * 5 + 1) % len(words)]} {n} {rows}".strip() for n in range(N)]
    pairs = Dataset.from_dict({"message": [f"message {n} {rows}" for n in range(N)], "reply": replies})
    return LanguageData(language, pairs, pairs, pairs, ResponseSet(replies, replies, [None] * N))


class Stub:
    """Knows the answers of the messages that a seed draws."""

    name = MODEL

    def __init__(self, part: LanguageData, known: float, seed: int) -> None:
        self.right = dict(zip(part.test["message"][:], part.test["reply"][:], strict=True))
        drawn = np.random.default_rng(seed).random(N) < known
        self.known = dict(zip(self.right, drawn, strict=True))

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        texts = [self.right[text] if self.known[text] else "no idea" for text in messages]
        return [[Suggestion(text, 1.0), Suggestion("yes", 0.5)] for text in texts]


class RankingStub(Stub):
    """Ranks the right reply first where it knows it."""

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        rows = zip(messages, pools, strict=True)
        return np.array([[candidates[n] == self.right[text] and self.known[text] for n in row] for text, row in rows])


def write_record(folder: Path, record: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


@pytest.fixture
def make_run(tmp_path: Path) -> MakeRun:
    """Return a function that writes a run's folder below a temporary one and returns it."""

    def make(
        name: str, languages: str = "en es", known: float = 0.5, seed: int = 42, trainer: str = "retrieval",
        rows: str = "", pool_seed: int = EVALUATION_SEED, **arguments: Any,
    ) -> Path:  # fmt: skip
        parts = [part_of(code, rows) for code in languages.split()]
        stub = RankingStub if trainer == "retrieval" else Stub
        found = compare_on_test(
            [lambda part: stub(part, known, seed)], parts, pool_seed, EvaluationConfig(trainer == "retrieval")
        )
        folder = tmp_path / name
        folder.mkdir(parents=True)
        tested = {part.language: part.test for part in parts}
        for part in parts:
            texts = zip(part.test["message"][:], part.test["reply"][:], found.suggestions[part.language], strict=True)
            write_predictions(folder / predictions_name(part.language), [Prediction(m, r, (*s,)) for m, r, s in texts])
        record = {
            "trainer": trainer,
            "seed": seed,
            "commit": "abc",
            "arguments": {"seed": seed, "output_dir": name, "languages": languages.split(), **arguments},
            "data": {"id": "data", "content_hash": f"{languages}{rows}", "test_hash": examples_hash(tested)},
            "plan": {"setting": "monolingual", "test": languages.split()},
            "milliseconds": found.milliseconds,
            "metrics": found.figures,
        }
        write_record(folder, record)
        return folder

    return make
