"""Which rows each file has, where a split has several files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.settings import make_settings
from mrs_datasets.builders.reddit.shards.pair_files import write_pairs
from mrs_datasets.builders.reddit.shards.write_stage import split_tables
from mrs_datasets.builders.spark import write
from mrs_datasets.builders.spark.survey import Buckets
from mrs_datasets.prepared import writer
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS, SPLITS
from tests.dumps import parquet_bytes
from tests.spark_steps import without_spark

SIZES = [90, 0, 40, 130]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=9).filter(any), st.integers(1, 12))
def test_every_row_is_in_one_file(rows: list[int], most: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(write, "SHARD_ROWS", most)
        files = [file for task in write._tasks("en", {("en", split): rows for split in SPLITS}) for file in task]
    for split in SPLITS:
        seen = [
            (bucket, row)
            for file in files
            if file.split == split
            for bucket in range(len(rows))
            for row in range(*file.rows_of(bucket))
        ]
        assert seen == [(bucket, row) for bucket, count in enumerate(rows) for row in range(count)]
    assert all(0 < file.end - file.first <= most for file in files)


@pytest.mark.parametrize("most", [1000, 30])
def test_the_files_are_those_of_one_machine(tmp_path: Path, monkeypatch, most: int) -> None:
    for module in (write, writer):
        monkeypatch.setattr(module, "SHARD_ROWS", most)
    monkeypatch.setattr(writer, "ROW_GROUP_ROWS", 20)
    settings = make_settings("paper")
    paths = []
    for bucket, pairs in enumerate(SIZES):
        columns = {
            "message": pa.array([f"message {bucket} {number}" for number in range(pairs)], pa.string()),
            "reply": pa.array([f"reply {number % 7}" for number in range(pairs)], pa.string()),
            "order": pa.array([1000 * bucket + number for number in range(pairs)], pa.uint64()),
            "language": pa.array(["en"] * pairs, pa.string()),
        }
        paths.append(tmp_path / f"{bucket}.arrow")
        write_pairs(paths[-1], pa.table(columns))
    buckets = Buckets(tuple(paths))
    tables = [dict(split_tables(buckets.kept(n, "en", ("message", "reply", "order")), "example")) for n in range(4)]
    rows = {("en", split): [table[split].num_rows if split in table else 0 for table in tables] for split in SPLITS}
    chunks = [("en", split, part) for table in tables for split, part in table.items()]
    folder = tmp_path / "one"
    folder.mkdir()
    expected = writer.write_prepared(folder, iter(chunks), Report("reddit"), MRS, "the test")
    (tmp_path / "steps").mkdir()
    engine = without_spark(monkeypatch, write)
    layout = write.write_languages(engine, tmp_path / "steps", ["en"], rows, buckets, settings)
    assert parquet_bytes(tmp_path / "steps") == parquet_bytes(folder)
    assert layout == expected["configs"]
    for path in (tmp_path / "steps").rglob("*.parquet"):
        groups = [
            pq.ParquetFile(path).metadata.row_group(n).num_rows for n in range(pq.read_metadata(path).num_row_groups)
        ]
        assert (set(groups[:-1]) <= {20}, 0 < groups[-1] <= 20) == (True, True)
    assert len(layout["en"]["train"]["files"]) == -(-sum(rows["en", "train"]) // most)
