"""What the project itself computes from what a harness logged."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from mrs_metrics.translations_f1 import aggregate, score_translations
from mrs_suggest.evaluation.choice.analysis import accuracy
from mrs_suggest.evaluation.choice.answers import Answers
from mrs_suggest.evaluation.scores.systems import score_file
from mrs_suggest.integrations.samples import logged_records, write_suggestions


def require_ours(tasks: Iterable[str], samples_of: Callable[[str], Path], logged: Callable[[str, str], float]) -> None:
    """Compare all figures of the harness with ours, which must tell something.

    Args:
        tasks: their names end with the language, after `_` or `:`.
        samples_of: what the harness logged of a task.
        logged: task and name -> the harness's figure.
    """
    found: dict[tuple[str, str], float] = {}
    for task in tasks:
        ours = our_figure(samples_of(task), re.split("[_:]", task)[-1])
        assert {name: logged(task, name) for name in ours} == ours, task
        found |= {(re.sub(r"[_:]\w\w$", "", task), name): value for name, value in ours.items()}
    assert 0 < found["mrs", "weighted_rouge"] < 1
    assert 0 < found["mrs_samples", "weighted_rouge"] < 1
    assert 0 < found["mrs_staple", "weighted_f1"] < 1
    assert 0 < found["mrs_xcopa", "accuracy"] < 1


def our_figure(samples: Path, language: str) -> dict[str, float]:
    """The main figures of one task's samples: those of `mrs score`, our weighted F1, or our accuracy."""
    records: list[dict[str, Any]] = logged_records(samples)
    if "suggestions" in records[0]:
        predictions = samples.parent / f"predictions.{language}.tsv"
        write_suggestions(samples, predictions)
        figures = score_file(predictions, language)
        return {"weighted_rouge": figures["weighted"], "dist1": figures["dist1"], "dist2": figures["dist2"]}
    if "translations" in records[0]:
        scores = score_translations(records, {row["id"]: row["predicted"] for row in records})  # type: ignore[arg-type]
        return {"weighted_f1": aggregate(scores)["weighted_macro_f1"]}
    index, gold = (np.array([row[name] for row in records]) for name in ("index", "gold"))
    return {
        name: accuracy(Answers(index, gold, np.array([row[name] for row in records]), None, 2)).value
        for name in ("accuracy", "accuracy_bytes")
    }
