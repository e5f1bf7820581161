"""Reads the sheets of an audit that came back, and checks every row of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mrs_datasets.audit.files import SHEETS, Item, Key
from mrs_datasets.audit.questions import ANSWERS, KINDS, TEXTS, Kind
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import and_more, is_altered, read_sheet, restored, sheets_in

_SHEET = re.compile(r"audit ([0-9a-f]{8}), annotator ([1-9][0-9]{0,5})")


@dataclass(frozen=True)
class Judgements:
    """What one annotator answered.

    Attributes:
        file: the sheet.
        annotator: from 1.
        answers: item -> question -> one of `ANSWERS`; what was not answered is not there.
        comments: item -> text, where there is one.
        rows: item -> row of the sheet (the header has 1).
    """

    file: str
    annotator: int
    answers: Mapping[int, Mapping[str, str]]
    comments: Mapping[int, str]
    rows: Mapping[int, int]


def read_judgements(folder: Path, key: Key, partial: bool = False) -> list[Judgements]:
    """Read and check all sheets of an audit, by annotator.

    A sheet without an answer is left out where a completed one of the same annotator is beside it, which browsers save
    under another name.

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
    expected = range(1, len(key.files) + 1)
    if not partial:
        _require_complete(place, key, [sheets.get(annotator) for annotator in expected])
    judged = [sheets[annotator] for annotator in expected if annotator in sheets and sheets[annotator].answers]
    if not judged:
        raise InputError(f"{place} has no sheet with answers; put the completed sheets there.")
    return judged


def _require_complete(place: Path, key: Key, sheets: list[Judgements | None]) -> None:
    advice = "or pass --partial to leave out"
    for name, sheet in zip(key.files, sheets, strict=True):
        if sheet is None:
            raise InputError(f"{place / name} is missing; put the completed sheet there, {advice} this annotator.")
        if not sheet.answers:
            raise InputError(f"{place / sheet.file} has no answers; complete it, {advice} this annotator.")
        questions = [question.name for question in KINDS[key.kind].questions]
        missing = [
            f"row {row}: no answer in the column {question!r}"
            for item, row in sheet.rows.items()
            for question in questions
            if question not in sheet.answers.get(item, {})
        ]
        if missing:
            raise InputError(
                f"{place / sheet.file}, {missing[0]}{and_more(missing)}; expected {_expected()}; complete it, "
                f"{advice} what was not answered."
            )


def _read(path: Path, key: Key) -> Judgements:
    kind = KINDS[key.kind]
    items = {str(item.item): item for item in key.items}
    answers: dict[int, dict[str, str]] = {}
    comments: dict[int, str] = {}
    seen: dict[int, int] = {}
    sheet = ""
    for row, cells in read_sheet(path, kind.columns):
        sheet = _require_sheet(path, row, cells["sheet"].strip(), key, sheet)
        item = _known_item(path, row, cells, items, seen)
        seen[item.item] = row
        if given := _answers(path, row, cells, kind):
            answers[item.item] = given
        if comment := restored(cells["comment"]).strip():
            comments[item.item] = comment
    if missing := [number for number in items if int(number) not in seen]:
        raise InputError(f"{path}: item {missing[0]} is missing{and_more(missing)}; restore the rows.")
    return Judgements(path.name, int(sheet.rpartition(" ")[2]), answers, comments, seen)


def _require_sheet(path: Path, row: int, found: str, key: Key, before: str) -> str:
    """The column `sheet` of a row: of this audit, and the same in all rows."""
    match = _SHEET.fullmatch(found)
    expected = before or f"one of {key.sheet(1)!r} to {len(key.files)}"
    if match and match[1] != key.audit:
        raise InputError(f"{path}, row {row}: a sheet of the audit {match[1]}; expected one of {key.audit}.")
    if not match or int(match[2]) > len(key.files) or (before and found != before):
        raise InputError(f"{path}, row {row}: the column 'sheet' has {found[:60]!r}; expected {expected}; restore it.")
    return found


def _known_item(
    path: Path, row: int, cells: Mapping[str, str], items: Mapping[str, Item], seen: Mapping[int, int]
) -> Item:
    """The item of a row whose texts are as they were made."""
    number = cells["item"].strip()
    item = items.get(number)
    if item is None:
        raise InputError(
            f"{path}, row {row}: the column 'item' has {number[:40]!r}, which is none of this audit's 1 to "
            f"{len(items)}; remove the row, or restore its number."
        )
    if item.item in seen:
        raise InputError(f"{path}, row {row}: item {number} appears twice; delete one of the rows.")
    for column, made in zip(TEXTS, item.texts, strict=True):
        if is_altered(cells[column], made):
            raise InputError(
                f"{path}, row {row}: the column {column!r} of item {number} was altered, so the answers may be about "
                "another text; restore the original text."
            )
    return item


def _answers(path: Path, row: int, cells: Mapping[str, str], kind: Kind) -> dict[str, str]:
    given = {}
    for question in kind.questions:
        answer = cells[question.name].strip().casefold()
        if answer and answer not in ANSWERS:
            raise InputError(
                f"{path}, row {row}: the column {question.name!r} has {cells[question.name].strip()[:40]!r}; expected "
                f"{_expected()}."
            )
        if answer:
            given[question.name] = answer
    return given


def _expected() -> str:
    return f"{', '.join(ANSWERS[:-1])} or {ANSWERS[-1]}"
