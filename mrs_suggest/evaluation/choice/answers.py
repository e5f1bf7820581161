"""The answers of a multiple-choice run, read from its files: a line for each test question, by language and view."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

MACRO = "macro"  # among the languages of a record: the mean over them
FULL, TRANSLATION = "full", "translation"
COLUMNS = ("idx", "gold", "predicted")
SCORE = "score"


@dataclass(frozen=True)
class Answers:
    """A model's answers to one test split, sorted by idx.

    Attributes:
        idx: (n,) numbers of the questions, all different; the same in all languages of XCOPA.
        gold, predicted: (n,) choices, from 0.
        changed: (n,) whether the translator's own label differed (XCOPA's column), or None where the data do not say.
    """

    idx: NDArray[np.int64]
    gold: NDArray[np.int64]
    predicted: NDArray[np.int64]
    changed: NDArray[np.bool_] | None
    choices: int

    @property
    def correct(self) -> NDArray[np.bool_]:
        """(n,) whether the answer is right."""
        return np.equal(self.gold, self.predicted)


Views = Mapping[str, Mapping[str, Answers]]  # view -> language -> answers


def read_answers(path: Path) -> Answers:
    """Read a tab-separated file with the columns idx, gold, predicted, a score for each choice, and maybe changed.

    Raises:
        InputError: a column is missing, a value is not a number, or an idx occurs twice; with file and line.
    """
    lines = read_lines(path)
    _, head = next(lines, (0, ""))
    names = head.split("\t")
    choices = sum(name.startswith(SCORE) for name in names)
    missing = [name for name in COLUMNS if name not in names] or ([] if choices > 1 else [f"{SCORE}1"])
    if missing:
        raise InputError(
            f"{path}, line 1: no column {missing[0]}; expected a header with {', '.join(COLUMNS)} and {SCORE}1, "
            f"{SCORE}2 ..., as a multiple-choice run writes it."
        )
    wanted = [*COLUMNS, *(["changed"] if "changed" in names else [])]
    rows: dict[int, list[int]] = {}
    for number, line in lines:
        fields = line.split("\t")
        try:
            row = [int(fields[names.index(name)]) for name in wanted]
        except (ValueError, IndexError):
            raise InputError(f"{path}, line {number}: expected whole numbers for {', '.join(wanted)}.") from None
        if row[0] in rows:
            raise InputError(f"{path}, line {number}: idx {row[0]} is repeated; keep one of its lines.")
        if not all(0 <= choice < choices for choice in row[1:3]):
            raise InputError(f"{path}, line {number}: expected gold and predicted from 0 to {choices - 1}.")
        rows[row[0]] = row
    if not rows:
        raise InputError(f"{path}: the file has no answers.")
    columns = np.array([rows[idx] for idx in sorted(rows)], dtype=np.int64).T
    changed = columns[3].astype(bool) if len(columns) > 3 else None
    return Answers(columns[0], columns[1], columns[2], changed, choices)


def read_run_answers(folder: Path, record: Mapping[str, Any]) -> Views:
    """The answers of a run, by view and language, as `run.json` lists them; InputError if its accuracy is another."""
    own = record.get("plan", {}).get("view", FULL)
    views: dict[str, dict[str, Answers]] = {}
    for view, configs in record["metrics"]["systems"].items():
        for config, figures in configs.items():
            if config == MACRO:
                continue
            path = folder / f"predictions.{'' if view == own else view + '.'}{config}.tsv"
            answers = read_answers(path)
            if abs(float(answers.correct.mean()) - figures["accuracy"]) > 1e-9:
                raise InputError(
                    f"{path}: its accuracy is {answers.correct.mean():.4f}, and run.json has "
                    f"{figures['accuracy']:.4f}; the files are not of one run."
                )
            language = config.removeprefix(f"{TRANSLATION}-")
            views.setdefault(view, {})[language] = answers
    return views
