"""A comparison of runs as tables: on a terminal, in Markdown, in LaTeX."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from mrs_suggest.common.report import latex
from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.report.console import make_console
from mrs_suggest.common.text.text import visible
from mrs_suggest.evaluation.comparison import grouped_signatures
from mrs_suggest.evaluation.runs.comparing import Field, RunsTable
from mrs_suggest.evaluation.runs.figures import Metric
from mrs_suggest.evaluation.runs.leads import Lead
from mrs_suggest.evaluation.tables import short_number

APART = "*"  # after a lead whose interval excludes 0


@dataclass(frozen=True)
class Cell:
    """A field of a table.

    Attributes:
        mark: of a footnote.
        best: shown in bold.
    """

    text: str = ""
    mark: str = ""
    best: bool = False


@dataclass(frozen=True)
class Grid:
    """One table: a header that begins with the rows' column, and the fields of each row."""

    title: str
    header: list[str]
    rows: list[tuple[str, list[Cell]]]


def grids(table: RunsTable) -> Iterator[Grid]:
    """Every table: by language, metric by metric, or all metrics where there is one language; then the leads."""
    for part in table.parts:
        codes = table.languages(part)
        if len(codes) == 1:
            yield _metrics_grid(table, part, codes[0])
            continue
        for metric in table.metrics:
            if table.languages(part, metric):
                yield _languages_grid(table, part, metric)
    if table.leads:
        yield _leads_grid(table)


def notes(table: RunsTable) -> list[str]:
    """What must be known to read the tables, with all warnings."""
    told = []
    if any(row.seeds[1:] for row in table.rows):
        told.append("±: standard deviation over the seeds (n - 1).")
    if any(not row.seeds[1:] for row in table.rows) and any(len(table.languages(part)) == 1 for part in table.parts):
        told.append("Brackets after a figure: its 95 % interval over the test examples.")
    if table.leads:
        told.append(
            "Leads: difference of the means over the seeds, with its paired 95 % interval over the same test "
            f"examples; {APART}: it excludes 0."
        )
    told += [f"({mark}): {text}." for mark, text in table.footnotes.items()]
    return [*told, *table.warnings]


def signatures(table: RunsTable) -> list[str]:
    """How the figures were computed, each once with its languages."""
    found: dict[str, dict[str, str]] = {}
    for (_, code), of in table.signatures.items():
        found.setdefault(code, {}).update({text: text for text in of.values()})
    return grouped_signatures({"signatures": found})


def print_runs(table: RunsTable) -> None:
    """Print the tables on the terminal; where the output is none, at their full width."""
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    console = make_console(markup=False, emoji=False)
    wide = console.options.update(max_width=1 << 20)
    for grid in grids(table):
        made = Table(title=visible(grid.title), title_justify="left")
        made.add_column(grid.header[0])
        for title in grid.header[1:]:
            made.add_column(title, justify="right")
        for name, cells in grid.rows:
            texts = [Text(_marked(cell), style="bold" if cell.best else "") for cell in cells]
            made.add_row(visible(name), *texts)
        if not sys.stdout.isatty():
            console.width = max(console.width, Measurement.get(console, wide, made).maximum)
        console.print(made)
    for note in notes(table):
        console.print(note, soft_wrap=True)
    for text in signatures(table):
        console.print(text, style="dim", soft_wrap=True)


def as_markdown(table: RunsTable) -> str:
    """The tables for a README, the best figure of a column in bold; notes and signatures below."""
    lines = []
    for grid in grids(table):
        header = [_in_pipes(title) for title in grid.header]
        rows = [
            [_in_pipes(name), *(f"**{_marked(cell)}**" if cell.best else _marked(cell) for cell in cells)]
            for name, cells in grid.rows
        ]
        lines += [f"{_in_pipes(grid.title)}:", "", markdown_table(header, rows), ""]
    lines += [f"- {_in_pipes(note)}" for note in notes(table)] + [f"- `{text}`" for text in signatures(table)]
    return visible("\n".join(lines), "\n") + "\n"


