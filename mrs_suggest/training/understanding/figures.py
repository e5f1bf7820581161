"""Examples to rows of token ids, a model's outputs to predictions, and these to figures and files of a submission."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrs_metrics.xglue import XglueScores, aggregate, average_scores, score_interval, score_task
from mrs_metrics.xglue_tasks import NO_TAG
from mrs_suggest.common.errors import metric_errors
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.understanding import text_rows
from mrs_suggest.models.understanding.understanding_start import Head, UnderstandingParts
from mrs_suggest.suggest.ranking.choice import softmax
from mrs_suggest.training.understanding.data import Part, Parts

Predictions = dict[str, dict[str, list[Any]]]  # task -> language -> of each example
DIGITS = 6  # of a page's predicted relevance, in files and figures


def rows_of(part: Part, parts: UnderstandingParts, overlap: int) -> list[text_rows.Row]:
    """The rows that the model reads of a split, with the right answers where they are known."""
    task, head, gold = part.task, parts.heads[part.task.name], part.gold
    numbers = {label: number for number, label in enumerate(head.labels)}
    if task.kind == text_rows.TAGS:
        words = part.columns[task.first[0]]
        known = gold if gold is not None else [[None] * len(one) for one in words]
        # UD's mark of a token of several words is not learned.
        tags = [[numbers[tag] if tag is not None and tag != NO_TAG else IGNORED for tag in one] for one in known]
        return text_rows.tag_rows(parts.tokenizer, words, tags, parts.max_tokens, overlap)
    if task.kind == text_rows.ANSWER:
        return text_rows.span_rows(parts.tokenizer, asked_of(part), parts.max_tokens, overlap)
    pairs = [(part.text(number, task.first), part.text(number, task.second)) for number in range(len(part))]
    labels = [numbers[label] for label in gold] if gold is not None else [None] * len(part)
    return text_rows.pair_rows(parts.tokenizer, pairs, labels, parts.max_tokens)


def asked_of(part: Part) -> list[text_rows.Asked]:
    """Questions with the first of their right answers."""
    found = []
    for number in range(len(part)):
        question, text = part.text(number, part.task.first), part.columns["context"][number]
        own = (part.gold[number] or [None])[0] if part.gold is not None else None
        span = (own["start"], own["start"] + len(own["text"])) if own else None
        found.append(text_rows.Asked(question, text, span))
    return found


def predictions_of(part: Part, head: Head, rows: Sequence[text_rows.Row], said: Sequence[text_rows.Said]) -> list[Any]:
    """As the scorer takes them: tags, a label, an answer, or of a page the mean of its grades, by their probability."""
    if part.task.kind == text_rows.TAGS:
        return text_rows.read_tags(rows, said, part.columns[part.task.first[0]], head.labels, part.task.rest)
    if part.task.kind == text_rows.ANSWER:
        return text_rows.read_answers(rows, said, asked_of(part))
    if part.task.kind == text_rows.PAGE:
        grades = np.asarray([float(label) for label in head.labels])
        return [round(float(softmax(one.scores, 1.0) @ grades), DIGITS) for one in said]
    return [head.labels[int(one.scores.argmax())] for one in said]


def scored(part: Part, predictions: Sequence[Any]) -> XglueScores:
    """The scores of a split whose answers are known; InputError if there is nothing to score, as in lone pages."""
    assert part.gold is not None
    gold: list[Any] = part.gold
    if part.task.kind == text_rows.ANSWER:
        gold = [[answer["text"] for answer in answers] for answers in gold]
    queries = part.columns[part.task.query] if part.task.query else None
    with metric_errors(part.name):
        return score_task(part.task.name, predictions, gold, part.language, queries)


def figures_of(predictions: Predictions, parts: Parts) -> Record:
    """The figures of the test splits.

    Returns:
        `tasks`: task -> language -> `score`, `interval` (95 %, bootstrap over examples, of the score), `n`, the figures
        that the scorer gives, `notes` and `signature`; `averages` as `average_scores` gives them; `hidden`: task ->
        languages whose answers the publisher hides, which have predictions alone.
    """
    tasks: Record = {}
    hidden: dict[str, list[str]] = {}
    for name, of in parts.items():
        for code, part in of.items():
            if part.gold is None:
                hidden.setdefault(name, []).append(code)
                continue
            scores = scored(part, predictions[name][code])
            tasks.setdefault(name, {})[code] = {
                **aggregate(scores),
                "interval": score_interval(scores).ends,
                "notes": scores.notes,
                "signature": scores.signature,
            }
    by_language = {name: {code: one["score"] for code, one in of.items()} for name, of in tasks.items()}
    return {"tasks": tasks, "averages": average_scores(by_language) if tasks else {}, "hidden": hidden}


def validation_figures(predictions: Predictions, parts: Parts) -> dict[str, float]:
    """`score`, the mean over tasks of the mean over their languages, and `score_TASK-LANG` of each."""
    found: dict[str, float] = {}
    means = []
    for name, of in parts.items():
        own = [aggregate(scored(part, predictions[name][code]))["score"] for code, part in of.items()]
        found |= {f"score_{part.name}": score for part, score in zip(of.values(), own, strict=True)}
        means.append(sum(own) / len(own))
    return {"score": sum(means) / len(means), **found}


def write_predictions(path: Path, part: Part, predictions: Sequence[Any]) -> None:
    """A file of a submission; see `mrs_datasets.readers.xglue_files`."""
    if part.task.kind == text_rows.ANSWER:
        answers: Mapping[str, Any] = dict(zip(part.columns["id"], predictions, strict=True))
        atomic_write(path, json.dumps(answers, ensure_ascii=False, indent=1) + "\n")
    elif part.task.kind == text_rows.TAGS:
        atomic_write(path, "\n".join("".join(f"{tag}\n" for tag in tags) for tags in predictions))
    else:
        texts = [f"{one:.6f}" if part.task.kind == text_rows.PAGE else one for one in predictions]
        atomic_write(path, "".join(f"{text}\n" for text in texts))
