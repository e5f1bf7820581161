"""Tables of scores: for a terminal, for a README, for a paper."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.report.console import make_console
from mrs_suggest.common.report.latex import comment, escaped, tabular
from mrs_suggest.common.text.text import visible
from mrs_suggest.evaluation.scores.metric_record import Figure
from mrs_suggest.evaluation.scores.metric_spec import Column

if TYPE_CHECKING:
    from rich.table import Table

Form = Literal["terminal", "markdown", "latex"]
GROUP_MARK = "*"  # after the figures of the best group


@dataclass(frozen=True)
class Row:
    """One row.

    Attributes:
        name: of the system, or of a pair of them.
        figures: by the keys of the columns.
        interval: low and high end, of the main figure; empty where there is none.
        best: whether the main figure is marked.
    """

    name: str
    figures: Mapping[str, Figure]
    interval: Sequence[float] = ()
    best: bool = False


@dataclass(frozen=True)
class ScoreTable:
    """Rows of figures; the main figure is shown with its interval."""

    rows: Sequence[Row]
    columns: Sequence[Column]
    main: str


def shown_columns(rows: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
    """The columns that one row or more has a figure for."""
    return [column for column in columns if any(row.figures.get(column.key) is not None for row in rows)]


def print_tables(tables: Sequence[ScoreTable], notes: Sequence[str], form: Form = "terminal") -> None:
    """Print tables one after the other, and all the notes below the last."""
    notes = list(dict.fromkeys(notes))
    for place, table in enumerate(tables, start=1):
        below = notes if place == len(tables) else []
        if form == "terminal":
            _print_terminal(table, below)
        else:
            make = as_markdown if form == "markdown" else as_latex
            print(visible(make(table, below), "\n"))


def _cells(row: Row, columns: Sequence[Column], main: str) -> list[str]:
    """The figures of a row as text; the main one with its interval, and marked in the best group."""
    texts = []
    for column in columns:
        value = row.figures.get(column.key)
        text = "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.{column.digits}f}"
        if column.key == main and row.interval:
            low, high = row.interval
            text += f" [{low:.{column.digits}f}, {high:.{column.digits}f}]"
            text += GROUP_MARK if row.best else ""
        texts.append(text)
    return texts


def _print_terminal(table: ScoreTable, notes: Sequence[str]) -> None:
    """Print one figure per line for a single system or a table that is too wide, else one system per line.

    If the output is not a terminal, the table keeps its full width.
    """
    from rich.measure import Measurement

    console = make_console(markup=False, emoji=False)  # file names are not markup
    made = _by_row(table) if len(table.rows) > 1 else _by_column(table)
    wide = console.options.update(max_width=1 << 20)
    if sys.stdout.isatty() and Measurement.get(console, wide, made).maximum > console.width:
        made = _by_column(table)
    if not sys.stdout.isatty():
        console.width = max(console.width, Measurement.get(console, wide, made).maximum)
    console.print(made)
    for note in notes:
        console.print(note, style="dim", soft_wrap=True)


def _by_row(table: ScoreTable) -> Table:
    from rich.table import Table

    made = Table("System")
    for column in table.columns:
        made.add_column(column.name, justify="right", no_wrap=True)
    for row in table.rows:
        made.add_row(row.name, *_cells(row, table.columns, table.main), style="bold" if row.best else None)
    return made


def _by_column(table: ScoreTable) -> Table:
    from rich.table import Table

    alone = len(table.rows) == 1
    made = Table(title=table.rows[0].name if alone else None, title_justify="left", show_header=not alone)
    made.add_column()
    for row in table.rows:
        made.add_column(row.name, justify="right")
    lines = zip(*(_cells(row, table.columns, table.main) for row in table.rows), strict=True)
    for column, texts in zip(table.columns, lines, strict=True):
        if any(texts):
            made.add_row(column.name, *texts, style="bold" if column.key == table.main else None)
    return made


def as_markdown(table: ScoreTable, notes: Sequence[str]) -> str:
    """A table for a README, the notes below it."""
    header = ["system", *(column.name for column in table.columns)]
    rows = [[row.name, *_cells(row, table.columns, table.main)] for row in table.rows]
    return "\n".join(
        [markdown_table(header, rows), "", *(f"- `{note}`" if "|" in note else f"- {note}" for note in notes)]
    )


def as_latex(table: ScoreTable, notes: Sequence[str]) -> str:
    """A `tabular` for a paper (package booktabs), the notes as comments."""
    rows = []
    for row in table.rows:
        texts = [escaped(text).replace(GROUP_MARK, "$^*$") for text in _cells(row, table.columns, table.main)]
        rows.append([escaped(row.name), *texts])
    header = ["System", *(escaped(column.name) for column in table.columns)]
    return "\n".join([*map(comment, notes), tabular(header, rows)])