def as_latex(table: RunsTable) -> str:
    """A `tabular` for each table (package booktabs), the best figure of a column in bold; the rest as comments."""
    lines = []
    for grid in grids(table):
        rows = []
        for name, cells in grid.rows:
            plain = [latex.escaped(cell.text).replace("-", "$-$") for cell in cells]  # a minus sign
            texts = [latex.bold(text) if cell.best else text for text, cell in zip(plain, cells, strict=True)]
            marks = [f"$^{{{cell.mark}}}$" if cell.mark else "" for cell in cells]
            rows.append([latex.escaped(name), *(text + mark for text, mark in zip(texts, marks, strict=True))])
        header = [latex.escaped(title) for title in grid.header]
        lines += [latex.comment(grid.title), latex.tabular(header, rows), ""]
    lines += [latex.comment(text) for text in (*notes(table), *signatures(table))]
    return visible("\n".join(lines), "\n") + "\n"


def _metrics_grid(table: RunsTable, part: str, code: str) -> Grid:
    """All metrics of one language, single figures with their intervals."""
    metrics = [metric for metric in table.metrics if table.languages(part, metric)]
    best = {metric.key: table.best(part, metric, code) for metric in metrics}
    rows = []
    for row in table.rows:
        fields = [table.field(row, part, code, metric) for metric in metrics]
        cells = [
            _cell(one, metric, row.name in best[metric.key], interval=True)
            for one, metric in zip(fields, metrics, strict=True)
        ]
        rows += [(row.label, cells)] if any(cell.text for cell in cells) else []
    return Grid(" ".join(filter(None, (part, code))), ["", *(metric.title for metric in metrics)], rows)


def _languages_grid(table: RunsTable, part: str, metric: Metric) -> Grid:
    """One metric by language, with the mean over the languages that all rows were tested in."""
    codes = table.languages(part, metric)
    shared = table.shared(part, metric)
    header = ["", *codes]
    if len(shared) > 1:
        header.append(f"mean of all {len(codes)}" if shared == codes else f"mean of {' '.join(shared)}")
    best = {code: table.best(part, metric, code) for code in codes}
    best_mean = table.best(part, metric, None) if len(shared) > 1 else set()
    rows = []
    for row in table.rows:
        cells = [_cell(table.field(row, part, code, metric), metric, row.name in best[code]) for code in codes]
        if not any(cell.text for cell in cells):
            continue
        if len(shared) > 1:
            cells.append(_cell(table.mean(row, part, metric), metric, row.name in best_mean))
        rows.append((row.label, cells))
    return Grid(f"{part}: {metric.title}" if part else metric.title, header, rows)


def _leads_grid(table: RunsTable) -> Grid:
    found = {(lead.row, lead.scope): lead for lead in table.leads}
    scopes = [scope for scope in table.scopes if any(lead.scope == scope for lead in table.leads)]
    rows = [
        (row.label, [_lead_cell(found.get((row.name, scope))) for scope in scopes])
        for row in table.rows
        if any((row.name, scope) in found for scope in scopes)
    ]
    title = f"Lead in weighted ROUGE over {table.over.label}"
    return Grid(title, ["", *(" ".join(filter(None, scope)) for scope in scopes)], rows)


def _cell(found: Field | None, metric: Metric, best: bool, interval: bool = False) -> Cell:
    if found is None:
        return Cell()
    text = short_number(found.mean, metric.digits)
    if found.deviation is not None:
        text += f" ± {short_number(found.deviation, metric.digits)}"
    elif interval and found.intervals:
        low, high = next(iter(found.intervals.values()))
        text += f" [{short_number(low, metric.digits)}, {short_number(high, metric.digits)}]"
    return Cell(text, found.mark, best)


def _lead_cell(lead: Lead | None) -> Cell:
    if lead is None:
        return Cell()
    low, high = (short_number(end, 4, sign=True) for end in lead.interval)
    return Cell(f"{short_number(lead.difference, 4, sign=True)}{APART if lead.told_apart else ''} [{low}, {high}]")


def _marked(cell: Cell) -> str:
    return f"{cell.text} ({cell.mark})" if cell.mark else cell.text


def _in_pipes(text: str) -> str:
    """A text inside a Markdown table."""
    return text.replace("|", "\\|")
