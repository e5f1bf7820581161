"""The score of each test example, from the files of a run: weighted ROUGE of suggestions, accuracy of choices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.evaluation.choice.answers import Views, read_run_answers
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.evaluation.pairing import scored_run
from mrs_suggest.models.starting_points import MULTIPLE_CHOICE
from mrs_suggest.reproduce.table import Place
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.training.export.card import Record

Scores = NDArray[np.float64]
WEIGHTED, ACCURACY = "weighted", "accuracy"  # the figures that are means over examples


class UnpairedError(Exception):
    """Why two rows have no scores of the same examples."""


@dataclass
class RunScores:
    """Reads each file of a run once."""

    _answers: dict[Path, Views] = field(default_factory=dict)

    def answers(self, run: Path, record: Record) -> Views:
        """Those of a multiple-choice run."""
        if run not in self._answers:
            self._answers[run] = read_run_answers(run, record)
        return self._answers[run]

    def languages(self, record: Record, place: Place, metric: str) -> list[str]:
        """The languages of a place's scope.

        Raises:
            UnpairedError: the run has no scores of that figure's examples.
        """
        metric = place.metric or metric
        if record["trainer"] == MULTIPLE_CHOICE and metric == ACCURACY:
            every = [code for code in record["metrics"]["systems"][place.system] if code in place.scope.split()]
        elif "signatures" not in record["metrics"] or metric != WEIGHTED:
            raise UnpairedError("the runs store no scores of examples for it")
        elif place.system != MODEL:
            raise UnpairedError(f"the runs store only the suggestions of their own {MODEL!r}")
        else:
            every = list(record["metrics"]["signatures"])
        return every if place.scope == POOLED else [code for code in place.scope.split() if code in every]

    def of(self, run: Path, record: Record, place: Place, metric: str, language: str) -> tuple[Hashable, Scores]:
        """What identifies the examples of a language, and their (n,) scores."""
        if (place.metric or metric) == ACCURACY:
            answers = self.answers(run, record)[place.system][language]
            return tuple(zip(answers.idx.tolist(), answers.gold.tolist(), strict=True)), answers.correct.astype(float)
        scored = scored_run(run, language)
        return scored.examples, scored.weighted
