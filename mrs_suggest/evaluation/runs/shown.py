"""A comparison of runs as tables on a terminal, in Markdown and in LaTeX, as JSON, and as a picture."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from mrs_metrics.power import METHOD
from mrs_metrics.significance import ALPHA, STUDENTISED
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.report.tables import Entry, Grid, grid_latex, grid_markdown, latex_comment, print_grid
from mrs_suggest.common.text.text import interval_text, visible, visible_json
from mrs_suggest.evaluation.comparison import grouped_signatures
from mrs_suggest.evaluation.runs.comparing import Field, Lead, RunsTable
from mrs_suggest.evaluation.runs.figures import Metric, in_words
from mrs_suggest.evaluation.runs.grouping import Row
from mrs_suggest.evaluation.tables import short_number

PICTURES = (".png", ".pdf", ".svg")
BAR = 0.8  # share of a language's place that its bars fill


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


def as_json(table: RunsTable) -> str:
    """All of a comparison: every seed's value and interval, means, leads, signatures, footnotes and warnings."""
    record: dict[str, Any] = {
        "task": table.task.name,
        "rows": [_row(table, row) for row in table.rows],
        "over": table.over.name,
        "unit": table.unit,
        "metrics": [
            {
                "metric": metric.key,
                "title": metric.title,
                "better": {1: "high", -1: "low"}.get(metric.better),
                "shared_languages": {part: table.shared(part, metric) for part in table.parts},
            }
            for metric in table.metrics
        ],
        "leads": [_lead(lead) for lead in table.leads],
        "gaps": [{**_lead(gap), "p": gap.p, "p_holm": gap.p_holm} for gap in table.gaps],
        "wins": table.wins,
        "judge": table.judge,
        "signatures": [
            {"part": part, "language": code, "metric": key, "signature": text}
            for (part, code), of in table.signatures.items()
            for key, text in of.items()
        ],
        "footnotes": table.footnotes,
        "warnings": list(table.warnings),
    }
    return visible_json(record, indent=2) + "\n"


TEXTS: dict[str, Callable[[RunsTable], str]] = {".md": as_markdown, ".tex": as_latex, ".json": as_json}


