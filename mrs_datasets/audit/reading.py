"""Reads the completed sheets of an audit, checks every row, and summarises the answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from mrs_datasets.audit.files import SHEETS, Item, Key
from mrs_datasets.audit.questions import ANSWERS, EXPECTED, KINDS, PAPER_EXAMPLES, PAPER_FOUND, TEXTS, TOXIC, Kind
from mrs_metrics.accuracy import weighted_wilson_interval, wilson_interval
from mrs_metrics.agreement import cohens_kappa, fleiss_kappa
from mrs_metrics.signature import signature
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.common.io.sheets import and_more, item_of_row, read_sheet, restored, sheets_in

_SHEET = re.compile(r"audit ([0-9a-f]{8}), annotator ([1-9][0-9]{0,5})")
ALL = "all"  # the languages pooled
UNDECIDED = "undecided"


@dataclass(frozen=True)
class Judgements:
    """The answers of one annotator.

    Attributes:
        annotator: from 1.
        answers: item -> question -> one of `ANSWERS`, without missing answers.
        comments: item -> comment, if any.
        rows: item -> row of the sheet (the header is row 1).
    """

    file: str
    annotator: int
    answers: Mapping[int, Mapping[str, str]]
    comments: Mapping[int, str]
    rows: Mapping[int, int]


def read_judgements(folder: Path, key: Key, partial: bool = False) -> list[Judgements]:
    """Read and check all sheets of an audit, by annotator.

    A sheet without an answer is ignored if the folder also has a completed one of the same annotator, which browsers
    save under another name.

    Args:
        partial: leave out sheets that are missing or untouched, and answers that are missing.

    Raises:
        InputError: a sheet is missing, untouched, of another audit, or one of two of an annotator; a row is missing,
            added, double or altered; an answer is missing or not one of `ANSWERS`.
    """
    place = folder / SHEETS
    found = [_read(place / name, key) for name in sheets_in(place)]
    sheets: dict[int, Judgements] = {}
    for one in sorted(found, key=lambda sheet: (sheet.annotator, not sheet.answers)):
        other = sheets.setdefault(one.annotator, one)
        if other is not one and one.answers:
            raise InputError(
                f"{place / other.file} and {one.file} are both sheets of annotator {one.annotator}; keep one of them."
            )
    advice = "or pass --partial to leave out"
    judged = []
    for annotator, name in enumerate(key.files, start=1):
        sheet = sheets.get(annotator)
        if sheet is not None and sheet.answers:
            judged.append(sheet)
        if partial:
            continue
        if sheet is None:
            raise InputError(f"{place / name} is missing; put the completed sheet there, {advice} this annotator.")
        if not sheet.answers:
            raise InputError(f"{place / sheet.file} has no answers; complete it, {advice} this annotator.")
        missing = [
            f"row {row}: no answer in the column {question.name!r}"
            for item, row in sheet.rows.items()
            for question in KINDS[key.kind].questions
            if question.name not in sheet.answers.get(item, {})
        ]
        if missing:
            raise InputError(
                f"{place / sheet.file}, {missing[0]}{and_more(missing)}; expected {EXPECTED}; complete it, {advice} "
                "missing answers."
            )
    if not judged:
        raise InputError(f"{place} has no sheet with answers; put the completed sheets there.")
    return judged


def _read(path: Path, key: Key) -> Judgements:
    kind = KINDS[key.kind]
    texts = {item.item: item.texts for item in key.items}
    answers: dict[int, dict[str, str]] = {}
    comments: dict[int, str] = {}
    seen: dict[int, int] = {}
    first = ""  # the column `sheet` of the first row, which all others must repeat
    for row, cells in read_sheet(path, kind.columns):
        where, sheet = f"{path}, row {row}", cells["sheet"].strip()
        match = _SHEET.fullmatch(sheet)
        if match and match[1] != key.audit:
            raise InputError(f"{where}: a sheet of the audit {match[1]}; expected one of {key.audit}.")
        if not match or int(match[2]) > len(key.files) or (first and sheet != first):
            expected = first or f"one of {key.sheet(1)!r} to {len(key.files)}"
            raise InputError(f"{where}: the column 'sheet' has {sheet[:60]!r}; expected {expected}; restore it.")
        first = sheet
        item = item_of_row(where, cells, texts, TEXTS, seen)
        seen[item] = row
        if given := _answers(where, cells, kind):
            answers[item] = given
        if comment := restored(cells["comment"]).strip():
            comments[item] = comment
    if missing := [number for number in texts if number not in seen]:
        raise InputError(f"{path}: item {missing[0]} is missing{and_more(missing)}; restore the rows.")
    return Judgements(path.name, int(first.rpartition(" ")[2]), answers, comments, seen)


def _answers(where: str, cells: Mapping[str, str], kind: Kind) -> dict[str, str]:
    given = {}
    for question in kind.questions:
        answer = cells[question.name].strip().casefold()
        if answer and answer not in ANSWERS:
            raise InputError(
                f"{where}: the column {question.name!r} has {cells[question.name].strip()[:40]!r}; expected {EXPECTED}."
            )
        if answer:
            given[question.name] = answer
    return given


def summarize(key: Key, sheets: Sequence[Judgements]) -> dict[str, Any]:
    """The figures of an audit.

    A pair's answer to a question is what more than half of its annotators say; without such an answer, or if that is
    "unsure", it is undecided. A share is yes among all judged pairs, so that an undecided pair does not count as a
    fault; `at_most` is the share if all of them did.

    Intervals are Wilson's (95 %). Pooled over languages, the shares of the wide kind are weighted by the pairs that
    each judged language has in the data (`weighted_wilson_interval`); a proportional sample has its weights already.

    Raises:
        InputError: two or more annotators judged the same pair, and statsmodels is not installed.
    """
    kind = KINDS[key.kind]
    questions = [question.name for question in kind.questions]
    return {
        "data": key.data,
        "kind": key.kind,
        "audit": key.audit,
        "seed": key.seed,
        "sample": key.sample,
        "items": len(key.items),
        "annotators": len(sheets),
        "annotators_missing": len(key.files) - len(sheets),
        "strata": [vars(stratum) for stratum in key.strata],
        "shares": [row for question in questions for row in _shares(key, question, sheets)],
        "agreement": [_agreement(question, key.items, sheets) for question in questions] if len(sheets) > 1 else [],
        "by_annotator": [_by_annotator(sheet, questions) for sheet in sheets],
        "differences": _differences(key, questions, sheets),
        "comments": [
            {"item": item, "annotator": sheet.annotator, "comment": text}
            for sheet in sheets
            for item, text in sheet.comments.items()
        ],
        "paper": {"question": TOXIC.name, "examples": PAPER_EXAMPLES, "found": PAPER_FOUND,
                  "interval": list(wilson_interval(PAPER_FOUND, PAPER_EXAMPLES)), "section": "2.2"},
        "signature": signature(
            "data_audit", kind=key.kind, items=len(key.items), annotators=len(sheets), seed=key.seed,
            majority="over-half", interval="wilson",
            pooled="population-weights-effective-size" if kind.per_language else "proportional-sample",
            kappa={1: None, 2: "cohen"}.get(len(sheets), "fleiss"),
        ),
    }  # fmt: skip


def _given(item: Item, question: str, sheets: Sequence[Judgements]) -> dict[int, str]:
    """Annotator -> answer, of those who gave one."""
    found = {sheet.annotator: sheet.answers.get(item.item, {}).get(question) for sheet in sheets}
    return {annotator: answer for annotator, answer in found.items() if answer}


def _shares(key: Key, question: str, sheets: Sequence[Judgements]) -> list[dict[str, Any]]:
    """A question's rows: one per language, and the pooled one if there are several."""
    rows: list[dict[str, Any]] = []
    for language in key.languages:
        counts = dict.fromkeys(("yes", "no", UNDECIDED), 0)
        for item in key.items:
            if item.language == language and (answers := _given(item, question, sheets)):
                given = list(answers.values())
                counts[next((one for one in ANSWERS[:2] if 2 * given.count(one) > len(given)), UNDECIDED)] += 1
        pairs = sum(stratum.rows for stratum in key.strata if stratum.language == language)
        rows.append({"question": question, "language": language, "pairs": pairs, **counts})
    judged = [row for row in rows if sum(row[name] for name in ("yes", "no", UNDECIDED))]
    pooled: list[dict[str, Any]] = []
    if len(key.languages) > 1 and judged:
        sums = {name: sum(row[name] for row in judged) for name in ("pairs", "yes", "no", UNDECIDED)}
        pooled = [{"question": question, "language": ALL, **sums}]
        if KINDS[key.kind].per_language:
            return [*map(_share, rows), {**pooled[0], **_weighted(judged)}]
    return [_share(row) for row in rows + pooled]


