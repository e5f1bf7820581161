"""Counts of what the stages of a build did, for `report.json`, and `report.html`, which draws them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from mrs_datasets.prepared.report import PassEntry, pass_notes, pass_tables

MARKER, PAGE = "report.json", "report.html"  # every prepared folder has the first, those from dumps the second
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; margin: 1em 0; } td, th { padding: .25em .6em; text-align: left; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th { border-bottom: 1px solid #999; }
.bar { background: #e4e9ee; } .bar i { display: block; height: 1.1em; background: #20639b; }
small { color: #666; }
"""


@dataclass
class Funnel:
    """Counts that add up from stage to stage, and what else the report says about a build.

    Attributes:
        about: language model, profile, departures from it, and the engine's versions.
        dumps: `name`, `bytes`, `sha256` and `lossy` (why it was not read completely) of each.
        stages: `stage`, `in`, `out` and `dropped` (by reason) of each.
        languages: language -> outcome -> pairs.
        rejects: samples of dropped texts, by reason.
    """

    about: dict[str, Any]
    dumps: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    leakage: dict[str, dict[str, int]] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejects: dict[str, list[str]] = field(default_factory=dict)

    def add(self, stage: str, came: int, dropped: Mapping[str, int]) -> int:
        """Record a stage; return its input less what was dropped."""
        dropped = {reason: count for reason, count in dropped.items() if count}
        self.stages.append({"stage": stage, "in": came, "out": came - sum(dropped.values()), "dropped": dropped})
        return came - sum(dropped.values())

    def leave_out(self, language: str, reason: str) -> None:
        """Count a language's kept pairs as dropped, in its own counts and in the last stage."""
        row, stage = self.languages[language], self.stages[-1]
        pairs = row.pop("kept")
        row[reason] = row.get(reason, 0) + pairs
        stage["dropped"][reason] = stage["dropped"].get(reason, 0) + pairs
        stage["out"] -= pairs

    def as_dict(self) -> dict[str, Any]:
        """The part `pipeline` of `report.json`."""
        return {
            "dumps": self.dumps,
            **self.about,
            "stages": self.stages,
            "languages": self.languages,
            "leakage": self.leakage,
            "repairs": self.repairs,
            "warnings": self.warnings,
            **({"rejects": self.rejects} if self.rejects else {}),
        }


def funnel_page(report: dict[str, Any]) -> str:
    """`report.html`: one file without scripts or links to elsewhere; equal reports give equal bytes."""
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
    configs = ""
    for config, splits in report["configs"].items():
        rows = ", ".join(f"{split} {facts['rows']:,}" for split, facts in splits.items())
        configs += f"<tr><td>{escape(config)}</td><td>{escape(rows)}</td></tr>"
    warnings = "".join(f"<li>{escape(text)}</li>" for text in pipeline["warnings"])
    head = '<tr><th>{}</th><th>kept</th><th>of</th><th style="width:35%"></th><th>dropped</th></tr>'
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{escape(report["name"])}</title><style>{STYLE}</style>
<h1>{escape(report["name"])}</h1>
<p>Profile <b>{escape(pipeline["profile"])}</b>; changed: {changes or "nothing"}.<br>
<small>{dumps}; mrs-suggest {escape(report["version"])}{engine}</small></p>
<h2>Stages</h2><table>{head.format("stage")}{stages}</table>
<h2>Languages</h2><table>{head.format("language")}{funnel}</table>
{_passes(report.get("passes", []))}<h2>The data set</h2><table><tr><th>config</th><th>rows</th></tr>{configs}</table>
{f"<h2>Warnings</h2><ul>{warnings}</ul>" if warnings else ""}</html>
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
