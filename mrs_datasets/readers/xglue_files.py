"""XGLUE's files: one parser per format of the released data, and the predictions of a submission.

The data are in the folder that the archive unpacks to (`xglue_full_dataset`). LANG and SPLIT (`train`, `dev` or `test`;
training data are in English only) stand for their names:

- NER/LANG.SPLIT, POS/LANG.SPLIT: word, spaces, tag; sentences are separated by blank lines; lines `-DOCSTART-` are left
  out.
- NC/xglue.nc.LANG.SPLIT (also QADSM, QAM, WPR) and XNLI/LANG.SPLIT: columns between tabs, the label last.
- XNLI/multinli.train.LANG.tsv, PAWSX/LANG/train.tsv, PAWSX/LANG/SPLIT_2k.tsv: the same with a header; PAWS-X may have
  blank lines, and its first column is an id.
- QG/xglue.qg.LANG.src.SPLIT and QG/xglue.qg.LANG.tgt.SPLIT (also NTG): a text per line, and the text to generate from
  it; the last column if there are tabs.
- MLQA/squad1.1/train-v1.1.json, MLQA/MLQA_V1/SPLIT/SPLIT-context-LANG-question-LANG.json: the format of SQuAD 1.1.

Predictions are `TASK/LANG.prediction`, with one line for each example of the data, in order:

- NER, POS: a tag per line, sentences separated by blank lines; a sentence may lack tags at its end.
- NC, XNLI, PAWSX, QADSM, QAM, WPR: a label per line (WPR: any number).
- QG, NTG: a text per line, which may be empty.
- MLQA: a JSON object of question id -> answer.

Lines are stripped of white space; as in the official script, a carriage return also ends a line.

Source: `Data_Format.txt`, `evaluation/README.md` and `evaluation/xglue_evaluate.py` (microsoft/XGLUE), and the script
with which the library `datasets` loaded it. Where they differ, the last two count: `Data_Format.txt` gives NC a first
column, `query`, and XNLI the layout of the XNLI corpus.

InputError: an unknown task, a file that cannot be read, or a line that is not in the task's format.
"""

import json
import math
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from mrs_datasets.readers.sources import as_number
from mrs_metrics.xglue_tasks import Task, get_task, require_label
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.lines import EDITED, NUL, read_lines

SOURCE, TARGET = "src", "tgt"  # the text that is given, and the text to generate
PIVOT = "en"  # the language of the training data
SPLITS = ("dev", "test")  # those that are scored


class References(NamedTuple):
    """The right answers of one task in one language.

    Attributes:
        queries: WPR's query of each page, otherwise None.
        ids: MLQA's id of each question, otherwise None.
    """

    path: Path
    references: list[Any]
    queries: list[str] | None = None
    ids: list[str] | None = None


class Question(NamedTuple):
    """One question of MLQA: its id, the texts of its right answers, its JSON object, and its context as it is."""

    id: str
    answers: list[str]
    given: dict[str, Any]
    context: Any


def released_path(folder: str | Path, task: Task, language: str, split: str, side: str = TARGET) -> Path:
    """The path of a split (`train`, `dev` or `test`); with QG and NTG, of one `side`: `src` or `tgt`."""
    name, low = task.name, task.name.lower()
    train = split == "train"
    files = {"NER": f"{language}.{split}", "POS": f"{language}.{split}"}
    files["XNLI"] = f"multinli.train.{language}.tsv" if train else f"{language}.{split}"
    files["PAWSX"] = f"{language}/train.tsv" if train else f"{language}/{split}_2k.tsv"
    files["MLQA"] = f"MLQA_V1/{split}/{split}-context-{language}-question-{language}.json"
    if train and language == PIVOT:
        files["MLQA"] = "squad1.1/train-v1.1.json"
    part = f"{side}." if task.generation else ""
    return Path(folder) / name / files.get(name, f"xglue.{low}.{language}.{part}{split}")


def predictions_path(folder: str | Path, task: str, language: str) -> Path:
    """The path of a submission's predictions for a task in a language; InputError for an unknown task.

    >>> predictions_path("mine", "PAWS-X", "de").as_posix()
    'mine/PAWSX/de.prediction'
    """
    return Path(folder) / _task(task).name / f"{language}.prediction"


