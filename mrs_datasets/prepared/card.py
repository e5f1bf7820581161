"""The card of a prepared folder, from the catalogue's record and the report: YAML for `datasets` and the hub, and a
page for people."""

from dataclasses import replace
from itertools import pairwise

from mrs_datasets.catalogue import LANGUAGE, DatasetRecord, Kind, Variant
from mrs_datasets.prepared.funnel import build_blocks, pass_blocks
from mrs_datasets.prepared.report import DROPPED, Configs, PreparedReport, SplitEntry
from mrs_suggest.common.report.cards import markdown_table, render_card
from mrs_suggest.common.report.pages import as_markdown

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
    build = build_blocks(report["pipeline"]) if "pipeline" in report else ()
    blocks = [*build, *pass_blocks(report.get("passes", []))]
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
        "pipeline": f"{as_markdown(blocks)}\n" if blocks else "",
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
