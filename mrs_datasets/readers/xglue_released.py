"""The files of XGLUE's data, in the folder that its archive unpacks to (`xglue_full_dataset`): one parser per format.

The scorer reads the right answers with them (`xglue_files`), the reader whole examples (`xglue`). LANG and SPLIT
(`train`, `dev` or `test`; training data are in English alone) stand for their names:

- NER/LANG.SPLIT, POS/LANG.SPLIT: word, spaces, tag; sentences are separated by blank lines; lines `-DOCSTART-` are left
  out.
- NC/xglue.nc.LANG.SPLIT (so for QADSM, QAM, WPR) and XNLI/LANG.SPLIT: columns between tabs, the label last.
- XNLI/multinli.train.LANG.tsv, PAWSX/LANG/train.tsv, PAWSX/LANG/SPLIT_2k.tsv: the same with a header; PAWS-X may have
  blank lines, and its first column is an id.
- QG/xglue.qg.LANG.src.SPLIT and QG/xglue.qg.LANG.tgt.SPLIT (so for NTG): a text per line, and what is to be generated
  from it; the last column if there are tabs.
- MLQA/squad1.1/train-v1.1.json, MLQA/MLQA_V1/SPLIT/SPLIT-context-LANG-question-LANG.json: the format of SQuAD 1.1.

Source: `Data_Format.txt` and `evaluation/xglue_evaluate.py` (microsoft/XGLUE), and the script with which the library
`datasets` loaded it. Where they differ, the last two count: `Data_Format.txt` gives NC a first column, `query`, and
XNLI the layout of the XNLI corpus.

As in the official script, a carriage return ends a line too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mrs_metrics.xglue_tasks import Task
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED, NUL, read_lines

SOURCE, TARGET = "src", "tgt"  # what a text is generated from, and the text
HEADER = "label"  # of the last column of PAWS-X
PIVOT = "en"  # the language of the training data
_DOCUMENT = "-DOCSTART-"


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


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number from 1, line) of a file.

    Raises:
        InputError: it cannot be read, or a line has a NUL character.
    """
    for number, line in read_lines(path, any_line_end=True):
        if "\0" in line:
            raise InputError(f"{path}, line {number}: the line has {NUL} in it; {EDITED}")
        yield number, line


def line_blocks(path: Path, without: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """The runs of lines between blank ones and lines that begin with `without`, with the number of their first line."""
    block: list[str] = []
    number = 0
    for number, line in text_lines(path):
        if line.strip() and not (without and line.startswith(without)):
            block.append(line.strip())
        elif block:
            yield number - len(block), block
            block = []
    if block:
        yield number + 1 - len(block), block


def sentences(path: Path) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """(number of the first line, words with their tags) of each sentence (NER, POS).

    A line of one column is a word without tag, `("word", "")`.
    """
    for first, lines in line_blocks(path, without=_DOCUMENT):
        parts = [line.rsplit(None, 1) for line in lines]
        yield first, [(part[0], part[1] if len(part) == 2 else "") for part in parts]


def table_rows(path: Path, task: Task) -> Iterator[tuple[int, list[str]]]:
    """(number of the line, cells) of each row of NC, XNLI, PAWS-X, QADSM, WPR or QAM, as they are; no header.

    Raises:
        InputError: PAWS-X without a header.
    """
    pawsx = task.name == "PAWSX"
    for number, line in text_lines(path):
        cells = line.split("\t")
        if pawsx and number == 1 and cells[-1].strip() in task.labels:
            raise InputError(f"{path}, line 1: a header is expected, whose last column is {HEADER!r}, not an example.")
        headed = pawsx or path.suffix == ".tsv"
        if (headed and number == 1) or (pawsx and not any(map(str.strip, cells))):
            continue
        yield number, cells


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """(number, text) of each line of QG or NTG: the last column, without white space around it."""
    for number, line in text_lines(path):
        yield number, line.split("\t")[-1].strip()


def read_json(path: Path) -> Any:
    """The contents of a JSON file.

    Raises:
        InputError: it cannot be read or is not JSON.
    """
    try:
        return json.loads("\n".join(line for _, line in text_lines(path)))
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {error.lineno}: JSON is expected: {error.msg}.") from error
    except RecursionError:
        raise InputError(f"{path}: JSON is expected, not lists within lists without end.") from None


@dataclass(frozen=True)
class Question:
    """One question of MLQA.

    Attributes:
        id: of the question.
        answers: the texts of its right answers, one or more.
        given: the question's JSON object.
        paragraph: that of its paragraph.
    """

    id: str
    answers: list[str]
    given: dict[str, Any]
    paragraph: dict[str, Any]


def questions(path: Path) -> Iterator[Question]:
    """The questions of a file in the format of SQuAD 1.1.

    Raises:
        InputError: the file is not in that format; `question` and `context` are left to the caller.
    """
    data = read_json(path)
    number = 0
    try:
        for article in data["data"]:
            for paragraph in article["paragraphs"]:
                for given in paragraph["qas"]:
                    number += 1
                    name, found = given["id"], [answer["text"] for answer in given["answers"]]
                    yield _checked(path, Question(name, found, given, paragraph))
    except (KeyError, TypeError) as error:
        raise InputError(
            f"{path}: the file is not in the format of SQuAD 1.1 (data, paragraphs, qas, id, answers, text): question "
            f"{max(1, number)} lacks {error}."
        ) from error


def _checked(path: Path, question: Question) -> Question:
    name, answers = question.id, question.answers
    if not isinstance(name, str):
        raise InputError(f"{path}: the id of a question must be a text, not {name!r:.80}.")
    if not answers or not all(isinstance(text, str) for text in answers):
        raise InputError(f"{path}, question {name!r}: one right answer or more is expected, not {answers!r:.80}.")
    return question