def references_path(folder: str | Path, task: str, language: str, split: str = "test") -> Path:
    """The path of the released data's right answers; InputError if the task or split (`dev`, `test`) is unknown.

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
        if known.kind == "page" and not math.isfinite(as_number(line)):
            raise InputError(f"{path}, line {number}: the relevance of a page must be a number, not {line!r:.80}.")
    return lines


def read_xglue_references(path: str | Path, task: str) -> References:
    """Read a file of the released data, where every line must have its label."""
    known, path = _task(task), Path(path)
    if known.kind == "answer":
        asked = list(questions(path))
        return References(path, [one.answers for one in asked], ids=[one.id for one in asked])
    if known.kind == "text":
        return References(path, [text for _, text in texts(path)])
    if known.kind == "tags":
        found = [(first, [tag or word for word, tag in pairs]) for first, pairs in sentences(path)]
        labels = [(number, tag) for first, tags in found for number, tag in enumerate(tags, start=first)]
        references: list[Any] = [tags for _, tags in found]
        queries = None
    else:
        rows = list(table_rows(path, known))
        labels = [(number, cells[-1].strip()) for number, cells in rows]
        references = [label for _, label in labels]
        queries = [cells[0] for _, cells in rows] if known.kind == "page" else None
    with metric_errors():
        for number, label in labels:
            require_label(known, label, f"{path}, line {number}")
    return References(path, references, queries)


def predicted_sentences(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The predicted tags of each sentence (NER, POS), with the number of its first line."""
    for first, lines in _line_blocks(path):
        for number, line in enumerate(lines, start=first):
            if len(line.split()) > 1:
                raise InputError(f"{path}, line {number}: one tag without its word is expected, not {line!r:.80}.")
        yield first, lines


def sentences(path: Path) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """(number of the first line, words with their tags) of each sentence (NER, POS).

    A line of one column is a word without tag, `("word", "")`.
    """
    for first, lines in _line_blocks(path, without=("-DOCSTART-",)):
        parts = [line.rsplit(None, 1) for line in lines]
        yield first, [(part[0], part[1] if len(part) == 2 else "") for part in parts]


def table_rows(path: Path, task: Task) -> Iterator[tuple[int, list[str]]]:
    """(number of the line, cells) of each row of NC, XNLI, PAWS-X, QADSM, WPR or QAM, unchanged, without header."""
    pawsx = task.name == "PAWSX"
    for number, line in _text_lines(path):
        cells = line.split("\t")
        if pawsx and number == 1 and cells[-1].strip() in task.labels:
            raise InputError(f"{path}, line 1: a header is expected, whose last column is 'label', not an example.")
        headed = pawsx or path.suffix == ".tsv"
        if not (headed and number == 1) and not (pawsx and not line.strip()):
            yield number, cells


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of QG or NTG: the last column, without white space around it."""
    for number, line in _text_lines(path):
        yield number, line.split("\t")[-1].strip()


def questions(path: Path) -> Iterator[Question]:
    """The questions of a file in the format of SQuAD 1.1; `question` and context are checked by the caller."""
    data = _read_json(path)
    number = 0
    try:
        for article in data["data"]:
            for paragraph in article["paragraphs"]:
                for given in paragraph["qas"]:
                    number += 1
                    name, answers = given["id"], [answer["text"] for answer in given["answers"]]
                    if not isinstance(name, str):
                        raise InputError(f"{path}: the id of a question must be a text, not {name!r:.80}.")
                    if not answers or not all(isinstance(text, str) for text in answers):
                        raise InputError(
                            f"{path}, question {name!r}: one right answer or more is expected, not {answers!r:.80}."
                        )
                    yield Question(name, answers, given, paragraph.get("context"))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: the file is not in the format of SQuAD 1.1 (data, paragraphs, qas, id, answers, text): question "
            f"{max(1, number)} lacks {error}."
        ) from error


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of a file; InputError for a NUL character."""
    for number, line in read_lines(path, any_line_end=True):
        if "\0" in line:
            raise InputError(f"{path}, line {number}: the line has {NUL} in it; {EDITED}")
        yield number, line


def _line_blocks(path: Path, without: tuple[str, ...] = ()) -> Iterator[tuple[int, list[str]]]:
    """The runs of lines between blank ones and lines that begin with `without`, with the number of their first line."""
    for inside, run in groupby(_text_lines(path), lambda one: bool(one[1].strip()) and not one[1].startswith(without)):
        if inside:
            numbers, lines = zip(*run, strict=True)
            yield numbers[0], [line.strip() for line in lines]


def _read_json(path: Path) -> Any:
    try:
        return json.loads("\n".join(line for _, line in _text_lines(path)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: JSON is expected: {error.msg}.") from error
    except RecursionError:
        raise InputError(f"{path}: JSON is expected, not endlessly nested lists.") from None


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


def _task(name: str) -> Task:
    with metric_errors():
        return get_task(name)
