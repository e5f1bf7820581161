"""The pairs of a bucket on disk, between the stages: an Arrow file, ordered by language, with a checksum per column."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import checked_batch, reader_of, reading, write_batches
from mrs_suggest.common.io.storage import Location, open_arrow

BATCH_ROWS = 1 << 16


def by_language(pairs: pa.Table) -> pa.Table:
    """The pairs grouped by language, else in the same order. (Sorting would put all texts into one array of 2 GiB.)"""
    languages = sorted(pc.unique(pairs["language"]).to_pylist())
    parts = [pairs.filter(pc.equal(pairs["language"], language)) for language in languages]
    return pa.concat_tables(parts) if parts else pairs


def write_pairs(path: Location, pairs: pa.Table) -> None:
    """Write pairs that are ordered by `language`; the file appears whole.

    Raises:
        InputError: the disk reports an error.
    """
    write_batches(path, pairs.schema, pairs.to_batches(max_chunksize=BATCH_ROWS))


def read_pairs(path: Location, language: str, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """The rows of a language, and the number of the first of them in the file.

    Args:
        columns: only these are read.

    Raises:
        InputError: the file is damaged.
    """
    with reading(path), open_arrow(path) as source:
        before, numbers = _batches_of(source, language)
        reader = reader_of(source, [*columns, "language"])
        batches = [checked_batch(reader, number) for number in numbers]
        table = pa.Table.from_batches(batches, reader.schema)
        rows = np.flatnonzero(pc.equal(table["language"], language).to_numpy())
        first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return table.select(list(columns)).slice(first, end - first), before + first


def _batches_of(source: pa.NativeFile, language: str) -> tuple[int, list[int]]:
    """The number of rows before the batches that may have the language, and the numbers of these batches."""
    reader = reader_of(source, ["language"])
    before, found = 0, []
    for number in range(reader.num_record_batches):
        languages = checked_batch(reader, number)["language"]
        if not len(languages) or languages[-1].as_py() < language:
            before += len(languages)
        elif languages[0].as_py() <= language:
            found.append(number)
    return before, found
