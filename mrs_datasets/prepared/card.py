"""The card of a prepared folder, from the catalogue's record and the report: YAML for `datasets` and the hub, and a
page for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from mrs_datasets.catalogue import LANGUAGE, DatasetRecord, Kind, Variant
from mrs_datasets.prepared.report import (
    DROPPED,
    Configs,
    PassEntry,
    PreparedReport,
    SplitEntry,
    pass_notes,
    pass_tables,
)
from mrs_suggest.common.report.cards import markdown_table, render_card

MANY_KINDS = 8  # chosen: more columns than that are not read
UNKNOWN = "unknown"  # the licence is not stated
_LIMITS = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]
# The least number of rows -> the hub's name.
SIZES = [(10 ** (number + 3), f"{low}<n<{high}") for number, (low, high) in enumerate(pairwise(_LIMITS))]
HERE = "PATH"  # stands for the folder; publishing puts the repository there


def dataset_card(record: DatasetRecord, report: PreparedReport) -> str:
    """README.md of a prepared folder; equal records and reports give equal bytes."""
    variant, configs = _variant(record, report), report["configs"]
    dropped = [
        f"- {part}: {count:,} rows dropped ({reason})"
        for part, reasons in report["dropped"].items()
        for reason, count in reasons.items()
    ]
    dropped += [
        f"- {found['part']}: {found['finding']}: {found['count']:,}"
        for found in report.get("findings", [])
        if not found["finding"].startswith(DROPPED)
    ]
    there = [record.kind_of(config) for config in configs]
    kinds = {name: kind for name, kind in record.kinds.items() if not kind.on_demand or kind in there}
    used = {name for kind in kinds.values() for name in kind.columns}
    columns = {name: column for name, column in record.columns.items() if name in used}
    notes = dropped + [f"- {note}" for note in report["notes"]]
    licence = f"Licence: `{variant.licence}`."
    if variant.licence == UNKNOWN:
        licence = "The licence is not stated: ask before you pass a copy on."
    values = {
        "title": variant.title,
        "about": variant.about,
        "here": HERE,
        "config": next(iter(configs)),
        "configs_table": _configs_table(record, kinds, configs),
        "kinds": "\n".join(f"- `{kind.shown}`: {kind.about}" for kind in kinds.values()),
        "columns_table": "\n".join(
            ["| column | type | meaning |", "| --- | --- | --- |"]
            + [f"| `{name}` | {column.dtype} | {column.meaning} |" for name, column in columns.items()]
        ),
        "layout": "\n".join(f"- `{path}`: {holds}" for path, holds in variant.layout.items()),
        "revision": variant.revision,
        "licence": licence,
        **{name: getattr(variant, name) for name in ("limits", "uses", "curation", "personal")},
        "notes": "\n".join(["## What was dropped, and notes", "", *notes, ""]) if notes else "",
        "pipeline": (_pipeline(report["pipeline"]) if "pipeline" in report else "") + _passes(report.get("passes", [])),
        "citation": record.citation.strip(),
        "paper": record.paper,
        "homepage": record.homepage,
        "version": report["version"],
    }
    return render_card("dataset.md", _front_matter(record, report), values)


def _variant(record: DatasetRecord, report: PreparedReport) -> Variant:
    """The variant, with the licence that the user stated for data that a language model wrote."""
    variant = record.variants[report["reader"]]
    return replace(variant, licence=str(report.get("settings", {}).get("licence", variant.licence)))


def _pipeline(pipeline: dict[str, Any]) -> str:
    """The stages and languages of a build from dumps."""
    changes = ", ".join(f"`{name}` {value}" for name, value in pipeline["departures"].items())
    dumps = [
        [dump["name"], f"{dump['bytes']:,}", f"`{dump['sha256']}`", f"in part: {dump['lossy']}" * bool(dump["lossy"])]
        for dump in pipeline["dumps"]
    ]
    stages = [
        [entry["stage"], f"{entry['in']:,}", f"{entry['out']:,}", _reasons(entry["dropped"])]
        for entry in pipeline["stages"]
    ]
    languages = [
        [code, f"{row.get('kept', 0):,}", _reasons({reason: n for reason, n in row.items() if reason != "kept"})]
        for code, row in sorted(pipeline["languages"].items(), key=lambda item: (-item[1].get("kept", 0), item[0]))
    ]
    parts = [
        "## How it was built",
        f"{len(dumps)} dumps; profile `{pipeline['profile']}`, {f'changed: {changes}' if changes else 'unchanged'}.",
        markdown_table(["dump", "bytes", "SHA-256", "read"], [[*row[:3], row[3] or "all"] for row in dumps]),
        markdown_table(["stage", "in", "out", "dropped"], stages),
        markdown_table(["language", "pairs kept", "dropped"], languages),
    ]
    return "".join(f"{part}\n\n" for part in parts)


def _passes(passes: Sequence[PassEntry]) -> str:
    """Rows that toxicity filtering dropped, and those that translation added."""
    text = ""
    for entry in passes:
        reasons = _reasons({reason: count for reason, count in entry["dropped"].items() if count}) or "nothing"
        text += f"## {entry['name'].capitalize()}\n\nIn {entry['in']:,}, out {entry['out']:,}; dropped: {reasons}.\n\n"
        for title, (header, *rows) in pass_tables(entry):
            text += f"{title.capitalize()}:\n\n{markdown_table(header, rows)}\n\n"
        text += "".join(f"- {note}\n" for note in pass_notes(entry)) + "\n"
    return text


def _reasons(dropped: dict[str, int]) -> str:
    return ", ".join(f"{reason} {count:,}" for reason, count in sorted(dropped.items(), key=lambda item: -item[1]))


def _front_matter(record: DatasetRecord, report: PreparedReport) -> dict[str, object]:
    configs, variant = report["configs"], _variant(record, report)
    present = {record.language_of(config) for config in configs}
    first = next(iter(configs))
    return {
        "pretty_name": variant.title,
        "license": variant.licence,
        "language": [code for code in record.languages if code in present],
        "task_categories": list(record.task_categories),
        "size_categories": [_size_category(sum(facts["rows"] for of in configs.values() for facts in of.values()))],
        "annotations_creators": list(record.annotations_creators),
        "source_datasets": list(record.source_datasets),
        "tags": list(record.tags),
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": f"data/{config}/{split}-*.parquet"} for split in splits],
                **({"default": True} if config == first else {}),
            }
            for config, splits in configs.items()
        ],
        "dataset_info": [_info_entry(record, config, splits) for config, splits in configs.items()],
    }


def _size_category(rows: int) -> str:
    """The hub's name for a number of rows.

    >>> _size_category(999), _size_category(1000), _size_category(2_500_000)
    ('n<1K', '1K<n<10K', '1M<n<10M')
    """
    return next((name for least, name in reversed(SIZES) if rows >= least), "n<1K")


def _info_entry(record: DatasetRecord, config: str, splits: dict[str, SplitEntry]) -> dict[str, object]:
    columns = record.kind_of(config).columns
    return {
        "config_name": config,
        "features": [record.columns[name].feature(name) for name in columns],
        "splits": [
            {"name": split, "num_bytes": facts["bytes"], "num_examples": facts["rows"]}
            for split, facts in splits.items()
        ],
        "download_size": sum(file["bytes"] for facts in splits.values() for file in facts["files"]),
        "dataset_size": sum(facts["bytes"] for facts in splits.values()),
    }


def _configs_table(record: DatasetRecord, kinds: dict[str, Kind], configs: Configs) -> str:
    """A table of rows by language, with one column for every kind and split; with many kinds, one row per config."""
    if len(kinds) > MANY_KINDS:
        splits = list(dict.fromkeys(split for kind in kinds.values() for split in kind.splits))
        return markdown_table(
            ["rows", *splits],
            [[f"`{config}`", *(_count(facts.get(split)) for split in splits)] for config, facts in configs.items()],
        )
    parts = [(name, kind, split) for name, kind in kinds.items() for split in kind.splits]
    first = next(iter(kinds))
    header = [
        split if name == first else name if len(kind.splits) == 1 else f"{name}, {split}" for name, kind, split in parts
    ]
    rows = []
    for code in record.languages:
        counts = [
            configs.get(kind.config.replace(LANGUAGE, code), {}).get(split)
            if code in (kind.languages or record.languages)
            else None
            for _, kind, split in parts
        ]
        if any(counts):
            rows.append([f"{record.languages[code].name} (`{code}`)", *(_count(facts) for facts in counts)])
    return markdown_table(["rows", *header], rows)


def _count(facts: SplitEntry | None) -> str:
    return f"{facts['rows']:,}" if facts else "-"
