"""A comparison of runs as tables: on a terminal, in Markdown, in LaTeX."""

from __future__ import annotations

from mrs_suggest.common.report.tables import Entry, Grid, grid_latex, grid_markdown, latex_comment, print_grid
from mrs_suggest.common.text.text import visible
from mrs_suggest.evaluation.comparison import grouped_signatures
from mrs_suggest.evaluation.runs.comparing import Field, RunsTable
from mrs_suggest.evaluation.runs.figures import Metric
from mrs_suggest.evaluation.runs.leads import Lead
from mrs_suggest.evaluation.tables import short_number


def print_runs(table: RunsTable) -> None:
    """Print the tables, with notes and signatures below the last."""
    *first, last = _grids(table)
    for grid in first:
        print_grid(grid)
    print_grid(last, [*_notes(table), *_signatures(table)])


def as_markdown(table: RunsTable) -> str:
    """The tables for a README, the best figure of a column in bold; notes and signatures below."""
    lines = [line for grid in _grids(table) for line in (f"{_in_pipes(grid.title)}:", "", grid_markdown(grid), "")]
    lines += [f"- {_in_pipes(note)}" for note in _notes(table)] + [f"- `{text}`" for text in _signatures(table)]
    return visible("\n".join(lines), "\n") + "\n"


def as_latex(table: RunsTable) -> str:
    """A `tabular` for each table (package booktabs), the best figure of a column in bold; the rest as comments."""
    lines = [line for grid in _grids(table) for line in (grid_latex(grid), "")]
    return "\n".join([*lines, *map(latex_comment, (*_notes(table), *_signatures(table)))]) + "\n"


def _grids(table: RunsTable) -> list[Grid]:
    """Every table: by language, metric by metric, or all metrics where there is one language; then the leads."""
    found = []
    for part in table.parts:
        codes = table.languages(part)
        if len(codes) == 1:
            found.append(_metrics_grid(table, part, codes[0]))
        else:
            metrics = [metric for metric in table.metrics if table.languages(part, metric)]
            found += [_languages_grid(table, part, metric) for metric in metrics]
    return [*found, _leads_grid(table)] if table.leads else found


def _notes(table: RunsTable) -> list[str]:
    """How to read the tables, with all warnings."""
    notes = []
    if any(row.seeds[1:] for row in table.rows):
        notes.append("±: standard deviation over the seeds (n - 1).")
    if any(not row.seeds[1:] for row in table.rows) and any(len(table.languages(part)) == 1 for part in table.parts):
        notes.append("Brackets after a figure: its 95 % interval over the test examples.")
    if table.leads:
        notes.append(
            "Leads: difference of the means over the seeds, with its paired 95 % interval over the same test "
            "examples; *: it excludes 0."
        )
    notes += [f"({mark}): {text}." for mark, text in table.footnotes.items()]
    return [*notes, *table.warnings]


def _signatures(table: RunsTable) -> list[str]:
    """How the figures were computed, each once with its languages."""
    found: dict[str, dict[str, str]] = {}
    for (_, code), of in table.signatures.items():
        found.setdefault(code, {}).update({text: text for text in of.values()})
    return grouped_signatures({"signatures": found})


def _metrics_grid(table: RunsTable, part: str, code: str) -> Grid:
    """All metrics of one language, single figures with their intervals."""
    metrics = [metric for metric in table.metrics if table.languages(part, metric)]
    best = {metric.key: table.best(part, metric, code) for metric in metrics}
    rows: list[list[str | Entry]] = []
    for row in table.rows:
        cells = [
            _cell(table.field(row, part, code, metric), metric, row.name in best[metric.key], interval=True)
            for metric in metrics
        ]
        rows += [[row.label, *cells]] if any(cell.text for cell in cells) else []
    return Grid(["", *(metric.title for metric in metrics)], rows, title=" ".join(filter(None, (part, code))))


def _languages_grid(table: RunsTable, part: str, metric: Metric) -> Grid:
    """One metric by language, with the mean over the languages that all rows were tested in."""
    codes = table.languages(part, metric)
    shared = table.shared(part, metric)
    header = ["", *codes]
    if len(shared) > 1:
        header.append(f"mean of all {len(codes)}" if shared == codes else f"mean of {' '.join(shared)}")
    best = {code: table.best(part, metric, code) for code in codes}
    best_mean = table.best(part, metric, None) if len(shared) > 1 else set()
    rows: list[list[str | Entry]] = []
    for row in table.rows:
        cells = [_cell(table.field(row, part, code, metric), metric, row.name in best[code]) for code in codes]
        if not any(cell.text for cell in cells):
            continue
        if len(shared) > 1:
            cells.append(_cell(table.mean(row, part, metric), metric, row.name in best_mean))
        rows.append([row.label, *cells])
    return Grid(header, rows, title=f"{part}: {metric.title}" if part else metric.title)


def _leads_grid(table: RunsTable) -> Grid:
    found = {(lead.row, lead.scope): lead for lead in table.leads}
    scopes = [scope for scope in table.scopes if any(lead.scope == scope for lead in table.leads)]
    rows = [
        [row.label, *(_lead_cell(found.get((row.name, scope))) for scope in scopes)]
        for row in table.rows
        if any((row.name, scope) in found for scope in scopes)
    ]
    header = ["", *(" ".join(filter(None, scope)) for scope in scopes)]
    return Grid(header, rows, title=f"Lead in weighted ROUGE over {table.over.label}")


def _cell(found: Field | None, metric: Metric, best: bool, interval: bool = False) -> Entry:
    if found is None:
        return Entry("")
    text = short_number(found.mean, metric.digits)
    if found.deviation is not None:
        text += f" ± {short_number(found.deviation, metric.digits)}"
    elif interval and found.intervals:
        low, high = next(iter(found.intervals.values()))
        text += f" [{short_number(low, metric.digits)}, {short_number(high, metric.digits)}]"
    return Entry(text, marks=found.mark, bold=best)


def _lead_cell(lead: Lead | None) -> str:
    if lead is None:
        return ""
    low, high = (short_number(end, 4, sign=True) for end in lead.interval)
    return f"{short_number(lead.difference, 4, sign=True)}{'*' if lead.told_apart else ''} [{low}, {high}]"


def _in_pipes(text: str) -> str:
    """A text inside a Markdown table."""
    return text.replace("|", "\\|")
