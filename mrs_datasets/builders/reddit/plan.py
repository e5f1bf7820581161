"""What a build will need, before it begins: files, disk, memory; refused if the disk is too small."""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mrs_datasets.builders.pipeline.work_folder import MARKER, work_place
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import require_regular
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.io.storage import (
    Location,
    files_below,
    find_files,
    is_url,
    same_file,
    scratch_folder,
)
from mrs_suggest.common.io.storage import size as size_of

# Of monthly dumps: bytes of JSON per comment, and zstd's ratio (2010-2019: 5.8 TB in 6.65 billion comments).
LINE_BYTES = 872
RATIOS = {".zst": 8.0, ".xz": 9.0, ".bz2": 7.0, ".gz": 5.5}
# Measured on the generator's months (benchmarks/bench_build.py, bench_scale.py); rounded up.
SPILL_BYTES = 180  # on disk, per comment of a partition
PAIR_BYTES = 260  # on disk, per pair, before and after it is written as Parquet, together
SIGNED_BYTES = 440  # on disk, in addition per pair if duplicates are searched: its signatures, temporarily twice
PAIRS_PER_COMMENT = 0.6
READER_BYTES = int(2.7e9)  # of a process that reads a month with a window of 2 GiB
BUCKET_BYTES = 1800  # in memory, per comment of the bucket that a worker joins, masks and identifies
RESERVE = 1.1  # of the disk


@dataclass(frozen=True)
class BuildPlan:
    """A build's plan; all figures but `files` and `bytes` are estimates.

    Attributes:
        files: the dumps, in the order of their names.
        bytes: of the dumps.
        comments: in them.
        disk: peak bytes that the build needs in addition to the dumps.
        workers: processes at a time.
        memory: bytes that all of them need together.
        buckets: parts of the join.
    """

    files: tuple[Location, ...]
    bytes: int
    comments: int
    disk: int
    workers: int
    memory: int
    buckets: int

    def lines(self) -> list[str]:
        """The lines printed before the build begins."""
        names = [path.name for path in self.files]
        shown = ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:2])} ... {names[-1]}"
        return [
            f"{len(names)} files, {readable(self.bytes)}: {shown}",
            f"about {self.comments:,} comments; disk {readable(self.disk)} beside them, memory {readable(self.memory)} "
            f"with {self.workers} {'worker' if self.workers == 1 else 'workers'}, {self.buckets} buckets",
        ]


def find_dumps(patterns: Sequence[str]) -> tuple[Location, ...]:
    """The files of the patterns, each once, in the order of their names.

    Raises:
        InputError: a pattern matches nothing, or a pipe or device; two files have one name, or a storage cannot be
            reached.
    """
    found: dict[str, Location] = {}
    for pattern in patterns:
        files = find_files(pattern) if is_url(pattern) else _local_files(pattern)
        if not files:
            raise InputError(f"--dumps {masked(pattern)}: no such file; pass monthly dumps such as 'RC_*.zst'.")
        for path in files:
            if not same_file(found.setdefault(path.name, path), path):
                raise InputError(f"--dumps: {path} and {found[path.name]} have the same name; pass one of them.")
    return tuple(found[name] for name in sorted(found))


def _local_files(pattern: str) -> list[Location]:
    matches = sorted(Path(name) for name in glob.glob(os.path.expanduser(pattern)))
    files = [path for path in matches if not path.is_dir()]
    for path in files:
        require_regular(path)
    return [path for path in files if path.is_file()]


def begun_buckets(out: Location) -> int | None:
    """The number of buckets of an interrupted build to `out`; None if there is none.

    A resumed build must keep it, even with other workers or memory than planned.
    """
    try:
        return int(json.loads((work_place(out) / MARKER).read_text(encoding="utf-8"))["buckets"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def make_build_plan(
    files: Sequence[Location], out: Location, workers: int | None, memory: int, buckets: int, clean: bool = False
) -> BuildPlan:
    """Estimate a build, and refuse an impossible one.

    Args:
        out: the data set's folder; work is beside it. For a remote one, the scratch folder's disk is checked.
        workers: at most this many; None: as many as cores and memory allow.
        memory: bytes that the build may use.
        buckets: at least this many; more if a bucket would not fit into memory.
        clean: whether duplicates are searched.

    Raises:
        InputError: the disk or the memory is too small.
    """
    if memory < READER_BYTES:
        raise InputError(
            f"--memory {readable(memory)}: reading a month takes {readable(READER_BYTES)} (its window alone is 2 GiB)."
        )
    fit = max(1, min(memory // READER_BYTES, os.cpu_count() or 1))
    workers = min(workers, fit) if workers else fit
    size = sum(map(size_of, files))
    months = [size_of(path) * RATIOS.get(path.suffix, 1.0) / LINE_BYTES for path in files]
    comments = int(sum(months))
    pair_bytes = PAIR_BYTES + (SIGNED_BYTES if clean else 0)
    disk = int(RESERVE * comments * (SPILL_BYTES + PAIRS_PER_COMMENT * pair_bytes))
    needed = -(-comments * BUCKET_BYTES * workers // memory)
    while buckets < needed:
        buckets *= 2
    if isinstance(out, Path):
        held = sum(map(size_of, files_below(work_place(out))))  # used, or replaced
        _require_room(disk - held, disk, out, f"--out {out}")
    else:  # a month per worker, in groups and in buckets; then the pairs, before they are sent
        scratch = int(RESERVE * max(2 * workers * max(months) * SPILL_BYTES, comments * PAIRS_PER_COMMENT * pair_bytes))
        _require_room(scratch, scratch, scratch_folder(out), f"--scratch {scratch_folder(out)}")
    readers = min(workers, len(files))
    return BuildPlan(tuple(files), size, comments, disk, workers, readers * READER_BYTES, buckets)


def _require_room(missing: int, needed: int, folder: Path, option: str) -> None:
    """Refuse a folder whose disk has less free space than is missing."""
    place = next(there for there in (folder, *folder.absolute().parents) if there.is_dir())
    free = shutil.disk_usage(place).free
    if missing > free:
        raise InputError(
            f"{option}: the build needs about {readable(needed)}, and {place} has {readable(free)} free; choose "
            "another disk, or build fewer months."
        )


def read_size(text: str) -> int:
    """Bytes from `8GB`, `512MB` or `2GiB`.

    Raises:
        InputError: it is not a size.

    >>> read_size("8GB"), read_size("2GiB")
    (8000000000, 2147483648)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(i?)B?", text.strip(), re.IGNORECASE)
    if not found:
        raise InputError(f"--memory {text}: expected a size such as 8GB.")
    power = "KMGT".index(found[2].upper()) + 1
    return int(float(found[1]) * (1024 if found[3] else 1000) ** power)


def readable(size: float) -> str:
    """Bytes for people: 1.5 GB.

    >>> readable(1_500_000_000)
    '1.5 GB'
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
