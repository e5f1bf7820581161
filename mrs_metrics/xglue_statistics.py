"""Statistics behind the XGLUE scores: one row of numbers per example, and the figures from a sum of rows.

The rules are in `mrs_metrics.xglue`, which is the module to call; the arithmetic of tags, answers and pages in
`xglue_tags`, `xglue_qa` and `xglue_wpr`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TypeGuard

from mrs_metrics.xglue_qa import score_answer
from mrs_metrics.xglue_tags import count_tags
from mrs_metrics.xglue_tasks import Task, require_label
from mrs_metrics.xglue_wpr import ndcg, query_starts

MAX_ORDER = 4
COLUMNS = {
    "tags": ("right", "tags", "correct", "predicted", "labelled"),
    "label": ("right",),
    "answer": ("f1", "exact"),
    "page": ("ndcg",),
    "text": (
        "tokens",
        "reference_tokens",
        *(f"{name}_{order}" for name in ("matches", "ngrams") for order in range(1, MAX_ORDER + 1)),
    ),
}
Rows = list[tuple[float, ...]]
Counted = tuple[Rows, dict[str, int]]


def count_examples(task: Task, predictions: Sequence[object], references: Sequence[object], language: str) -> Counted:
    """Return the row of each example and counts of anything unusual; for every kind of task but pages.

    Raises:
        ValueError: an entry has the wrong type, or the language has no rules.
        ImportError: texts need sacreBLEU.
    """
    if task.kind == "tags":
        return _count_tags(task, predictions, references)
    if task.kind == "label":
        return _count_labels(task, predictions, references)
    if task.kind == "answer":
        return _count_answers(predictions, references, language)
    return _count_texts(task, predictions, references)


def count_queries(
    task: Task, predictions: Sequence[object], references: Sequence[object], queries: Sequence[str]
) -> tuple[Rows, list[int], dict[str, int]]:
    """Return the row of each query with two pages or more, the index of its first page, and counts of anything unusual.

    Raises:
        ValueError: a prediction is not a finite number, or a label is not one of the task's.
    """
    predicted = [_number(f"The relevance predicted for page {index}", value) for index, value in enumerate(predictions)]
    gains = [_number(f"Reference {index} of {task.name}", value) for index, value in enumerate(references)]
    for index, gain in enumerate(gains):
        require_label(task, f"{gain:g}", f"Reference {index}")
    rows: Rows = []
    kept = []
    notes = {"single_page": 0, "no_relevant_page": 0}
    starts = query_starts(queries)
    for begin, end in zip(starts, [*starts[1:], len(queries)], strict=True):
        if end - begin < 2:
            notes["single_page"] += 1
            continue
        notes["no_relevant_page"] += not any(gains[begin:end])
        rows.append((ndcg(predicted[begin:end], gains[begin:end]),))
        kept.append(begin)
    return rows, kept, notes


def figures(task: Task, sums: Sequence[float], n: int) -> dict[str, float]:
    """Return the figures of a task by name, 0 to 1, from the sums of its columns over n examples.

    0 / 0 is 0, such as the precision of a tagger that predicts no entity.
    """
    if task.kind == "tags":
        right, tags, correct, predicted, labelled = sums
        precision, recall = _share(correct, predicted), _share(correct, labelled)
        chunk = {"precision": precision, "recall": recall, "f1": _share(2 * correct, predicted + labelled)}
        if task.name == "NER":
            return chunk
        return {"accuracy": _share(right, tags), **{f"chunk_{name}": value for name, value in chunk.items()}}
    if task.kind == "text":
        tokens, reference_tokens, *counts = (int(value) for value in sums)
        score = import_sacrebleu().BLEU.compute_bleu(
            counts[:MAX_ORDER], counts[MAX_ORDER:], tokens, reference_tokens, smooth_method="exp"
        )
        return {"bleu": min(score.score / 100, 1.0), "brevity_penalty": score.bp}  # rounding may pass 1
    names = {"label": ("accuracy",), "answer": ("f1", "exact_match"), "page": ("ndcg",)}[task.kind]
    return {name: value / n for name, value in zip(names, sums, strict=True)}


def import_sacrebleu() -> ModuleType:
    """Return the package sacrebleu.

    Raises:
        ImportError: it is not installed.
    """
    try:
        import sacrebleu as package
    except ImportError as error:
        raise ImportError(
            "QG and NTG need the package sacrebleu, which is not installed: run pip install sacrebleu."
        ) from error
    return package


def _count_tags(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    rows: Rows = []
    notes = {"padded": 0, "unknown": 0}
    for index, pair in enumerate(zip(predictions, references, strict=True)):
        ours, theirs = (_tags(index, tags) for tags in pair)
        for tag in theirs:
            require_label(task, tag, f"Each word of reference {index}")
        if len(ours) > len(theirs):
            raise ValueError(f"Sentence {index} has {len(theirs)} words, but {len(ours)} predicted tags.")
        rows.append(count_tags(ours, theirs))
        notes["padded"] += len(theirs) - len(ours)
        notes["unknown"] += sum(tag not in task.labels for tag in ours)
    return rows, notes


def _tags(index: int, tags: object) -> Sequence[str]:
    if not _is_texts(tags) or not all(tags):
        raise ValueError(f"The tags of sentence {index} must be a list of non-empty texts, not {tags!r:.80}.")
    return tags


def _count_labels(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(ours, str):
            raise ValueError(f"The label predicted for example {index} must be a text, not {ours!r:.80}.")
        require_label(task, theirs, f"Reference {index}")
        rows.append((float(ours == theirs),))
    return rows, {"unknown": sum(label not in task.labels for label in predictions)}


def _count_answers(predictions: Sequence[object], references: Sequence[object], language: str) -> Counted:
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not (ours is None or isinstance(ours, str)):
            raise ValueError(f"The answer to question {index} must be a text, or None, not {ours!r:.80}.")
        if not _is_texts(theirs) or not theirs:
            raise ValueError(f"Question {index} must have a list of one or more right answers, not {theirs!r:.80}.")
        scored = score_answer(ours or "", theirs, language)  # also for None: it checks the language
        rows.append(scored if ours is not None else (0.0, 0.0))
    return rows, {"unanswered": sum(ours is None for ours in predictions)}


def _count_texts(task: Task, predictions: Sequence[object], references: Sequence[object]) -> Counted:
    bleu = import_sacrebleu().BLEU(lowercase=True)
    rows: Rows = []
    for index, (ours, theirs) in enumerate(zip(predictions, references, strict=True)):
        if not isinstance(ours, str) or not isinstance(theirs, str):
            raise ValueError(f"Prediction and reference {index} of {task.name} must be texts.")
        score = bleu.corpus_score([ours], [[theirs]])
        rows.append((score.sys_len, score.ref_len, *score.counts, *score.totals))
    return rows, {"empty": sum(not row[0] for row in rows)}


def _is_texts(value: object) -> TypeGuard[Sequence[str]]:
    """Whether it is a list of texts, and not one text."""
    return isinstance(value, Iterable) and not isinstance(value, str) and all(isinstance(text, str) for text in value)


def _number(what: str, value: object) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite number, not {value!r:.80}.")
    return number


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
