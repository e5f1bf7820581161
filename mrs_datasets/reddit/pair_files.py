"""The pairs of a bucket on disk, between the stages: an Arrow file, ordered by language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_core.errors import InputError
from mrs_datasets.reddit.work import writing

BATCH_ROWS = 1 << 16


def write_pairs(path: Path, pairs: pa.Table) -> None:
    """Write pairs that are ordered by `language`; the file appears whole.

    Raises:
        InputError: the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.partial-0")
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with writing(path):
        try:
            sink = pa.OSFile(str(temporary), "wb")
            with sink, pa.ipc.new_file(sink, pairs.schema, options=options) as writer:
                writer.write_table(pairs, max_chunksize=BATCH_ROWS)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def read_pairs(path: Path, language: str, columns: Sequence[str]) -> tuple[pa.Table, int]:
    """The rows of a language, and the number of the first of them in the file.

    Args:
        columns: only these are read.

    Raises:
        InputError: the file is not whole.
    """
    try:
        with pa.OSFile(str(path), "rb") as source:
            before, batches = _batches_of(source, language)
            schema = pa.ipc.open_file(source).schema
            wanted = sorted(schema.get_field_index(name) for name in {*columns, "language"})
            reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))
            table = pa.Table.from_batches([reader.get_batch(number) for number in batches], reader.schema)
            rows = np.flatnonzero(pc.equal(table["language"], language).to_numpy())
            first, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
            return table.select(list(columns)).slice(first, end - first), before + first
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise damaged(path, reason) from None


def damaged(path: Path, reason: str) -> InputError:
    """What to say of a file between the stages that is not what was written."""
    return InputError(f"{path}: is damaged ({reason}); delete it and go on with --resume.")


def _batches_of(source: pa.NativeFile, language: str) -> tuple[int, list[int]]:
    """The batches that may have the language, as numbers, and how many rows come before them."""
    place = pa.ipc.open_file(source).schema.get_field_index("language")
    reader = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=[place]))
    before, found = 0, []
    for number in range(reader.num_record_batches):
        languages = reader.get_batch(number)["language"]
        if not len(languages) or languages[-1].as_py() < language:
            before += len(languages)
        elif languages[0].as_py() <= language:
            found.append(number)
    return before, found
