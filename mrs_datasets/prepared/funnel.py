"""How a data set was built, as blocks of a page: `README.md` has them in Markdown, `report.html` in HTML."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrs_datasets.prepared.report import NOTES, PassEntry, pass_tables
from mrs_suggest.common.report.pages import Block, Bullets, Entry, Grid, Heading, Paragraph, as_html


def build_blocks(pipeline: Mapping[str, Any]) -> Iterator[Block]:
    """The dumps, stages and languages of a build from dumps."""
    changes = ", ".join(f"`{name}` {value}" for name, value in pipeline["departures"].items())
    dumps = []
    for dump in pipeline["dumps"]:
        read = f"in part: {dump['lossy']}" if dump["lossy"] else "all"
        dumps.append([dump["name"], f"{dump['bytes']:,}", Entry(dump["sha256"], code=True), read])
    languages = []
    for code, row in sorted(pipeline["languages"].items(), key=lambda item: (-item[1].get("kept", 0), item[0])):
        dropped = {why: count for why, count in row.items() if why != "kept"}
        languages.append([code, f"{row.get('kept', 0):,}", reasons(dropped)])
    yield Heading("How it was built")
    made = f"changed: {changes}" if changes else "unchanged"
    yield Paragraph(f"{len(dumps)} dumps; profile `{pipeline['profile']}`, {made}.")
    yield Grid(["dump", "bytes", "SHA-256", "read"], dumps)
    yield stages_grid(pipeline["stages"])
    yield Grid(["language", "pairs kept", "dropped"], languages, texts=True)


def stages_grid(stages: Sequence[Mapping[str, Any]]) -> Grid:
    """What each stage got, kept and dropped."""
    rows = [[one["stage"], f"{one['in']:,}", f"{one['out']:,}", reasons(one["dropped"])] for one in stages]
    return Grid(["stage", "in", "out", "dropped"], rows, texts=True)


def pass_blocks(passes: Sequence[PassEntry]) -> Iterator[Block]:
    """Rows that toxicity filtering dropped, and those that translation added."""
    for entry in passes:
        why = reasons({reason: count for reason, count in entry["dropped"].items() if count}) or "nothing"
        yield Heading(entry["name"].capitalize())
        yield Paragraph(f"In {entry['in']:,}, out {entry['out']:,}; dropped: {why}.")
        for title, (header, *rows) in pass_tables(entry):
            yield Paragraph(f"{title.capitalize()}:")
            yield Grid(header, rows)
        if notes := entry["about"].get(NOTES):
            yield Bullets(list(map(str, notes)))


def reasons(dropped: Mapping[str, int]) -> str:
    """The numbers of dropped rows by reason, the most frequent first."""
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items(), key=lambda item: -item[1]))


def funnel_page(report: Mapping[str, Any]) -> str:
    """`report.html`: one file without scripts or links to elsewhere; equal reports give equal bytes."""
    pipeline = report["pipeline"]
    engine = "".join(f"; {key} {value}" for key, value in pipeline.get("engine", {}).items())
    configs = [
        [config, ", ".join(f"{split} {facts['rows']:,}" for split, facts in splits.items())]
        for config, splits in report["configs"].items()
    ]
    warnings: list[Block] = [Heading("Warnings"), Bullets(pipeline["warnings"])] if pipeline["warnings"] else []
    blocks: list[Block] = [
        Heading(report["name"], 1),
        Paragraph(f"mrs-suggest {report['version']}{engine}", note=True),
        *build_blocks(pipeline),
        *pass_blocks(report.get("passes", [])),
        Heading("The data set"),
        Grid(["config", "rows"], configs, texts=True),
        *warnings,
    ]
    return as_html(blocks, Path())
