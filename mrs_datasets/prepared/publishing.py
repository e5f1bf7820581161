"""Publishing a prepared folder: the card, the report, and exactly the files that the report lists."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.builders.reddit.plan import PAGE
from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.prepared.card import HERE
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import REJECTS, REPORT, FileEntry
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.common.io.files import file_sha256

CARD = "README.md"
STAYS = MappingProxyType({"*": f"not listed in {REPORT}"})
AGAIN = "prepare the folder again"
Each = Callable[[Iterable[Any]], Iterable[Any]]


def prepared_publication(folder: Path, repo_id: str, may_publish: bool = False, each: Each = iter) -> Publication:
    """The publication of a prepared folder, after comparing every file with `report.json` and the catalogue.

    Args:
        may_publish: the user declares to have the right to publish restricted data.
        each: wraps the iteration over the files, for a progress bar.

    Raises:
        InputError: not a prepared folder; the licence restricts publishing; the report contains texts that were
            dropped; or a file below `data/` is missing, altered, damaged, a link, or not listed.
    """
    for name in (REPORT, CARD):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: not a prepared folder (no {name}); make one with `mrs data prepare`.")
    data = PreparedData(str(folder), folder, None)
    record, report = data.record(), data.report()
    if record.restricted and not may_publish:
        raise InputError(
            f"{folder}: {record.restricted}; pass --i-have-the-right-to-publish if you may publish a copy."
        )
    parts = [report.get("pipeline", {}), *(entry["about"] for entry in report.get("passes", []))]
    if any(part.get(REJECTS) for part in parts):
        raise InputError(
            f"{folder / REPORT}: contains texts that were dropped (--keep-rejects), which must not be published; build "
            "again without, or delete `rejects` there."
        )
    configs = report.get("configs", {}).items()
    splits = [(config, split, facts) for config, own in configs for split, facts in own.items()]
    paths = tuple(file["path"] for _, _, facts in splits for file in facts["files"])
    if not paths:
        raise InputError(f"{folder / REPORT}: does not list the files of the splits; {AGAIN}.")
    page = (PAGE,) if "pipeline" in report else ()
    what = Publication("dataset", repo_id, folder, (CARD, REPORT, *page, *paths), STAYS)
    there = what.files()
    known = {config: kind.splits for config, _, kind in record.configs()}
    for config, split, facts in splits:
        for path in (file["path"] for file in facts["files"]):
            fits = re.fullmatch(rf"data/{re.escape(config)}/{split}-\d{{5}}-of-\d{{5}}\.parquet", path)
            if split not in known.get(config, ()) or not fits:
                raise InputError(
                    f"{folder / REPORT}: lists {path!r} for {config}/{split}, but {record.name} has no such file; "
                    f"{AGAIN}."
                )
            if path not in there:
                raise InputError(f"{folder}: {path} is missing, although {REPORT} lists it; {AGAIN}.")
    for name, why in what.left_behind().items():
        if name.startswith("data/") and why != "hidden":
            raise InputError(
                f"{folder}: {REPORT} does not list {name}, which is among the data; remove it, or {AGAIN}."
            )
    for config, split, facts in each(splits):
        rows = sum(_checked_rows(folder / entry["path"], entry, record, config) for entry in facts["files"])
        if rows != facts["rows"]:
            raise InputError(f"{folder}: {config}/{split} has {rows:,} rows, {REPORT} says {facts['rows']:,}; {AGAIN}.")
    card = (folder / CARD).read_text(encoding="utf-8").replace(f'"{HERE}"', f'"{repo_id}"')
    return Publication("dataset", repo_id, folder, what.allowed, STAYS, instead={CARD: card.encode()})


def _checked_rows(path: Path, entry: FileEntry, record: DatasetRecord, config: str) -> int:
    """The rows of a file, after comparing it with the report and the catalogue."""
    if (size := path.stat().st_size) != entry["bytes"]:
        raise InputError(
            f"{path}: has {size:,} bytes, {REPORT} says {entry['bytes']:,}; it was altered or truncated, so {AGAIN}."
        )
    if file_sha256(path) != entry["sha256"]:
        raise InputError(f"{path}: its SHA-256 differs from {REPORT}, so it was altered; {AGAIN}.")
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as Parquet ({first_line(error)}); {AGAIN}.") from None
    if not schema.equals(record.schema(config)):
        raise InputError(
            f"{path}: has the columns {', '.join(schema.names)}, where {record.name} has "
            f"{', '.join(record.schema(config).names)} (or their types differ); {AGAIN}."
        )
    return int(rows)
