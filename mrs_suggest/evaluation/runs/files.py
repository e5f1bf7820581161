"""A comparison of runs as JSON, and as a picture."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, writing
from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.text.text import visible_json
from mrs_suggest.evaluation.pairing import Interval
from mrs_suggest.evaluation.runs.comparing import Field, RunsTable
from mrs_suggest.evaluation.runs.figures import Metric
from mrs_suggest.evaluation.runs.grouping import Row
from mrs_suggest.evaluation.runs.shown import as_latex, as_markdown

TEXTS = {".md": as_markdown, ".tex": as_latex}
PICTURES = (".png", ".pdf", ".svg")
BAR = 0.8  # share of a language's place that its bars fill


def require_kind(path: Path) -> None:
    """Refuse a file of an unknown kind, or a folder that is not there, before anything is computed.

    Raises:
        InputError: what was expected.
    """
    if path.suffix not in (*TEXTS, ".json", *PICTURES):
        raise InputError(f"--out {path}: expected a file that ends in .md, .tex, .json, .png, .pdf or .svg.")
    if not path.absolute().parent.is_dir():
        raise InputError(f"--out {path}: the folder {path.parent} does not exist; make it, or choose another.")


def write_runs(table: RunsTable, path: Path) -> None:
    """Write a comparison to a file of the kind that its ending names.

    Raises:
        InputError: it cannot be written.
    """
    if path.suffix in PICTURES:
        _draw(table, path)
        return
    text = as_json(table) if path.suffix == ".json" else TEXTS[path.suffix](table)
    with writing(path, "choose another file"):
        atomic_write(path, text)


def as_json(table: RunsTable) -> str:
    """All of a comparison: every seed's value and interval, means, leads, signatures, footnotes and warnings."""
    record: dict[str, Any] = {
        "task": table.task.name,
        "rows": [_row(table, row) for row in table.rows],
        "over": table.over.name,
        "metrics": [
            {
                "metric": metric.key,
                "title": metric.title,
                "better": {1: "high", -1: "low"}.get(metric.better),
                "shared_languages": {part: table.shared(part, metric) for part in table.parts},
            }
            for metric in table.metrics
        ],
        "leads": [
            {
                "row": lead.row,
                "over": lead.over,
                "part": lead.scope[0],
                "language": lead.scope[1],
                "metric": "weighted",
                "difference": lead.difference,
                "interval": lead.interval,
                "by_seed": lead.by_seed,
            }
            for lead in table.leads
        ],
        "signatures": [
            {"part": part, "language": code, "metric": key, "signature": text}
            for (part, code), of in table.signatures.items()
            for key, text in of.items()
        ],
        "footnotes": table.footnotes,
        "warnings": list(table.warnings),
    }
    return visible_json(record, indent=2) + "\n"


def _row(table: RunsTable, row: Row) -> dict[str, Any]:
    runs = [
        {
            "name": run.name,
            "trainer": run.record["trainer"],
            "seed": run.record.get("seed"),
            "commit": run.record.get("commit"),
            "data": run.record.get("data"),
        }
        for run in row.runs
    ]
    figures = [
        {"part": scope[0], "language": scope[1], "metric": key, **_field(found)}
        for (name, scope, key), found in table.fields.items()
        if name == row.name
    ]
    means = [
        {"part": part, "metric": metric.key, "languages": table.shared(part, metric), **_field(mean)}
        for part in table.parts
        for metric in table.metrics
        if (mean := table.mean(row, part, metric))
    ]
    return {"name": row.name, "runs": runs, "figures": figures, "means_over_shared_languages": means}


def _field(found: Field) -> dict[str, Any]:
    return {**asdict(found), "mean": found.mean, "deviation": found.deviation}


def _draw(table: RunsTable, path: Path) -> None:
    """Bars of each metric by language, a colour for each row, with their errors."""
    panels = [(part, metric) for part in table.parts for metric in table.metrics if table.languages(part, metric)]
    longest = max(len(table.languages(*panel)) for panel in panels)
    width = max(6.0, 1.5 + longest * (0.4 + 0.22 * len(table.rows)))
    legend = 0.25 * len(table.rows) + 0.3
    with drawing(path, len(panels), figsize=(width, 2.6 * len(panels) + legend), squeeze=False) as (figure, axes):
        for axis, (part, metric) in zip(axes[:, 0], panels, strict=True):
            _bars(axis, table, part, metric)
        handles, labels = _legend(axes[:, 0])
        figure.legend(handles, labels, loc="outside lower left", fontsize=8)
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
    axis.set_title(" ".join(filter(None, (part, metric.title))), fontsize=9)
    axis.grid(axis="y", alpha=0.3)


def _ends(found: Field) -> Interval | None:
    """The ends of a bar's error: one standard deviation over the seeds, or the interval of a single run."""
    if found.deviation is not None:
        return [found.mean - found.deviation, found.mean + found.deviation]
    return next(iter(found.intervals.values()), None)


def _legend(axes: Any) -> tuple[list[Any], list[str]]:
    """Every row once."""
    found = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    return list(found.values()), list(found)