def require_kind(path: Path) -> None:
    """Refuse, by an InputError, a file of an unknown kind or in a folder that is not there, before work begins."""
    if path.suffix not in (*TEXTS, *PICTURES):
        raise InputError(f"--out {path}: expected a file that ends in .md, .tex, .json, .png, .pdf or .svg.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"--out {path}: the folder {path.parent} does not exist; make it, or choose another.")


def write_runs(table: RunsTable, path: Path) -> None:
    """Write a comparison to a file of the kind that its ending names; InputError if it cannot be written."""
    if path.suffix in PICTURES:
        _draw(table, path)
        return
    with writing(path, "choose another file"):
        atomic_write(path, TEXTS[path.suffix](table))


def _lead(lead: Lead) -> dict[str, Any]:
    return {
        "row": lead.row,
        "over": lead.over,
        "part": lead.scope[0],
        "language": lead.scope[1],
        "metric": "weighted",
        "difference": lead.difference,
        "interval": lead.interval.ends,
        "by_seed": {seed: interval.ends for seed, interval in lead.by_seed.items()},
        "detectable_difference": lead.detectable,
    }


def _row(table: RunsTable, row: Row) -> dict[str, Any]:
    runs = [
        {
            "name": run.name,
            "trainer": run.record["trainer"],
            **{key: run.record.get(key) for key in ("seed", "commit", "data", *{"answered"} & run.record.keys())},
        }
        for run in row.runs
    ]
    figures = [
        {"part": scope[0], "language": scope[1], "metric": key, **_as_json(found)}
        for (name, scope, key), found in table.fields.items()
        if name == row.name
    ]
    means = [
        {"part": part, "metric": metric.key, "languages": table.shared(part, metric), **_as_json(mean)}
        for part in table.parts
        for metric in table.metrics
        if (mean := table.mean(row, part, metric))
    ]
    return {"name": row.name, "runs": runs, "figures": figures, "means_over_shared_languages": means}


def _as_json(found: Field) -> dict[str, Any]:
    return {**asdict(found), "mean": found.mean, "deviation": found.deviation}


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
    for what, leads, over in (("Lead", table.leads, table.over.label), ("Gap", table.gaps, "")):
        if leads:
            found.append(_leads_grid(table, leads, f"{what} in weighted ROUGE over {over or leads[0].over}"))
    return found


def _notes(table: RunsTable) -> list[str]:
    notes = []
    if any(row.seeds[1:] for row in table.rows):
        notes.append("±: standard deviation over the seeds (n - 1).")
    if any(not row.seeds[1:] for row in table.rows) and any(len(table.languages(part)) == 1 for part in table.parts):
        notes.append("Brackets after a figure: its 95 % interval over the test examples.")
    if table.leads:
        notes.append(
            "Leads: difference of the means over the seeds, with its paired 95 % interval over the same test "
            f"examples, by {table.unit}; *: it excludes 0."
        )
        least: dict[str, set[str]] = {}
        for lead in table.leads:
            least.setdefault(in_words(lead.scope), set()).add(short_number(lead.detectable, 4) or "unknown")
        ranges = (f"{code} {' to '.join(sorted({min(some), max(some)}))}" for code, some in least.items())
        notes.append(f"Smallest detectable lead ({METHOD}): {', '.join(ranges)}.")
    if table.gaps:
        notes.append(
            f"Gaps: difference of the means over the examples of two languages, with its 95 % interval by {table.unit} "
            f"({STUDENTISED}); *: p < {ALPHA:g} in an unpaired test, after Holm's correction over the languages."
        )
    notes += [f"({mark}): {text}." for mark, text in table.footnotes.items()]
    for run in (run for row in table.rows for run in row.runs if "answered" in run.record):
        notes.append(f"{run.name}: {', '.join(f'{key} {value}' for key, value in run.record['answered'].items())}.")
    for win in table.wins:
        share = f"{win['share']:.4f} {interval_text(win['interval'], '{:.4f}'.format)} of {win['n']:,} messages"
        notes.append(f"The judge prefers {win['row']} to {table.over.name} ({win['language']}) in {share}, ties half.")
    return [*notes, *table.judge, *table.warnings]


def _signatures(table: RunsTable) -> list[str]:
    """How the figures were computed, each once with its languages."""
    found: dict[str, dict[str, str]] = {}
    for (_, code), of in table.signatures.items():
        found.setdefault(code, {}).update({text: text for text in of.values()})
    return grouped_signatures({"signatures": found})


def _metrics_grid(table: RunsTable, part: str, code: str) -> Grid:
    metrics = [metric for metric in table.metrics if table.languages(part, metric)]
    best = {metric.key: table.best(part, metric, code) for metric in metrics}
    rows: list[list[str | Entry]] = []
    for row in table.rows:
        cells = [
            _cell(table.field(row, part, code, metric), metric, row.name in best[metric.key], interval=True)
            for metric in metrics
        ]
        rows += [[row.label, *cells]] if any(cell.text for cell in cells) else []
    return Grid(["", *(metric.title for metric in metrics)], rows, title=in_words((part, code)))


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


def _leads_grid(table: RunsTable, leads: Sequence[Lead], title: str) -> Grid:
    found = {(lead.row, lead.scope): lead for lead in leads}
    scopes = [scope for scope in table.scopes if any(lead.scope == scope for lead in leads)]
    rows = [
        [row.label, *(_lead_cell(found.get((row.name, scope))) for scope in scopes)]
        for row in table.rows
        if any((row.name, scope) in found for scope in scopes)
    ]
    header = ["", *map(in_words, scopes)]
    return Grid(header, rows, title=title)


def _cell(found: Field | None, metric: Metric, best: bool, interval: bool = False) -> Entry:
    if found is None:
        return Entry("")
    text = short_number(found.mean, metric.digits)
    if found.deviation is not None:
        text += f" ± {short_number(found.deviation, metric.digits)}"
    elif interval and found.intervals:
        ends = next(iter(found.intervals.values()))
        text += f" {interval_text(ends, partial(short_number, digits=metric.digits))}"
    return Entry(text, marks=found.mark, bold=best)


def _lead_cell(lead: Lead | None) -> str:
    if lead is None:
        return ""
    low, high = lead.interval
    differs = low > 0 or high < 0 if lead.p_holm is None else lead.p_holm < ALPHA
    ends = interval_text(lead.interval, partial(short_number, digits=4, sign=True))
    return f"{short_number(lead.difference, 4, sign=True)}{'*' * differs} {ends}"


def _in_pipes(text: str) -> str:
    return text.replace("|", "\\|")


def _draw(table: RunsTable, path: Path) -> None:
    """Bars of each metric by language, a colour for each row, with their errors."""
    panels = [(part, metric) for part in table.parts for metric in table.metrics if table.languages(part, metric)]
    longest = max(len(table.languages(*panel)) for panel in panels)
    width = max(6.0, 1.5 + longest * (0.4 + 0.22 * len(table.rows)))
    legend = 0.25 * len(table.rows) + 0.3
    with drawing(path, len(panels), figsize=(width, 2.6 * len(panels) + legend), squeeze=False) as (figure, axes):
        for axis, (part, metric) in zip(axes[:, 0], panels, strict=True):
            _bars(axis, table, part, metric)
        rows: dict[str, Any] = {}  # every row once
        for axis in axes[:, 0]:
            handles, labels = axis.get_legend_handles_labels()
            rows |= dict(zip(labels, handles, strict=True))
        figure.legend(rows.values(), rows.keys(), loc="outside lower left", fontsize=8)
        figure.suptitle(
            "Error bars: standard deviation over seeds, or the 95 % interval of one run. Hatched: not compared.",
            fontsize=8,
        )


def _bars(axis: Any, table: RunsTable, part: str, metric: Metric) -> None:
    codes, size = table.languages(part, metric), BAR / len(table.rows)
    for x, code in enumerate(codes):
        having = [(row, found) for row in table.rows if (found := table.field(row, part, code, metric))]
        for number, (row, found) in enumerate(having):
            place = x + (number - (len(having) - 1) / 2) * size
            color = f"C{table.rows.index(row) % 10}"
            hatch = "//" if found.mark else ""
            axis.bar(place, found.mean, size, color=color, hatch=hatch, label=row.label)
            if ends := _ends(found):
                errors = [[found.mean - ends[0]], [ends[1] - found.mean]]
                axis.errorbar(place, found.mean, yerr=errors, color="black", capsize=2, linewidth=1)
    axis.set_xticks(range(len(codes)), codes)
    axis.set_title(in_words((part, metric.title)), fontsize=9)
    axis.grid(axis="y", alpha=0.3)


def _ends(found: Field) -> list[float] | None:
    """The ends of a bar's error: one standard deviation over the seeds, or the interval of a single run."""
    if found.deviation is not None:
        return [found.mean - found.deviation, found.mean + found.deviation]
    return next(iter(found.intervals.values()), None)