def _share(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its share and interval; None if no pair was judged."""
    n = row["yes"] + row["no"] + row[UNDECIDED]
    if not n:
        return {**row, "judged": 0, "share": None, "interval": None, "at_most": None}
    interval = list(wilson_interval(row["yes"], n))
    return {**row, "judged": n, "share": row["yes"] / n, "interval": interval, "at_most": (n - row["no"]) / n}


def _weighted(rows: list[dict[str, Any]]) -> dict[str, Any]:
    sizes = np.array([row["yes"] + row["no"] + row[UNDECIDED] for row in rows])
    weights = np.array([row["pairs"] for row in rows]) / sum(row["pairs"] for row in rows)
    yes, no = (np.array([row[name] for row in rows]) for name in ("yes", "no"))
    return {
        "judged": int(sizes.sum()),
        "share": float(weights @ (yes / sizes)),
        "interval": list(weighted_wilson_interval(yes, sizes, weights)),
        "at_most": float(1 - weights @ (no / sizes)),
    }


def _agreement(question: str, items: Sequence[Item], sheets: Sequence[Judgements]) -> dict[str, Any]:
    """How often two annotators of a pair gave the same answer, and kappa on the pairs that all of them judged."""
    given = [list(_given(item, question, sheets).values()) for item in items]
    twos = [two for row in given for two in combinations(row, 2)]
    whole = np.array([list(map(ANSWERS.index, row)) for row in given if len(row) == len(sheets)], dtype=np.int64)
    kappa = None
    if len(whole):
        with metric_errors():
            if len(sheets) == 2:
                kappa = cohens_kappa(whole[:, 0], whole[:, 1], len(ANSWERS))
            else:
                kappa = fleiss_kappa(np.stack([(whole == place).sum(axis=1) for place in range(len(ANSWERS))], axis=1))
    same = float(np.mean([first == second for first, second in twos])) if twos else None
    judged = sum(len(row) > 1 for row in given)
    return {"question": question, "judged_by_two": judged, "judged_by_all": len(whole), "same": same, "kappa": kappa}


def _by_annotator(sheet: Judgements, questions: Sequence[str]) -> dict[str, Any]:
    """How many pairs one annotator judged, and how often each answer was given to each question."""
    counts = {
        question: {answer: sum(given.get(question) == answer for given in sheet.answers.values()) for answer in ANSWERS}
        for question in questions
    }
    return {"annotator": sheet.annotator, "judged": len(sheet.answers), "answers": counts}


def _differences(key: Key, questions: Sequence[str], sheets: Sequence[Judgements]) -> list[dict[str, Any]]:
    found = []
    for item in key.items:
        for question in questions:
            answers = _given(item, question, sheets)
            if len(set(answers.values())) > 1:
                place = {"item": item.item, "language": item.language, "split": item.split, "row": item.row}
                found.append({**place, "question": question, "answers": {str(n): a for n, a in answers.items()}})
    return found
