"""Examples to rows of token ids, and what a model says of them to predictions, by the kind of the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.understanding.span_rows import Asked, read_answers, span_rows
from mrs_suggest.models.understanding.tag_rows import read_tags, tag_rows
from mrs_suggest.models.understanding.text_rows import ANSWER, PAGE, TAGS, Row, Said, pair_rows
from mrs_suggest.models.understanding.understanding_start import Head, UnderstandingParts
from mrs_suggest.suggest.ranking.choice import softmax
from mrs_suggest.training.understanding.data import Part, labelled

DIGITS = 6  # of a page's predicted relevance, in files and figures


def rows_of(part: Part, parts: UnderstandingParts, overlap: int) -> list[Row]:
    """The rows that the model reads of a split, with the right answers where they are known."""
    task, head, gold = part.task, parts.heads[part.task.name], part.gold
    numbers = {label: number for number, label in enumerate(head.labels)}
    if task.kind == TAGS:
        words = part.columns[task.first[0]]
        known = gold if gold is not None else [[None] * len(one) for one in words]
        tags = [[numbers[tag] if tag is not None and labelled(tag) else IGNORED for tag in one] for one in known]
        return tag_rows(parts.tokenizer, words, tags, parts.max_tokens, overlap)
    if task.kind == ANSWER:
        return span_rows(parts.tokenizer, asked_of(part), parts.max_tokens, overlap)
    pairs = [(part.text(number, task.first), part.text(number, task.second)) for number in range(len(part))]
    labels = [numbers[label] for label in gold] if gold is not None else [None] * len(part)
    return pair_rows(parts.tokenizer, pairs, labels, parts.max_tokens)


def asked_of(part: Part) -> list[Asked]:
    """Questions with the first of their right answers."""
    found = []
    for number in range(len(part)):
        question, text = part.text(number, part.task.first), part.columns["context"][number]
        own = (part.gold[number] or [None])[0] if part.gold is not None else None
        span = (own["start"], own["start"] + len(own["text"])) if own else None
        found.append(Asked(question, text, span))
    return found


def predictions_of(part: Part, head: Head, rows: Sequence[Row], said: Sequence[Said]) -> list[Any]:
    """As the scorer takes them: tags, a label, an answer, or of a page the mean of its grades, by their probability."""
    if part.task.kind == TAGS:
        return read_tags(rows, said, part.columns[part.task.first[0]], head.labels, part.task.rest)
    if part.task.kind == ANSWER:
        return read_answers(rows, said, asked_of(part))
    if part.task.kind == PAGE:
        grades = np.asarray([float(label) for label in head.labels])
        return [round(float(softmax(one.scores, 1.0) @ grades), DIGITS) for one in said]
    return [head.labels[int(one.scores.argmax())] for one in said]
