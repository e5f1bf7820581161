"""Findings of `mrs data check`: the number of rows in a split that break a rule, and the first of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.describe.describe import BATCH_ROWS

EXAMPLES = 3
SEPARATOR = "\x1f"  # between the columns of a row


@dataclass(frozen=True)
class Finding:
    """One rule that a split breaks.

    Attributes:
        level: `error` or `warning`.
        rule: the check, in words.
        where: config/split, or a config.
        count: how many rows (texts, files) break it.
        examples: at most three, each with its row (from 0).
    """

    level: str
    rule: str
    where: str
    count: int
    examples: tuple[str, ...]


class Examples:
    """How many rows break a rule, and the first of them."""

    def __init__(self) -> None:
        self.count = 0
        self.shown: list[str] = []

    def add(self, mask: Any, texts: pa.Array | pa.ChunkedArray, start: int) -> None:
        """Count the rows where `mask` is true; `start` is the number of the first row, `texts` the example of each."""
        rows = np.flatnonzero(np.asarray(mask, bool))
        self.count += len(rows)
        for row in rows[: EXAMPLES - len(self.shown)]:
            self.shown.append(f"row {start + row}: {shorten(texts[int(row)].as_py())}")

    def finding(self, level: str, rule: str, where: str) -> Iterator[Finding]:
        if self.count:
            yield Finding(level, rule, where, self.count, tuple(self.shown))


def shorten(value: object) -> str:
    text = " | ".join(str(value).split(SEPARATOR))
    return text if len(text) <= 120 else text[:119] + "…"


def batches(files: list[Path], columns: list[str]) -> Iterator[tuple[int, pa.Table]]:
    """(number of the first row, rows) of all files."""
    start = 0
    for path in files:
        for batch in pq.ParquetFile(path).iter_batches(batch_size=BATCH_ROWS, columns=columns):
            yield start, pa.Table.from_batches([batch])
            start += batch.num_rows


def joined(table: pa.Table, columns: list[str]) -> pa.ChunkedArray:
    """The columns of each row as one text, lists with spaces between their texts."""
    texts = [
        pc.binary_join(column, " ") if pa.types.is_list(column.type) else column.cast(pa.string())
        for column in (table[name] for name in columns)
    ]
    texts = [pc.fill_null(text, "") for text in texts]
    return pc.binary_join_element_wise(*texts, SEPARATOR) if len(texts) > 1 else texts[0]
