"""`report.html` of a build from dumps: one file without scripts or links to elsewhere; the funnel, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from mrs_datasets.prepared.pass_tables import pass_notes, pass_tables
from mrs_datasets.prepared.report import PassEntry

PAGE = "report.html"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; } td, th { padding: .25em .6em; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { border-bottom: 1px solid #999; }
.bar { background: #e4e9ee; } .bar i { display: block; height: 1.1em; background: #20639b; }
small { color: #666; }
"""


def funnel_page(report: dict[str, Any]) -> str:
    """The page of a report with its `pipeline`; equal reports give equal bytes."""
    pipeline = report["pipeline"]
    top = max((entry["in"] for entry in pipeline["stages"]), default=1)
    stages = "".join(
        _row(entry["stage"], entry["out"], entry["in"], top, entry["dropped"]) for entry in pipeline["stages"]
    )
    languages = sorted(pipeline["languages"].items(), key=lambda item: (-item[1].get("kept", 0), item[0]))
    most = max((sum(row.values()) for _, row in languages), default=1)
    funnel = "".join(
        _row(code, row.get("kept", 0), sum(row.values()), most, {k: n for k, n in row.items() if k != "kept"})
        for code, row in languages
    )
    dumps = ", ".join(f"{escape(dump['name'])} ({dump['bytes']:,} bytes)" for dump in pipeline["dumps"])
    engine = "".join(f"; {escape(key)} {escape(value)}" for key, value in pipeline.get("engine", {}).items())
    changes = ", ".join(f"{escape(name)} = {escape(str(value))}" for name, value in pipeline["departures"].items())
    configs = "".join(
        f"<tr><td>{escape(config)}</td><td>{escape(', '.join(f'{split} {facts_of[0]:,}' for split, facts_of in rows))}"
        "</td></tr>"
        for config, rows in (
            (config, [(split, (facts["rows"],)) for split, facts in splits.items()])
            for config, splits in report["configs"].items()
        )
    )
    head = '<tr><th>{}</th><th>kept</th><th>of</th><th style="width:35%"></th><th>dropped</th></tr>'
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{escape(report["name"])}</title><style>{STYLE}</style>
<h1>{escape(report["name"])}</h1>
<p>Profile <b>{escape(pipeline["profile"])}</b>; changed: {changes or "nothing"}.<br>
<small>{dumps}; mrs-suggest {escape(report["version"])}{engine}</small></p>
<h2>Stages</h2><table>{head.format("stage")}{stages}</table>
<h2>Languages</h2><table>{head.format("language")}{funnel}</table>
{_passes(report.get("passes", []))}<h2>The data set</h2><table><tr><th>config</th><th>rows</th></tr>{configs}</table>
{_warnings(pipeline["warnings"])}</html>
"""


def _row(name: str, kept: int, came: int, most: int, dropped: dict[str, int]) -> str:
    reasons = ", ".join(f"{escape(reason)} {count:,}" for reason, count in sorted(dropped.items(), key=lambda i: -i[1]))
    width, share = 100 * came / max(most, 1), 100 * kept / max(came, 1)
    return (
        f"<tr><td>{escape(name)}</td><td class=n>{kept:,}</td><td class=n>{came:,}</td><td><div class=bar "
        f'style="width:{width:.2f}%"><i style="width:{share:.2f}%"></i></div></td>'
        f"<td><small>{reasons}</small></td></tr>"
    )


def _passes(passes: Sequence[PassEntry]) -> str:
    """The tables of the passes."""
    parts = []
    for entry in passes:
        parts.append(f"<h2>{escape(entry['name'].capitalize())}</h2>")
        for title, (header, *rows) in pass_tables(entry):
            head = "".join(f"<th>{escape(name)}</th>" for name in header)
            body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
            parts.append(f"<h3>{escape(title.capitalize())}</h3><table><tr>{head}</tr>{body}</table>\n")
        parts += [f"<p>{escape(note)}</p>\n" for note in pass_notes(entry)]
    return "".join(parts)


def _warnings(warnings: list[str]) -> str:
    if not warnings:
        return ""
    return "<h2>Warnings</h2><ul>" + "".join(f"<li>{escape(text)}</li>" for text in warnings) + "</ul>"
