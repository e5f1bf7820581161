"""What is published of a prepared folder: the card, the report, and exactly the files that the report lists."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.builders.reddit.funnel import PAGE
from mrs_datasets.catalogue import DatasetRecord, read_record
from mrs_datasets.prepared.card import HERE
from mrs_datasets.prepared.pass_tables import REJECTS
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import FileEntry, PreparedReport
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.common.io.files import file_sha256

REPORT, CARD = "report.json", "README.md"
STAYS = MappingProxyType({"*": "not listed in report.json"})
Each = Callable[[Iterable[Any]], Iterable[Any]]


def prepared_publication(folder: Path, repo_id: str, each: Each = iter) -> Publication:
    """The publication of a prepared folder, after checking every file against `report.json`.

    Size and SHA-256 of each Parquet file are compared with the report, the file is opened, and its schema and rows are
    compared with the catalogue and the report. With a report without SHA-256 (other tools may write one), size and rows
    are compared, and every row is read.

    Args:
        each: wraps the iteration over the files, for a progress bar.

    Raises:
        InputError: not a prepared folder, or a file below `data/` is missing, altered, damaged, a link, or not listed;
            the sentence names it.
    """
    require_prepared(folder)
    data = PreparedData(str(folder), folder, None)
    record, report = data.record(), data.report()
    listed = _listed(folder, report, record)
    paths = tuple(entry["path"] for _, _, entry in listed)
    page = (PAGE,) if "pipeline" in report else ()
    what = Publication("dataset", repo_id, folder, (CARD, REPORT, *page, *paths), STAYS)
    _require_exactly(what, paths)
    rows: dict[tuple[str, str], int] = {}
    for config, split, entry in each(listed):
        key = (config, split)
        rows[key] = rows.get(key, 0) + _checked_rows(folder / entry["path"], entry, record, config)
    for (config, split), found in rows.items():
        expected = report["configs"][config][split]["rows"]
        if found != expected:
            raise InputError(
                f"{folder}: {config}/{split} has {found:,} rows, report.json says {expected:,}; prepare the folder "
                "again."
            )
    data.require_footers()
    card = (folder / CARD).read_text(encoding="utf-8").replace(f'"{HERE}"', f'"{repo_id}"')
    return Publication("dataset", repo_id, folder, what.allowed, STAYS, instead={CARD: card.encode()})


def _listed(folder: Path, report: PreparedReport, record: DatasetRecord) -> list[tuple[str, str, FileEntry]]:
    """(config, split, entry) of every file that the report lists; each path must fit the layout."""
    known = {config: kind.splits for config, _, kind in record.configs()}
    try:
        listed = [
            (config, split, cast(FileEntry, dict(entry)))
            for config, splits in report["configs"].items()
            for split, facts in splits.items()
            for entry in facts["files"]
        ]
        counts = [int(facts["rows"]) for splits in report["configs"].values() for facts in splits.values()]
        sound = bool(listed) and min(counts) >= 0 and all(isinstance(entry["path"], str) for _, _, entry in listed)
    except (KeyError, TypeError, ValueError, AttributeError):
        sound = False
    if not sound:
        raise InputError(f"{folder / REPORT}: does not list the files of the splits; prepare the folder again.")
    for config, split, entry in listed:
        name = re.escape(f"data/{config}/{split}")
        if split not in known.get(config, ()) or not re.fullmatch(
            rf"{name}-\d{{5}}-of-\d{{5}}\.parquet", entry["path"]
        ):
            raise InputError(
                f"{folder / REPORT}: lists {entry['path']!r} for {config}/{split}, but {record.name} has no such "
                "file; prepare the folder again."
            )
    return listed


def _require_exactly(what: Publication, paths: tuple[str, ...]) -> None:
    """Check that all listed files, and no others, are below `data/`."""
    there = what.files()
    if missing := [path for path in paths if path not in there]:
        raise InputError(
            f"{what.folder}: {missing[0]} is missing, though report.json lists it; prepare the folder again."
        )
    extra = [name for name, why in what.left_behind().items() if name.startswith("data/") and why != "hidden"]
    if extra:
        raise InputError(
            f"{what.folder}: report.json does not list {extra[0]}, which is among the data; remove it, or prepare "
            "the folder again."
        )


def _checked_rows(path: Path, entry: FileEntry, record: DatasetRecord, config: str) -> int:
    """The rows of a file, after comparing it with the report and the catalogue."""
    size = path.stat().st_size
    if size != entry.get("bytes", size):
        raise InputError(
            f"{path}: has {size:,} bytes, report.json says {entry['bytes']:,}; it was altered or truncated. "
            "Prepare the folder again."
        )
    digest = entry.get("sha256")
    if digest is not None and file_sha256(path) != digest:
        raise InputError(
            f"{path}: its SHA-256 is not that of report.json, so it was altered; prepare the folder again."
        )
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
            if digest is None and rows != sum(batch.num_rows for batch in file.iter_batches()):
                raise pa.ArrowInvalid("rows are missing")
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path}: cannot read it as Parquet ({first_line(error)}); prepare the folder again."
        ) from None
    if not schema.equals(record.schema(config)):
        raise InputError(
            f"{path}: has the columns {', '.join(schema.names)}, where {record.name} has "
            f"{', '.join(record.schema(config).names)} (or their types differ); prepare the folder again."
        )
    return int(rows)


def require_prepared(folder: Path) -> None:
    """Refuse a folder without report or card.

    Raises:
        InputError: one of them is missing.
    """
    for name in (REPORT, CARD):
        if not (folder / name).is_file():
            raise InputError(f"{folder}: not a prepared folder (no {name}); make one with `mrs data prepare`.")


def require_publishable(folder: Path, may_publish: bool) -> None:
    """Refuse what may not be public: data with a restricted licence, and reports with texts that were dropped.

    Args:
        may_publish: the user declares to have the right to publish.

    Raises:
        InputError: publishing is restricted, or the report is damaged.
    """
    data = PreparedData(str(folder), folder, None)
    restricted = read_record(data.data_set()).restricted
    if restricted and not may_publish:
        raise InputError(f"{folder}: {restricted}; pass --i-have-the-right-to-publish if you may publish a copy.")
    report = data.report()
    pipeline = report.get("pipeline", {})
    told = [pipeline, *(entry["about"] for entry in report.get("passes", []))]
    if any(isinstance(part, dict) and part.get(REJECTS) for part in told):
        raise InputError(
            f"{folder / REPORT}: contains texts that were dropped (--keep-rejects), which must not be published; build "
            "again without, or delete `rejects` there."
        )
