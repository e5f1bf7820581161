"""XGLUE's files: predictions in the layout of a submission, right answers in the layout of the released data.

Source: `evaluation/README.md`, `evaluation/xglue_evaluate.py` and `Data_Format.txt` (microsoft/XGLUE). Predictions are
`TASK/LANGUAGE.prediction`, with one line for each example of the data, in order:

- NER, POS: a tag per line, sentences separated by blank lines; a sentence may lack tags at its end.
- NC, XNLI, PAWSX, QADSM, QAM, WPR: a label per line (WPR: any number).
- QG, NTG: a text per line, which may be empty.
- MLQA: a JSON object of question id -> answer.

The right answers are in the folder that the data's archive unpacks to (`xglue_full_dataset`); LANG and SPLIT (`dev` or
`test`) stand for their names:

- NER/LANG.SPLIT, POS/LANG.SPLIT: word, spaces, tag; lines `-DOCSTART-` are left out.
- XNLI/LANG.SPLIT, NC/xglue.nc.LANG.SPLIT (so for QADSM, QAM, WPR) and PAWSX/LANG/SPLIT_2k.tsv, which has a header and
  may have blank lines: the label is the last of the columns, which tabs separate. WPR's first is the query.
- QG/xglue.qg.LANG.tgt.SPLIT (so for NTG): a text per line, the last column if there are tabs.
- MLQA/MLQA_V1/SPLIT/SPLIT-context-LANG-question-LANG.json: the format of SQuAD 1.1.

Lines are stripped of white space; as in the official script, a carriage return ends one too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrs_core.errors import InputError
from mrs_core.lines import read_lines
from mrs_core.metric_errors import metric_errors
from mrs_metrics.xglue_tasks import Task, get_task, require_label

SPLITS = ("dev", "test")
_HEADER = "label"  # of the last column of PAWS-X


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
    name, low = known.name, known.name.lower()
    files = {"NER": f"{language}.{split}", "POS": f"{language}.{split}", "XNLI": f"{language}.{split}"}
    files["PAWSX"] = f"{language}/{split}_2k.tsv"
    files["MLQA"] = f"MLQA_V1/{split}/{split}-context-{language}-question-{language}.json"
    target = "tgt." if known.kind == "text" else ""
    return Path(folder) / name / files.get(name, f"xglue.{low}.{language}.{target}{split}")


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
        return _read_questions(path)
    if known.kind == "tags":
        return References(path, [tags for _, tags in _right_sentences(path, known)])
    rows = [(number, line.split("\t")) for number, line in read_lines(path, any_line_end=True)]
    if known.name == "PAWSX":
        if rows and rows[0][1][-1].strip() in known.labels:
            raise InputError(f"{path}, line 1: a header is expected, whose last column is {_HEADER!r}, not an example.")
        rows = [(number, cells) for number, cells in rows[1:] if any(map(str.strip, cells))]
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
    for first, lines in _blocks(path):
        for number, line in enumerate(lines, start=first):
            if len(line.split()) > 1:
                raise InputError(f"{path}, line {number}: one tag without its word is expected, not {line!r:.80}.")
        yield first, lines


def _right_sentences(path: Path, task: Task) -> Iterator[tuple[int, list[str]]]:
    for first, lines in _blocks(path, without="-DOCSTART-"):
        tags = [line.split()[-1] for line in lines]
        with metric_errors():
            for number, tag in enumerate(tags, start=first):
                require_label(task, tag, f"{path}, line {number}")
        yield first, tags


def _blocks(path: Path, without: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """The runs of lines between blank ones and lines that begin with `without`, with the number of their first line."""
    block: list[str] = []
    number = 0
    for number, line in read_lines(path, any_line_end=True):
        if line.strip() and not (without and line.startswith(without)):
            block.append(line.strip())
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


def _read_json(path: Path) -> Any:
    try:
        return json.loads("\n".join(line for _, line in read_lines(path, any_line_end=True)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: JSON is expected: {error.msg}.") from error


def _read_answers(path: Path) -> dict[str, str]:
    answers = _read_json(path)
    if not isinstance(answers, dict):
        raise InputError(
            f"{path}: the file must contain a JSON object of question id -> answer, not a {type(answers).__name__}."
        )
    for name, answer in answers.items():
        if not isinstance(answer, str):
            raise InputError(f"{path}, question {name!r}: the answer must be a text, not {answer!r:.80}.")
    return answers


def _read_questions(path: Path) -> References:
    ids: list[str] = []
    references: list[list[str]] = []
    data = _read_json(path)
    try:
        for question in (
            question for article in data["data"] for part in article["paragraphs"] for question in part["qas"]
        ):
            ids.append(question["id"])
            references.append([answer["text"] for answer in question["answers"]])
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: the file is not in the format of SQuAD 1.1 (data, paragraphs, qas, id, answers, text): question "
            f"{len(ids) + 1} lacks {error}."
        ) from error
    for name, answers in zip(ids, references, strict=True):
        if not isinstance(name, str):
            raise InputError(f"{path}: the id of a question must be a text, not {name!r:.80}.")
        if not answers or not all(isinstance(text, str) for text in answers):
            raise InputError(f"{path}, question {name!r}: one right answer or more is expected, not {answers!r:.80}.")
    return References(path, references, ids=ids)


def _is_number(text: str) -> bool:
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _task(name: str) -> Task:
    with metric_errors():
        return get_task(name)
