"""Work on many prompts in parts that outlive a kill: each is a file next to the output until that is written."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tqdm import tqdm

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_file, atomic_write, writing

# Prompts of a part; ours: what a kill can cost, and the most that are decoded together. The parts must not depend on
# the batch size, so that a run that was killed for its memory can go on with smaller batches.
PART = 64
IDENTITY = "identity.json"


@dataclass(frozen=True)
class Part:
    """Some prompts for one member: `name` is that of its file."""

    name: str
    member: int
    prompts: Sequence[str]


def make_parts(members: int, lengths: Mapping[str, int]) -> list[Part]:
    """For each member the prompts in parts of similar length, the longest first, so that memory fails early."""
    order = sorted(lengths, key=lambda key: -lengths[key])
    return [
        Part(f"{member}-{number:05d}.parquet", member, prompts)
        for member in range(members)
        for number, prompts in enumerate(in_batches(order, PART))
    ]


def folder_of(out: Path) -> Path:
    return out.with_name(f".{out.name}.parts")


@contextmanager
def parts_of(out: Path, identity: Mapping[str, Any], overwrite: bool) -> Iterator[Path]:
    """The folder of parts, new or with those of an interrupted call; it goes when the block ends without an error.

    After an error it stays if it holds a part.

    Args:
        identity: what decides the output; JSON.
        overwrite: drop the parts of a call with another identity.

    Raises:
        InputError: it holds parts of another call, or cannot be written.
    """
    folder, text = folder_of(out), json.dumps(identity, indent=2, ensure_ascii=False) + "\n"
    before = folder / IDENTITY
    with writing(folder):
        if folder.exists() and not (before.is_file() and before.read_text(encoding="utf-8") == text):
            if not overwrite and any(folder.glob("*.parquet")):
                raise InputError(
                    f"{folder}: holds parts of an interrupted call with {_difference(before, identity)}; repeat that "
                    "call to finish it, pass --overwrite to drop them, or choose another --out."
                )
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(before, text)
    try:
        yield folder
    except BaseException:
        if not any(folder.glob("*.parquet")):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def run_parts(
    folder: Path, parts: Sequence[Part], schema: pa.Schema, make: Callable[[Part], pa.Table], title: str
) -> pa.Table:
    """All rows, part after part; parts that exist are not made again. InputError if one cannot be written."""
    tables = []
    with tqdm(total=sum(len(part.prompts) for part in parts), desc=title, unit=" prompts", disable=None) as bar:
        for part in parts:
            path = folder / part.name
            table = _read(path, schema)
            if table is None:
                table = make(part)
                with writing(path), atomic_file(path) as partial:
                    pq.write_table(table, partial, compression="zstd")
            tables.append(table)
            bar.update(len(part.prompts))
    return pa.concat_tables(tables)


def _read(path: Path, schema: pa.Schema) -> pa.Table | None:
    """A finished part; None if it is missing or broken, as a machine that stops can leave behind."""
    try:
        table = pq.read_table(path)
        return table.select(schema.names).cast(schema)
    except (OSError, pa.ArrowException, KeyError, ValueError):
        return None


def _difference(before: Path, identity: Mapping[str, Any]) -> str:
    """The differences to the call that made the parts."""
    try:
        other = json.loads(before.read_text(encoding="utf-8"))
        keys = [key for key in {**other, **identity} if other.get(key) != identity.get(key)]
    except (OSError, ValueError, AttributeError):
        return "unknown options"
    return f"other {', '.join(keys)}"
