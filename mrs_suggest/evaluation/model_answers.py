"""A model that answers the messages of prediction files, as one more system to score or compare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import (
    SUGGESTIONS,
    Prediction,
    predictions_name,
    read_predictions,
    write_predictions,
)
from mrs_suggest.evaluation.comparison import POOLED
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.results import EvaluationConfig, SystemResult, evaluate_system, milliseconds, summary
from mrs_suggest.evaluation.runs.figures import LANGUAGE_MODEL, Run
from mrs_suggest.evaluation.runs.grouping import has_predictions
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.suggester import Suggester


class _Answering:
    """A suggester as a system: every message counts, so one without suggestions gets an empty text."""

    name = MODEL

    def __init__(self, suggester: Suggester) -> None:
        self._suggester = suggester

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        answers = self._suggester.suggest(messages, language, k)
        return [list(answer) or [Suggestion("", 0.0)] for answer in answers]


def answer_predictions(
    suggester: Suggester, language: str, source: Path, out: Path, nbest: int = SUGGESTIONS
) -> SystemResult:
    """Answer the messages of a prediction file, and write another one with the suggestions.

    Args:
        nbest: suggestions in a line of either file at most.

    Raises:
        InputError: the file is missing or damaged, or the model does not answer.
    """
    rows = read_predictions(source, nbest)
    messages, references = [row.message for row in rows], [row.reference for row in rows]
    config = EvaluationConfig(ranking=False)
    found = evaluate_system(_Answering(suggester), language, messages, references, [], EVALUATION_SEED, config)
    answered = zip(messages, references, found.suggestions, strict=True)
    write_predictions(out, (Prediction(message, reply, tuple(three[:nbest])) for message, reply, three in answered))
    return found


def answer_facts(suggester: Suggester, results: Sequence[SystemResult]) -> dict[str, Any]:
    """`milliseconds` for a message, and a service's usage and signature."""
    signature = {"model_signature": suggester.model.signature} if suggester.model.signature else {}
    return {"milliseconds": round(milliseconds(results), 3), **suggester.model.usage(), **signature}


def answering_run(name: str, runs: Sequence[Run], folder: Path) -> Run:
    """A model that answers the test messages of the first run with predictions, the guard off, as a run to compare.

    Args:
        folder: where its predictions are written.

    Raises:
        InputError: no run has predictions in a language of the model, or the model does not answer.
    """
    suggester = Suggester.from_pretrained(name, guard=False)
    first = next((run for run in runs if any(has_predictions(run, scope) for scope in run.scopes)), None)
    scopes = [scope for scope in first.scopes if has_predictions(first, scope)] if first else []
    codes = [code for _, code in scopes if code in suggester.languages]
    if first is None or first.folder is None or not codes:
        raise InputError(
            f"{name}: answers the test messages of a run, and none of the others is a folder with "
            f"{predictions_name('LANG')} in a language of the model; name one."
        )
    folder.mkdir()
    results = {
        code: answer_predictions(
            suggester, code, first.folder / predictions_name(code), folder / predictions_name(code)
        )
        for code in codes
    }
    parts = {POOLED: list(results.values()), **{code: [result] for code, result in results.items()}}
    figures = {scope: summary(part, EVALUATION_SEED) for scope, part in parts.items()}
    facts = answer_facts(suggester, parts[POOLED])
    record = {
        "trainer": LANGUAGE_MODEL,
        "arguments": {"model": name, "signature": suggester.model.signature},
        "data": first.record.get("data", {}),
        "metrics": {
            "systems": {MODEL: figures},
            "signatures": {code: result.signatures for code, result in results.items()},
        },
        "milliseconds": {MODEL: facts["milliseconds"]},
        "answered": facts,
    }
    return Run(name, folder, record)
