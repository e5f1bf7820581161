"""What tests of the audit share: data in memory, and annotators who fill in sheets."""

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData

Row = dict[str, str]
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class InMemory(PreparedData):
    """Prepared data that are nowhere on a disk: (language, split) -> pairs."""

    parts: dict[tuple[str, str], Pairs] = field(default_factory=dict)
    own_report: dict[str, Any] = field(default_factory=dict)

    def load(self, config: str, split: str) -> Dataset:
        pairs = self.parts[config, split]
        return Dataset.from_dict({"message": [m for m, _ in pairs], "reply": [r for _, r in pairs]})

    def languages(self) -> list[str]:
        return list(dict.fromkeys(language for language, _ in self.parts))

    def splits(self, config: str) -> list[str]:
        return [split for language, split in self.parts if language == config]

    def report(self) -> Any:
        return self.own_report


def in_memory(parts: dict[tuple[str, str], Pairs], **report: Any) -> InMemory:
    return InMemory("org/pairs", None, "0123abc", parts, report)


def numbered(language: str, count: int) -> Pairs:
    return [(f"{language} message {n}", f"{language} reply {n}") for n in range(count)]


def sheet_of(folder: Path, annotator: int = 1) -> Path:
    return folder / "sheets" / f"annotator-{annotator}.csv"


def page_of(folder: Path, annotator: int = 1) -> Path:
    return folder / "pages" / f"annotator-{annotator}.html"


def load(path: Path) -> list[Row]:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def save(path: Path, rows: list[Row], **form: Any) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), **form)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode("utf-8-sig"))


def judge(path: Path, answer: Callable[[Row, str], str], questions: Sequence[str] = ("toxic",)) -> None:
    """Fill in a sheet: the answer of a row to a question."""
    save(path, [{**row, **{question: answer(row, question) for question in questions}} for row in load(path)])


def change(path: Path, row: int, **cells: str) -> None:
    """Change cells of one row, 0 the first."""
    rows = load(path)
    rows[row] |= cells
    save(path, rows)
