"""Tables of scores: for a terminal, for a README, for a paper."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mrs_core.cards import markdown_table

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
        values: (n,) per-example scores whose mean is the main figure; empty where it is no mean.
        rank: of its group, from 1; None where systems were not compared.
    """

    system: str
    record: dict[str, Any]
    values: Sequence[float] = field(default_factory=list)
    rank: int | None = None


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
    """One system: a figure a line; several: a system a line."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120)
    if len(systems) == 1:
        table = Table(title=systems[0].system, title_justify="left", show_header=False)
        table.add_column()
        table.add_column(justify="right")
        for column, text in zip(columns, cells(systems[0], columns, main), strict=True):
            if text:
                table.add_row(column.name, text, style="bold" if column.key == main else None)
    else:
        table = Table("System")
        for column in columns:
            table.add_column(column.name, justify="right")
        for system in systems:
            table.add_row(system.system, *cells(system, columns, main), style="bold" if system.rank == 1 else None)
    console.print(table)
    for note in notes:
        console.print(note, style="dim", highlight=False, soft_wrap=True, markup=False)


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
