"""Tables of scores: for a terminal, for a README, for a paper."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mrs_core.cards import markdown_table
from mrs_core.console import make_console

GROUP_MARK = "*"  # behind the figures of the best group


@dataclass(frozen=True)
class Column:
    """A column of figures: `key` of the record, its name, digits behind the point."""

    key: str
    name: str
    digits: int = 4


@dataclass
class ScoredSystem:
    """One system.

    Attributes:
        record: what `--json` prints: figures by name, `n`, `interval` (95 %) of the main figure, `signature`.
        values: (n,) per-example scores whose mean is the main figure, nan where one was skipped; empty where it is no
            mean.
        examples: (n,) what the system was scored on; empty where only their digest is known.
        digest: of the examples; two systems with the same one can be compared.
        rank: of its group, from 1; None where systems were not compared.
    """

    system: str
    record: dict[str, Any]
    values: Sequence[float] = ()
    examples: Sequence[str] = ()
    digest: str = ""
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.examples and not self.digest:
            self.digest = hashlib.sha256("\n".join(self.examples).encode()).hexdigest()


def cells(system: ScoredSystem, columns: Sequence[Column], main: str) -> list[str]:
    """The figures of a row as text; the main one with its interval, and marked in the best group."""
    texts = []
    for column in columns:
        value = system.record.get(column.key)
        text = "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.{column.digits}f}"
        if column.key == main and system.record.get("interval"):
            low, high = system.record["interval"]
            text += f" [{low:.{column.digits}f}, {high:.{column.digits}f}]"
            text += GROUP_MARK if system.rank == 1 else ""
        texts.append(text)
    return texts


def print_terminal(systems: Sequence[ScoredSystem], columns: Sequence[Column], main: str, notes: Sequence[str]) -> None:
    """One system, or several that do not fit: a figure a line; else a system a line.

    Whatever is no terminal gets the table as wide as it is.
    """
    from rich.measure import Measurement

    console = make_console(markup=False, emoji=False)  # names of files are no markup
    table = _lying(systems, columns, main) if len(systems) > 1 else _standing(systems, columns, main)
    wide = console.options.update(max_width=1 << 20)
    if sys.stdout.isatty() and Measurement.get(console, wide, table).maximum > console.width:
        table = _standing(systems, columns, main)
    if not sys.stdout.isatty():
        console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table)
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)


def _lying(systems: Sequence[ScoredSystem], columns: Sequence[Column], main: str) -> Any:
    from rich.table import Table

    table = Table("System")
    for column in columns:
        table.add_column(column.name, justify="right", no_wrap=True)
    for system in systems:
        table.add_row(system.system, *cells(system, columns, main), style="bold" if system.rank == 1 else None)
    return table


def _standing(systems: Sequence[ScoredSystem], columns: Sequence[Column], main: str) -> Any:
    from rich.table import Table

    alone = len(systems) == 1
    table = Table(title=systems[0].system if alone else None, title_justify="left", show_header=not alone)
    table.add_column()
    for system in systems:
        table.add_column(system.system, justify="right")
    rows = zip(*(cells(system, columns, main) for system in systems), strict=True)
    for column, texts in zip(columns, rows, strict=True):
        if any(texts):
            table.add_row(column.name, *texts, style="bold" if column.key == main else None)
    return table


def as_markdown(systems: Sequence[ScoredSystem], columns: Sequence[Column], main: str, notes: Sequence[str]) -> str:
    """A table for a README, the notes below it."""
    header = ["system", *(column.name for column in columns)]
    rows = [[system.system, *cells(system, columns, main)] for system in systems]
    return "\n".join(
        [markdown_table(header, rows), "", *(f"- `{note}`" if "|" in note else f"- {note}" for note in notes)]
    )


def as_latex(systems: Sequence[ScoredSystem], columns: Sequence[Column], main: str, notes: Sequence[str]) -> str:
    """A `tabular` for a paper (package booktabs), the notes as comments."""
    lines = [f"% {note}" for note in notes]
    lines += [f"\\begin{{tabular}}{{l{'r' * len(columns)}}}", "\\toprule"]
    lines += [" & ".join(["System", *(_escaped(column.name) for column in columns)]) + " \\\\", "\\midrule"]
    for system in systems:
        texts = [_escaped(text).replace(GROUP_MARK, "$^*$") for text in cells(system, columns, main)]
        lines.append(" & ".join([_escaped(system.system), *texts]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _escaped(text: str) -> str:
    return text.translate(_LATEX)


_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"}
)
