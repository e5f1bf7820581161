"""Reads the completed sheets of an audit, and checks every row."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mrs_datasets.audit.files import SHEETS, Key
from mrs_datasets.audit.questions import ANSWERS, KINDS, TEXTS, Kind
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import and_more, item_of_row, read_sheet, restored, sheets_in

EXPECTED = f"{', '.join(ANSWERS[:-1])} or {ANSWERS[-1]}"
_SHEET = re.compile(r"audit ([0-9a-f]{8}), annotator ([1-9][0-9]{0,5})")


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
