"""Writes a prepared folder: Parquet shards, the card and the report; it appears whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.prepared.card import dataset_card
from mrs_datasets.prepared.report import Configs, FileEntry, PreparedReport, Report, SplitEntry
from mrs_datasets.readers import Chunks
from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256

SHARD_ROWS = 5_000_000  # keeps a shard of MRS near the 500 MB that the hub advises
ROW_GROUP_ROWS = 100_000


class _ParquetFile:
    """A Parquet file in row groups of `ROW_GROUP_ROWS` rows (the last one: the rest), however small its tables are."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._file = pq.ParquetWriter(path, schema, compression="zstd")
        self._held: list[pa.Table] = []  # rows of a group that is not full yet
        self._rows = 0

    def write(self, table: pa.Table) -> None:
        self._held.append(table)
        self._rows += table.num_rows
        if self._rows >= ROW_GROUP_ROWS:
            self._write_groups(self._rows // ROW_GROUP_ROWS * ROW_GROUP_ROWS)

    def close(self) -> None:
        if self._rows:  # the library `datasets` cannot read an empty row group
            self._write_groups(self._rows)
        self._file.close()

    def abandon(self) -> None:
        """Drop the file: on a full disk its `__del__` would print an error."""
        with suppress(OSError, pa.ArrowException):
            self._file.close()
        self._file.is_open = False

    def _write_groups(self, rows: int) -> None:
        held = pa.concat_tables(self._held)
        # Chunks of the tables' sizes would show in the pages.
        self._file.write_table(held.slice(0, rows).combine_chunks(), row_group_size=ROW_GROUP_ROWS)
        self._held, self._rows = [held.slice(rows)], held.num_rows - rows


@dataclass
class _SplitWriter:
    """The shards of one config and split; a new shard starts every `SHARD_ROWS` rows."""

    folder: Path
    split: str
    schema: pa.Schema
    rows: int = 0
    text_bytes: int = 0
    shards: list[Path] = field(default_factory=list)
    _open: _ParquetFile | None = None
    _shard_rows: int = 0

    def write(self, table: pa.Table) -> None:
        while True:
            part = table.slice(0, SHARD_ROWS - self._shard_rows)
            if part.num_rows:
                self._writer().write(part)
            self.rows += part.num_rows
            self.text_bytes += part.nbytes
            self._shard_rows += part.num_rows
            table = table.slice(part.num_rows)
            if not table.num_rows:
                return
            self.close()

    def close(self) -> None:
        if self._open:
            self._open.close()
            self._open, self._shard_rows = None, 0

    def abandon(self) -> None:
        """Drop a shard that is still open."""
        if self._open:
            self._open.abandon()
            self._open = None

    def finish(self) -> list[Path]:
        """Close the shards and give them their final names."""
        self.close()
        total = len(self.shards)
        return [
            shard.rename(self.folder / f"{self.split}-{number:05d}-of-{total:05d}.parquet")
            for number, shard in enumerate(self.shards)
        ]

    def _writer(self) -> _ParquetFile:
        if self._open is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            self.shards.append(self.folder / f"{self.split}-{len(self.shards):05d}.parquet")
            self._open = _ParquetFile(self.shards[-1], self.schema)
        return self._open


class FileWriter:
    """Writes one shard alone; from the same tables as `write_prepared`, the same bytes.

    Attributes:
        rows, text_bytes: that were written; the bytes are those in memory.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.rows = self.text_bytes = 0
        self._file = _ParquetFile(path, schema)

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.abandon()  # closed already, if there was no error

    def write(self, table: pa.Table) -> None:
        self._file.write(table)
        self.rows += table.num_rows
        self.text_bytes += table.nbytes

    def close(self) -> None:
        self._file.close()


@contextmanager
def _split_writers() -> Iterator[dict[tuple[str, str], _SplitWriter]]:
    """The writers by config and split; those that are open after an error are dropped silently."""
    writers: dict[tuple[str, str], _SplitWriter] = {}
    try:
        yield writers
    finally:
        for writer in writers.values():
            writer.abandon()


def write_prepared(folder: Path, chunks: Chunks, report: Report, record: DatasetRecord, source: str) -> PreparedReport:
    """Write every chunk below `folder`, then `report.json` and the card; return the report.

    Args:
        record: the catalogue's record of the data set, which gives the order of configs.
        source: its name for error messages.

    Raises:
        InputError: a config lacks one of its splits, or there are no data.
    """
    with _split_writers() as writers:
        for config, split, table in chunks:
            key = (config, split)
            if key not in writers:
                record = record.covering([config])
                writers[key] = _SplitWriter(folder / "data" / config, split, record.schema(config))
            writers[key].write(table)
        written = {config for config, _ in writers}
        configs = [config for config, _, _ in record.configs() if config in written]
        if not configs:
            raise InputError(f"{source}: the source has no data.")
        layout: Configs = {}
        for config in configs:
            for split in record.kind_of(config).splits:
                if (config, split) not in writers and report.partial:
                    continue
                if (config, split) not in writers:
                    raise InputError(f"{source}: the {split} split of {config} is missing.")
                if not writers[config, split].rows:  # the library `datasets` cannot load one
                    raise InputError(
                        f"{source}: the {split} split of {config} has no usable row; add rows or leave it out."
                    )
                layout.setdefault(config, {})[split] = _finish(writers[config, split], folder)
    return finish_prepared(folder, layout, report, record)


def finish_prepared(folder: Path, layout: Configs, report: Report, record: DatasetRecord) -> PreparedReport:
    """Write `report.json` and the card of a folder whose Parquet files are there; return the report.

    Args:
        layout: the files; configs in the order of the record, which covers them.
    """
    title = record.variants[report.reader].title
    result: PreparedReport = {
        "data_set": record.name,
        "name": title,
        "version": __version__,
        **report.as_dict(),
        "configs": layout,
    }
    (folder / "report.json").write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / "README.md").write_text(dataset_card(record, result), encoding="utf-8")
    return result


def write_split(folder: Path, config: str, split: str, record: DatasetRecord, tables: Iterable[pa.Table]) -> SplitEntry:
    """Write one more split below `folder`; return its entry for `report.json`."""
    writer = _SplitWriter(folder / "data" / config, split, record.schema(config))
    try:
        for table in tables:
            writer.write(table)
        return _finish(writer, folder)
    finally:
        writer.abandon()


def _finish(writer: _SplitWriter, folder: Path) -> SplitEntry:
    files: list[FileEntry] = [
        {"path": path.relative_to(folder).as_posix(), "bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in writer.finish()
    ]
    return {"rows": writer.rows, "bytes": writer.text_bytes, "files": files}
