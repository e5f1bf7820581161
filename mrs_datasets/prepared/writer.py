"""Writes a prepared folder: Parquet shards, the card and the report; from chunks, or from another prepared folder."""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.prepared.card import dataset_card
from mrs_datasets.prepared.report import REPORT, Configs, FileEntry, PreparedReport, Report, SplitEntry
from mrs_datasets.readers import Chunks
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256

SHARD_ROWS = 5_000_000  # keeps a shard of MRS near the 500 MB that the hub advises
ROW_GROUP_ROWS = 100_000


class FileWriter(AbstractContextManager["FileWriter"]):
    """Writes one Parquet file in row groups of `ROW_GROUP_ROWS` rows, however small its tables are.

    Attributes:
        rows, text_bytes: written so far; the bytes are those in memory.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = self.text_bytes = 0
        self._file = pq.ParquetWriter(path, schema, compression="zstd")
        self._held: list[pa.Table] = []  # rows of a group that is not full yet
        self._held_rows = 0

    def __exit__(self, *error: object) -> None:
        """Drop the file if it is not closed: on a full disk its `__del__` would print an error."""
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        self._file.is_open = False

    def write(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self.text_bytes += table.nbytes
        self._held.append(table)
        self._held_rows += table.num_rows
        if self._held_rows >= ROW_GROUP_ROWS:
            self._write_groups(self._held_rows // ROW_GROUP_ROWS * ROW_GROUP_ROWS)

    def close(self) -> None:
        if self._held_rows:  # the library `datasets` cannot read an empty row group
            self._write_groups(self._held_rows)
        self._file.close()

    def _write_groups(self, rows: int) -> None:
        held = pa.concat_tables(self._held)
        # Chunks of the tables' sizes would show in the pages.
        self._file.write_table(held.slice(0, rows).combine_chunks(), row_group_size=ROW_GROUP_ROWS)
        self._held, self._held_rows = [held.slice(rows)], held.num_rows - rows


class SplitWriter(AbstractContextManager["SplitWriter"]):
    """Writes the shards of one config and split; a new shard starts every `SHARD_ROWS` rows."""

    def __init__(self, folder: Path, config: str, split: str, schema: pa.Schema) -> None:
        self.rows = self.text_bytes = 0
        self._root, self._config, self._split, self._schema = folder, config, split, schema
        self._folder = folder / "data" / config
        self._shards: list[Path] = []
        self._open: FileWriter | None = None

    def __exit__(self, *error: object) -> None:
        if self._open:
            self._open.__exit__()

    def write(self, table: pa.Table) -> None:
        self.rows += table.num_rows
        self.text_bytes += table.nbytes
        while table.num_rows:
            if self._open is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                self._shards.append(self._folder / f"{self._split}-{len(self._shards):05d}.parquet")
                self._open = FileWriter(self._shards[-1], self._schema)
            part = table.slice(0, SHARD_ROWS - self._open.rows)
            self._open.write(part)
            table = table.slice(part.num_rows)
            if table.num_rows:
                self._open.close()
                self._open = None

    def finish(self) -> SplitEntry:
        """Close the shards and give them their final names."""
        if self._open:
            self._open.close()
            self._open = None
        files: list[FileEntry] = []
        for number, shard in enumerate(self._shards):
            name = _shard_name(self._config, self._split, number, len(self._shards))
            path = shard.rename(self._root / name)
            files.append({"path": name, "bytes": path.stat().st_size, "sha256": file_sha256(path)})
        return {"rows": self.rows, "bytes": self.text_bytes, "files": files}


def _shard_name(config: str, split: str, number: int, shards: int) -> str:
    return f"data/{config}/{split}-{number:05d}-of-{shards:05d}.parquet"


def join_files(target: Path, config: str, split: str, parts: Sequence[tuple[Path, Mapping[str, Any]]]) -> SplitEntry:
    """A split from the files of several `SplitWriter`s (folder and entry of each), taken as `take_over` takes them."""
    shards = [(folder / file["path"], file) for folder, entry in parts for file in entry["files"]]
    files: list[FileEntry] = []
    for number, (path, file) in enumerate(shards):
        name = _shard_name(config, split, number, len(shards))
        _take(path, target / name)
        files.append({"path": name, "bytes": file["bytes"], "sha256": file["sha256"]})
    rows, octets = (sum(entry[key] for _, entry in parts) for key in ("rows", "bytes"))
    return {"rows": rows, "bytes": octets, "files": files}


def write_prepared(folder: Path, chunks: Chunks, report: Report, record: DatasetRecord, source: str) -> PreparedReport:
    """Write every chunk below `folder`, then `report.json` and the card; return the report.

    Args:
        record: the catalogue's record of the data set, which gives the order of configs.

    Raises:
        InputError: a config lacks one of its splits, or the source is empty.
    """
    writers: dict[tuple[str, str], SplitWriter] = {}
    with ExitStack() as opened:
        for config, split, table in chunks:
            key = (config, split)
            if key not in writers:
                record = record.covering([config])
                writers[key] = opened.enter_context(SplitWriter(folder, config, split, record.schema(config)))
            writers[key].write(table)
        written = {config for config, _ in writers}
        layout: Configs = {config: {} for config, _, _ in record.configs() if config in written}
        if not layout:
            raise InputError(f"{source}: the source has no data.")
        for config, splits in layout.items():
            for split in record.kind_of(config).splits:
                writer = writers.get((config, split))
                if writer is None and report.partial:
                    continue
                if writer is None:
                    raise InputError(f"{source}: the {split} split of {config} is missing.")
                if not writer.rows:  # the library `datasets` cannot load one
                    raise InputError(
                        f"{source}: the {split} split of {config} has no usable row; add rows or leave it out."
                    )
                splits[split] = writer.finish()
    return finish_prepared(folder, layout, report, record)


def finish_prepared(folder: Path, layout: Configs, report: Report, record: DatasetRecord) -> PreparedReport:
    """Write `report.json` and the card of a folder with complete Parquet files; return the report.

    Args:
        layout: the files; configs in the order of the record, which covers them.
    """
    result: PreparedReport = {
        "data_set": record.name,
        "name": record.variants[report.reader].title,
        "version": __version__,
        **report.as_dict(),
        "configs": layout,
    }
    write_report(folder, result, record)
    return result


def write_report(folder: Path, report: PreparedReport, record: DatasetRecord) -> None:
    """Write `report.json` and the card of a folder whose Parquet files are complete."""
    (folder / REPORT).write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(dataset_card(record, report), encoding="utf-8")


def rewrite(
    source: Path,
    target: Path,
    report: PreparedReport,
    record: DatasetRecord,
    changed: Mapping[tuple[str, str], Callable[[], Iterable[pa.Table]]],
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
        with SplitWriter(target, config, split, record.schema(config)) as writer:
            for table in tables():
                writer.write(table)
            new["configs"].setdefault(config, {})[split] = writer.finish()
    finish(new)
    order = [config for config, _, _ in record.configs() if config in new["configs"]]
    new["configs"] = {config: new["configs"][config] for config in dict.fromkeys(order)}
    write_report(target, new, record)
    return new


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
            _take(path, target / path.relative_to(source))


def _take(path: Path, there: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, there)
    except OSError:
        shutil.copy2(path, there)
