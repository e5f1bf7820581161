"""A run's figures are those of `mrs score --metric xglue_score` on the files that it writes."""

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.readers.xglue_files import predictions_path, references_path
from mrs_metrics.xglue import aggregate, average_scores
from mrs_suggest.evaluation.scores.score_xglue import score_folder
from mrs_suggest.models.retrieval.tiny import build_tiny
from mrs_suggest.models.understanding.text_rows import ANSWER, PAGE, TAGS
from mrs_suggest.models.understanding.understanding_start import build_understanding
from mrs_suggest.training.understanding.data import Part, Parts, load_understanding_data
from mrs_suggest.training.understanding.figures import (
    Predictions,
    figures_of,
    predictions_of,
    rows_of,
    validation_figures,
    write_predictions,
)
from mrs_suggest.training.understanding.options import UnderstandingArguments
from mrs_suggest.training.understanding.tasks import UNDERSTANDING_TASKS


def load(folder: Path, tasks: Iterable[str], languages: str = "all", limit: int = 40) -> Parts:
    options = UnderstandingArguments(
        data=str(folder), mode="multitask", tasks=list(tasks), languages=[languages],
        max_test_examples=limit, max_train_examples=1, max_validation_examples=1,
    )  # fmt: skip
    return load_understanding_data(options, 1).test


def guessed(part: Part, draw: random.Random) -> list[Any]:
    """Predictions of which some are right, in the shapes that the task has."""
    labels, gold = part.task.task.labels, part.gold
    assert gold is not None
    found: list[Any] = []
    for number, right in enumerate(gold):
        wrong = draw.random() < 0.4
        if part.task.kind == TAGS:
            found.append([draw.choice(labels) if draw.random() < 0.3 else tag for tag in right])
        elif part.task.kind == ANSWER:
            context = part.columns["context"][number]
            found.append(draw.choice([context[:9].strip(), ""]) if wrong else right[0]["text"])
        elif part.task.kind == PAGE:
            found.append(round(draw.uniform(0, 4) if wrong else float(right), 6))
        else:
            found.append(draw.choice(labels) if wrong else right)
    return found


def write_gold(folder: Path, part: Part) -> None:
    """The right answers in the layout of the released data."""
    path = references_path(folder, part.task.name, part.language)
    path.parent.mkdir(parents=True, exist_ok=True)
    gold = part.gold or []
    if part.task.kind == TAGS:
        lines = ["".join(f"w {tag}\n" for tag in tags) for tags in gold]
        path.write_text("\n".join(lines), encoding="utf-8")
    elif part.task.kind == ANSWER:
        questions = [{"id": name, "answers": found} for name, found in zip(part.columns["id"], gold, strict=True)]
        path.write_text(json.dumps({"data": [{"paragraphs": [{"qas": questions}]}]}), encoding="utf-8")
    else:
        first = part.columns[part.task.first[0]]
        rows = [f"{text}\t{label}\n" for text, label in zip(first, gold, strict=True)]
        header = "sentence1\tlabel\n" if part.task.name == "PAWSX" else ""
        path.write_text(header + "".join(rows), encoding="utf-8")


def test_the_files_of_predictions_give_the_same_figures(tasks_folder: Path, tmp_path: Path) -> None:
    parts, draw = load(tasks_folder, UNDERSTANDING_TASKS), random.Random(3)
    predictions: Predictions = {}
    for name, of in parts.items():
        for code, part in of.items():
            predictions.setdefault(name, {})[code] = guessed(part, draw)
            path = predictions_path(tmp_path / "own", name, code)
            path.parent.mkdir(parents=True, exist_ok=True)
            write_predictions(path, part, predictions[name][code])
            write_gold(tmp_path / "gold", part)
    found = figures_of(predictions, parts)
    for name, of in parts.items():
        scores = (
            score_folder(tmp_path / "own", tmp_path / "gold", [name], [*of])[name]
            if len(of) == 1
            else {code: score_folder(tmp_path / "own", tmp_path / "gold", [name], [code])[name][code] for code in of}
        )
        for code, one in scores.items():
            assert found["tasks"][name][code]["score"] == aggregate(one)["score"], (name, code)
            assert found["tasks"][name][code]["signature"] == one.signature
            assert 0.2 < aggregate(one)["score"] < 1
    by_language = {name: {code: one["score"] for code, one in of.items()} for name, of in found["tasks"].items()}
    assert found["averages"] == average_scores(by_language)
    means = found["averages"]["tasks"].values()
    assert validation_figures(predictions, parts)["score"] == pytest.approx(sum(means) / len(means))


def test_hidden_answers_have_predictions_and_no_figures(tasks_folder: Path, tmp_path: Path) -> None:
    part = load(tasks_folder, ["xnli"], "de")["XNLI"]["de"]
    hidden = Part(part.task, "de", {name: values for name, values in part.columns.items() if name != "label"})
    found = figures_of({"XNLI": {"de": ["neutral"] * len(part)}}, {"XNLI": {"de": hidden}})
    assert found == {"tasks": {}, "averages": {}, "hidden": {"XNLI": ["de"]}}
    (tmp_path / "x").mkdir()
    write_predictions(tmp_path / "x" / "de.prediction", hidden, ["neutral"] * len(part))
    assert (tmp_path / "x" / "de.prediction").read_text(encoding="utf-8") == "neutral\n" * len(part)


@pytest.mark.parametrize("task", UNDERSTANDING_TASKS)
def test_perfect_scores_become_perfect_predictions(tasks_folder: Path, tmp_path: Path, task: str) -> None:
    """Labels to rows and back, in rows so short that texts and sentences take several windows."""
    part = load(tasks_folder, [task], "de", 12)[task]["de"]
    build_tiny(part.texts(), tmp_path / "tiny", 1, 400)
    head = UNDERSTANDING_TASKS[task].head
    parts = build_understanding(str(tmp_path / "tiny"), heads={task: head}, max_tokens=24 if task != "MLQA" else 48)
    rows = rows_of(part, parts, 8)
    perfect = predictions_of(part, head, rows, [_right(row, part.task.kind, len(head.labels)) for row in rows])
    found = figures_of({task: {"de": perfect}}, {task: {"de": part}})["tasks"][task]["de"]
    assert found["score"] == 1
    if part.task.kind in (TAGS, ANSWER) and task != "NER":
        assert len(rows) >= len(part)


def _right(row: Any, kind: str, labels: int) -> Any:
    """What a model that knows all would say of a row."""
    import numpy as np

    from mrs_suggest.models.understanding.text_rows import Said

    if kind == TAGS:
        return Said(0.0, 0, np.eye(labels)[row.labels[row.read[:, 1]]])
    if kind == ANSWER:
        scores = np.zeros((2, len(row)))
        if row.labels[1]:
            scores[[0, 1], row.labels] = 9
        return Said(0.0, 0, scores)
    return Said(0.0, 0, 50.0 * np.eye(labels)[row.labels])
