"""Rows that Spark carries, and what is read from its reports."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.spark import rows
from mrs_datasets.builders.spark.rows import TaskError, pack, sentence_of, told, unpack

TABLE = pa.table({"text": ["a", "", "日本"], "count": [1, 2, 3]})


@given(st.text())
def test_a_sentence_is_found_in_a_report(sentence: str) -> None:
    report = f"Job aborted: Task 3 failed\nTraceback:\n  raise\nTaskError: {TaskError(sentence)}\n\tat org.apache.spark"
    assert told(report) == sentence
    assert told("Job aborted: a bug") is None


def test_a_lost_executor_is_told() -> None:
    error = RuntimeError(
        "Task 1 failed 4 times: ExecutorLostFailure (executor 2 exited unrelated to the running tasks)"
    )
    assert "spark.executor.memoryOverhead" in str(sentence_of(error))
    assert sentence_of(RuntimeError("ZeroDivisionError")) is None


def test_tables_come_back() -> None:
    pieces = [(0, pa.py_buffer(pack(TABLE))), (1, pa.py_buffer(b"")), (2, pa.py_buffer(pack(TABLE.slice(1))))]
    assert unpack(pieces, TABLE.schema).equals(pa.concat_tables([TABLE, TABLE.slice(1)]))
    assert unpack([], TABLE.schema).equals(TABLE.schema.empty_table())


def test_rows_are_handed_over_in_batches_of_bounded_size(monkeypatch) -> None:
    monkeypatch.setattr(rows, "_BATCH_BYTES", 10)
    monkeypatch.setattr(rows, "_BATCH_ROWS", 3)
    given_rows = [(number, number * 7, b"x" * length) for number, length in enumerate([4, 4, 4, 1, 1, 1, 30, 0])]
    batches = list(rows._batches(given_rows))
    assert [batch.num_rows for batch in batches] == [3, 3, 1, 1]
    assert [tuple(row.values()) for batch in batches for row in batch.to_pylist()] == given_rows
