"""The data set on Spark: a task writes the files of a language, or one of a large language's, as the local engine does.

Which rows a file has follows from the counts of the buckets: they are written in the order of the buckets, and a file
has `SHARD_ROWS` of them. So nothing is shuffled, and the files are the local engine's, byte for byte.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path

from mrs_datasets.builders.reddit.settings import Settings
from mrs_datasets.builders.reddit.shards.split import KEYS
from mrs_datasets.builders.reddit.shards.write_stage import split_tables
from mrs_datasets.builders.spark.engine import SparkEngine
from mrs_datasets.builders.spark.rows import Row, counts_row, source
from mrs_datasets.builders.spark.survey import Buckets
from mrs_datasets.prepared.report import Configs, FileEntry
from mrs_datasets.prepared.schema import PAIR_SCHEMA, SPLITS
from mrs_datasets.prepared.writer import SHARD_ROWS, FileWriter
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.io.storage import local_file, publish


@dataclass(frozen=True)
class _File:
    """A file, and the rows of its split that it has.

    Attributes:
        first, end: rows of the split.
        before: (buckets + 1,) rows of the split in front of each bucket.
    """

    language: str
    split: str
    number: int
    files: int
    first: int
    end: int
    before: tuple[int, ...]

    @property
    def name(self) -> str:
        return f"data/{self.language}/{self.split}-{self.number:05d}-of-{self.files:05d}.parquet"

    def rows_of(self, bucket: int) -> tuple[int, int]:
        """Where its rows are among those of the split in a bucket: the first, and the one after the last."""
        start, end = self.before[bucket], self.before[bucket + 1]
        first = min(max(self.first, start), end)
        return first - start, max(min(self.end, end), first) - start


def write_languages(
    spark: SparkEngine,
    folder: Path,
    languages: Sequence[str],
    rows: Mapping[tuple[str, str], Sequence[int]],
    buckets: Buckets,
    settings: Settings,
) -> Configs:
    """Write the pairs of the languages below `folder`; their entries for the report.

    Args:
        folder: on a disk that all machines see.
        rows: (language, split) -> (buckets,) pairs.
    """
    tasks = [task for language in languages for task in _tasks(language, rows)]
    for language in languages:
        (folder / "data" / language).mkdir(parents=True)
    frame = source(spark.session, len(tasks), partial(_write, folder, tasks, buckets, settings))
    layout: Configs = {}
    for number, _, data in spark.collect_under_bar(frame, "write"):
        for file, (entry, text_bytes) in zip(tasks[number], json.loads(bytes(data)), strict=True):
            splits = layout.setdefault(file.language, {})
            split = splits.setdefault(file.split, {"rows": 0, "bytes": 0, "files": []})
            split["rows"] += file.end - file.first
            split["bytes"] += text_bytes
            split["files"].append(entry)
    _remove_others(folder, layout)
    return {language: {split: layout[language][split] for split in SPLITS} for language in languages}


def _tasks(language: str, rows: Mapping[tuple[str, str], Sequence[int]]) -> list[list[_File]]:
    """The files of a language: all in one task if each split has one, else each in its own."""
    found: list[_File] = []
    for split in SPLITS:
        before = (0, *accumulate(rows[language, split]))
        files = -(-before[-1] // SHARD_ROWS)
        for number in range(files):
            first = number * SHARD_ROWS
            found.append(_File(language, split, number, files, first, min(first + SHARD_ROWS, before[-1]), before))
    return [found] if len(found) == len(SPLITS) else [[file] for file in found]


def _write(
    folder: Path, tasks: Sequence[Sequence[_File]], buckets: Buckets, settings: Settings, task: int
) -> Iterator[Row]:
    files = tasks[task]
    with ExitStack() as stack:
        targets = [folder / file.name for file in files]
        temporary = [stack.enter_context(local_file(target)) for target in targets]
        writers = [stack.enter_context(FileWriter(path, PAIR_SCHEMA)) for path in temporary]
        for bucket in range(len(buckets.files)):
            if all(first == end for first, end in (file.rows_of(bucket) for file in files)):
                continue
            table = buckets.kept(bucket, files[0].language, ("message", "reply", KEYS[settings.split_by]))
            parts = dict(split_tables(table, settings.split_by))
            for file, writer in zip(files, writers, strict=True):
                first, end = file.rows_of(bucket)
                if end > first:
                    writer.write(parts[file.split].slice(first, end - first))
        entries: list[tuple[FileEntry, int]] = []
        for file, writer, path, target in zip(files, writers, temporary, targets, strict=True):
            writer.close()
            if writer.rows != file.end - file.first:
                raise AssertionError(f"{target}: {writer.rows} rows were written of {file.end - file.first}")
            publish(path, target)
            entry: FileEntry = {"path": file.name, "bytes": target.stat().st_size, "sha256": file_sha256(target)}
            entries.append((entry, writer.text_bytes))
    yield counts_row(task, entries)


def _remove_others(folder: Path, layout: Configs) -> None:
    """Remove what attempts that were killed have left."""
    wanted = {entry["path"] for splits in layout.values() for split in splits.values() for entry in split["files"]}
    for path in (folder / "data").rglob("*"):
        if path.is_file() and path.relative_to(folder).as_posix() not in wanted:
            path.unlink()
