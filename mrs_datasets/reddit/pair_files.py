"""The pairs of a bucket on disk, between the stages: an Arrow file, ordered by language."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_core.errors import InputError
from mrs_datasets.reddit.work import writing


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
                writer.write_table(pairs, max_chunksize=1 << 16)
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
            schema = pa.ipc.open_file(source).schema
            wanted = sorted(schema.get_field_index(name) for name in {*columns, "language"})
            table = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted)).read_all()
            rows = np.flatnonzero(pc.equal(table["language"], language).to_numpy())
            start, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
            return table.select(list(columns)).slice(start, end - start), start
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise damaged(path, reason) from None


def damaged(path: Path, reason: str) -> InputError:
    """What to say of a file between the stages that is not what was written."""
    return InputError(f"{path}: is damaged ({reason}); delete it and go on with --resume.")
