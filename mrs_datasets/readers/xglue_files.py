"""XGLUE's files: predictions in the layout of a submission, right answers in the layout of the released data.

Source: `evaluation/README.md`, `evaluation/xglue_evaluate.py` and `Data_Format.txt` (microsoft/XGLUE). Predictions are
`TASK/LANGUAGE.prediction`, with one line for each example of the data, in order:

- NER, POS: a tag per line, sentences separated by blank lines; a sentence may lack tags at its end.
- NC, XNLI, PAWSX, QADSM, QAM, WPR: a label per line (WPR: any number).
- QG, NTG: a text per line, which may be empty.
- MLQA: a JSON object of question id -> answer.

The right answers are in the released data (`xglue_released` has their layout).

Lines are stripped of white space; as in the official script, a carriage return ends one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrs_datasets.readers.xglue_released import (
    line_blocks,
    questions,
    read_json,
    released_path,
    sentences,
    table_rows,
    texts,
)
from mrs_metrics.xglue_tasks import Task, get_task, require_label
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.metric_errors import metric_errors

SPLITS = ("dev", "test")


@dataclass(frozen=True)
class References:
    """The right answers of one task in one language.

    Attributes:
        path: of the file.
        references: as `score_task` expects them.
        queries: WPR's query of each page, else None.
        ids: MLQA's id of each question, else None.
    """

    path: Path
    references: list[Any]
    queries: list[str] | None = None
    ids: list[str] | None = None


def predictions_path(folder: str | Path, task: str, language: str) -> Path:
    """Return the path of a submission's predictions for a task in a language.

    Raises:
        InputError: the task is unknown.

    >>> predictions_path("mine", "PAWS-X", "de").as_posix()
    'mine/PAWSX/de.prediction'
    """
    return Path(folder) / _task(task).name / f"{language}.prediction"


def references_path(folder: str | Path, task: str, language: str, split: str = "test") -> Path:
    """Return the path of the released data's right answers.

    Raises:
        InputError: the task is unknown, or the split is neither `dev` nor `test`.

    >>> references_path("xglue_full_dataset", "QG", "fr", "dev").as_posix()
    'xglue_full_dataset/QG/xglue.qg.fr.tgt.dev'
    """
    known = _task(task)
    if split not in SPLITS:
        raise InputError(f"XGLUE is scored on one of the splits {list(SPLITS)}, not on {split!r}.")
    return released_path(folder, known, language, split)


def read_xglue_predictions(path: str | Path, task: str) -> list[Any] | dict[str, str]:
    """Read a file of predictions.

    Returns:
        a list of tags for each sentence (NER, POS), of labels or texts, or id -> answer (MLQA).

    Raises:
        InputError: the task is unknown, the file cannot be read, or a line is not in the task's format.
    """
    known, path = _task(task), Path(path)
    if known.kind == "answer":
        return _read_answers(path)
    if known.kind == "tags":
        return [tags for _, tags in predicted_sentences(path)]
    lines = []
    for number, raw in read_lines(path, any_line_end=True):
        line = raw.strip()
        lines.append(line)
        if not line and known.kind != "text":
            raise InputError(f"{path}, line {number}: a label of {known.name} is expected, not a blank line.")
        if known.kind == "page" and not _is_number(line):
            raise InputError(f"{path}, line {number}: the relevance of a page must be a number, not {line!r:.80}.")
    return lines


def read_xglue_references(path: str | Path, task: str) -> References:
    """Read a file of the released data.

    Raises:
        InputError: the task is unknown, the file cannot be read, or a line is not in the task's format, such as one
            without a label.
    """
    known, path = _task(task), Path(path)
    if known.kind == "answer":
        asked = list(questions(path))
        return References(path, [one.answers for one in asked], ids=[one.id for one in asked])
    if known.kind == "tags":
        return References(path, [tags for _, tags in _right_sentences(path, known)])
    if known.kind == "text":
        return References(path, [text for _, text in texts(path)])
    rows = list(table_rows(path, known))
    with metric_errors():
        for number, cells in rows:
            require_label(known, cells[-1].strip(), f"{path}, line {number}")
    queries = [cells[0] for _, cells in rows] if known.kind == "page" else None
    return References(path, [cells[-1].strip() for _, cells in rows], queries=queries)


def predicted_sentences(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The predicted tags of each sentence (NER, POS), with the number of its first line.

    Raises:
        InputError: see `read_xglue_predictions`.
    """
    for first, lines in line_blocks(path):
        for number, line in enumerate(lines, start=first):
            if len(line.split()) > 1:
                raise InputError(f"{path}, line {number}: one tag without its word is expected, not {line!r:.80}.")
        yield first, lines


def _right_sentences(path: Path, task: Task) -> Iterator[tuple[int, list[str]]]:
    for first, pairs in sentences(path):
        tags = [tag or word for word, tag in pairs]
        with metric_errors():
            for number, tag in enumerate(tags, start=first):
                require_label(task, tag, f"{path}, line {number}")
        yield first, tags


def _read_answers(path: Path) -> dict[str, str]:
    answers = read_json(path)
    if not isinstance(answers, dict):
        raise InputError(
            f"{path}: the file must contain a JSON object of question id -> answer, not a {type(answers).__name__}."
        )
    for name, answer in answers.items():
        if not isinstance(answer, str):
            raise InputError(f"{path}, question {name!r}: the answer must be a text, not {answer!r:.80}.")
    return answers


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _task(name: str) -> Task:
    with metric_errors():
        return get_task(name)
