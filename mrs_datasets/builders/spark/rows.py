"""What a build on Spark passes between its tasks: rows of (key, place, data), where data holds a whole Arrow table.

Spark shuffles, sorts and spills such rows; it never looks into them. So a comment costs the JVM nothing: a row has
thousands of them. A task yields what it made, and Spark uses the rows of the attempt that succeeded alone: rows with
counts are exact however often a task was tried.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from mrs_suggest.common.errors import InputError, MrsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Row = tuple[int, int, bytes]  # key: of the group; place: within the group; data
Source = Callable[[int], Iterable[Row]]  # number of a task -> its rows
Piece = tuple[int, pa.Buffer]  # place and data of a row
Group = Callable[[int, Iterator[Piece]], Iterable[Row]]  # key, its rows by their places -> other rows

SCHEMA = "key int, place long, data binary"
_ARROW = pa.schema([("key", pa.int32()), ("place", pa.int64()), ("data", pa.binary())])
_BATCH_BYTES = 16 << 20  # of data that are handed to Spark at once
_BATCH_ROWS = 1000
_SENTENCE = re.compile(r"<<mrs (\".*?\") mrs>>")


class TaskError(Exception):
    """An error of the input in a task; `told` finds its sentence in what Spark reports."""

    def __init__(self, sentence: str) -> None:
        super().__init__(f"<<mrs {json.dumps(sentence)} mrs>>")


def told(report: str) -> str | None:
    """The sentence of a `TaskError` in Spark's report of a failed job."""
    found = _SENTENCE.search(report)
    return json.loads(found[1]) if found else None


def source(session: SparkSession, number: int, make: Source, tasks: int | None = None) -> DataFrame:
    """The rows that `make` yields for 0 to `number` - 1; in `tasks` tasks, or each in its own."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin()
        for batch in batches:
            for each in batch.column(0).to_pylist():
                yield from _batches(make(each))

    return session.range(0, number, 1, tasks or number).mapInArrow(_telling(work), SCHEMA)


def grouped(frame: DataFrame, tasks: int, make: Group) -> DataFrame:
    """The rows that `make` yields for each key, after a shuffle that brings the rows of a key together.

    Rows with one key must differ in their places, or in nothing: their order is that of the places.
    """
    from pyspark.sql.functions import expr

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        begin()
        for key, rows in groupby(_rows(batches), key=itemgetter(0)):
            yield from _batches(make(key, ((place, data) for _, place, data in rows)))

    together = frame.repartitionById(tasks, expr(f"key % {tasks}"))
    return together.sortWithinPartitions("key", "place").mapInArrow(_telling(work), SCHEMA)


def pack(table: pa.Table | pa.RecordBatch) -> bytes:
    """A table as data of a row."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write(table)
    return bytes(sink.getvalue().to_pybytes())


def unpack(pieces: Iterable[Piece], schema: pa.Schema) -> pa.Table:
    """The tables of rows, one after the other; empty data are left out."""
    tables = [pa.ipc.open_stream(data).read_all() for _, data in pieces if len(data)]
    return pa.concat_tables(tables) if tables else schema.empty_table()


def counts_row(number: int, counts: object) -> Row:
    """A row with counts, plain JSON."""
    return number, 0, json.dumps(counts).encode()


def begin() -> None:
    """Set up a process of Spark as one of the local engine."""
    from mrs_datasets.builders.pipeline.workers import settle

    settle()


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, int, pa.Buffer]]:
    for batch in batches:
        data = batch.column(2)
        for row, (key, place) in enumerate(zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)):
            yield key, place, data[row].as_buffer()


def _batches(rows: Iterable[Row]) -> Iterator[pa.RecordBatch]:
    held: list[Row] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row[2])
        if size >= _BATCH_BYTES or len(held) >= _BATCH_ROWS:
            yield _batch(held)
            held, size = [], 0
    if held:
        yield _batch(held)


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], field.type) for place, field in enumerate(_ARROW)]
    return pa.RecordBatch.from_arrays(columns, schema=_ARROW)


def _telling(work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]) -> Any:
    """The function of a task, whose errors of the input `told` recognises."""

    def telling(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from work(batches)
        except MrsError as error:
            raise TaskError(str(error)) from None

    return telling


def sentence_of(error: BaseException) -> InputError | None:
    """The error for the user, if Spark's exception stands for one."""
    report = str(error)
    if sentence := told(report):
        return InputError(sentence)
    if "ExecutorLostFailure" in report or "Python worker exited unexpectedly" in report:
        return InputError(
            "Spark lost the same task too often (its executor was killed, perhaps for lack of memory); finished work "
            "stays: continue with --resume, with a larger spark.executor.memoryOverhead if memory was the reason."
        )
    return None
