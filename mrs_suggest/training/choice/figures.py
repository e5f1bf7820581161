"""Figures of multiple-choice answers: accuracy with its interval, split by `changed`, and the files of predictions."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_softmax

from mrs_metrics.accuracy import wilson_interval
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.choice.card import MACRO
from mrs_suggest.training.choice.data import Part

Scores = dict[str, list[list[float]]]  # config -> of each question, those of its choices


def predicted(scores: Sequence[Sequence[float]]) -> list[int]:
    """The choice with the highest score; of equal ones, the first."""
    return [int(np.argmax(row)) for row in scores]


def right_answers(scores: Sequence[Sequence[float]], labels: Sequence[int]) -> list[bool]:
    """Whether the highest score is that of the right choice."""
    return [choice == label for choice, label in zip(predicted(scores), labels, strict=True)]


def cross_entropy(scores: Sequence[Sequence[float]], labels: Sequence[int]) -> list[float]:
    """The loss of each question in nats: -log of the right choice's share of the softmax."""
    return [float(-log_softmax(row)[label]) for row, label in zip(scores, labels, strict=True)]


def counted(right: Sequence[bool]) -> Record:
    """Accuracy, its 95 % Wilson interval, and the counts behind it.

    >>> counted([True, True, True, False])["accuracy"]
    0.75
    """
    return {
        "accuracy": sum(right) / len(right),
        "interval": list(wilson_interval(sum(right), len(right))),
        "correct": sum(right),
        "n": len(right),
    }


def figures_of(scores: Scores, parts: Mapping[str, Part]) -> Record:
    """The figures of one view.

    Returns:
        config -> `counted`, with `changed` and `unchanged` where the data say which labels were, and `macro`, the mean
        of the configs' accuracies.
    """
    found: Record = {}
    for config, part in parts.items():
        right = right_answers(scores[config], part.rows["label"][:])
        found[config] = counted(right)
        if "changed" in part.rows.column_names:
            changed = part.rows["changed"][:]
            for name, wanted in (("changed", True), ("unchanged", False)):
                chosen = [one for one, flag in zip(right, changed, strict=True) if bool(flag) is wanted]
                if chosen:
                    found[config][name] = counted(chosen)
    found[MACRO] = {
        "accuracy": sum(found[config]["accuracy"] for config in parts) / len(parts),
        "languages": len(parts),
    }
    return found


def write_answers(path: Path, part: Part, scores: Sequence[Sequence[float]]) -> None:
    """A table: a header, then for each question its idx, gold, predicted, changed (where known), and the scores."""
    choices = len(scores[0])
    columns: dict[str, Sequence[Any]] = {
        "idx": part.rows["idx"][:], "gold": part.rows["label"][:], "predicted": predicted(scores)
    }  # fmt: skip
    if "changed" in part.rows.column_names:
        columns["changed"] = [int(bool(flag)) for flag in part.rows["changed"][:]]
    columns |= {f"score{number + 1}": [f"{row[number]:.6g}" for row in scores] for number in range(choices)}
    lines = ["\t".join(columns), *("\t".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    atomic_write(path, "\n".join(lines) + "\n")
