"""A prepared folder from another one: some splits are rewritten, all other files are copied."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.prepared.card import dataset_card
from mrs_datasets.prepared.report import REPORT, PreparedReport
from mrs_datasets.prepared.writer import write_split

Tables = Callable[[], Iterable[pa.Table]]


def rewrite(
    source: Path,
    target: Path,
    report: PreparedReport,
    record: DatasetRecord,
    changed: Mapping[tuple[str, str], Tables],
    finish: Callable[[PreparedReport], None] = lambda report: None,
) -> PreparedReport:
    """Write a prepared folder with the files of `source`, except for changed splits; return its report.

    Args:
        target: an existing, empty folder.
        report: of `source`; a changed copy is written.
        changed: (config, split) -> the tables to write instead; configs may be new.
        finish: changes the report once all rows are written, such as with their counts.
    """
    take_over(source, target, {f"{config}/{split}" for config, split in changed})
    new: PreparedReport = json.loads(json.dumps(report))
    record = record.covering([*new["configs"], *(config for config, _ in changed)])
    for (config, split), tables in changed.items():
        entry = write_split(target, config, split, record, tables())
        new["configs"].setdefault(config, {})[split] = entry
    finish(new)
    order = [config for config, _, _ in record.configs() if config in new["configs"]]
    new["configs"] = {config: new["configs"][config] for config in dict.fromkeys(order)}
    write_report(target, new, record)
    return new


def write_report(folder: Path, report: PreparedReport, record: DatasetRecord) -> None:
    """Write `report.json` and the card of a folder whose Parquet files are complete."""
    (folder / REPORT).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(dataset_card(record, report), encoding="utf-8")


def take_over(source: Path, target: Path, without: Iterable[str]) -> None:
    """Copy a folder's files, except report, card and the configs or config/splits in `without`; as hard links if the
    disk supports them."""
    left_out = [tuple(part.split("/")) for part in without]

    def is_left_out(path: Path) -> bool:
        inside = path.relative_to(source).parts
        if len(inside) != 3 or inside[0] != "data":
            return inside in (("README.md",), (REPORT,))
        return (inside[1],) in left_out or (inside[1], path.name.split("-")[0]) in left_out

    for path in sorted(source.rglob("*")):
        if path.is_file() and not is_left_out(path):
            there = target / path.relative_to(source)
            there.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, there)
            except OSError:
                shutil.copy2(path, there)
