"""The facts of passes in `report.json`, as tables for the card and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mrs_datasets.prepared.report import PassEntry

REJECTS = "rejects"  # in a pass's `about`: examples of what it dropped, which are for inspection alone
NOTES = "notes"  # in a pass's `about`: sentences for whoever reads the card
SILENT = ("identity", REJECTS, NOTES)


def pass_tables(entry: PassEntry) -> list[tuple[str, list[list[str]]]]:
    """The tables in a pass's `about`: lists of mappings (a row each), and mappings of mappings (a named row each).

    Returns:
        Titles and cells; the first row of cells is the header.
    """
    found: list[tuple[str, list[list[str]]]] = []
    for title, content in entry["about"].items():
        if title in SILENT or not content:
            continue
        if isinstance(content, Mapping) and all(isinstance(row, Mapping) for row in content.values()):
            rows: list[Mapping[str, Any]] = [{"": name, **row} for name, row in content.items()]
        elif isinstance(content, list) and all(isinstance(row, Mapping) for row in content):
            rows = content
        else:
            continue
        columns = list(dict.fromkeys(name for row in rows for name in row))
        found.append((title, [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]))
    return found


def pass_notes(entry: PassEntry) -> list[str]:
    """The sentences in a pass's `about`."""
    return [str(note) for note in entry["about"].get(NOTES, ())]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else " ".join(str(value).replace("|", "/").split())
