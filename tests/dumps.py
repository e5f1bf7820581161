"""What the tests of a build from dumps share: a small language model, small months, and what is in a data set."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

MONTHS = ("2018-01", "2018-02")
SMALL = ("--min-examples", 300, "--min-reply-count", 2)  # for months of a few thousand comments


def write_months(
    folder: Path, comments: int, seed: int = 1, months: tuple[str, ...] = MONTHS, long_thread: int = 0
) -> Path:
    """Synthetic months with a small window, which takes little memory."""
    from mrs_datasets.synthetic.dumps import write_dumps

    write_dumps(folder, months, comments, seed, window_log=22, long_thread=long_thread)
    return folder


def parquet_bytes(folder: Path) -> dict[str, bytes]:
    """Every Parquet file of a data set by its path in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def all_bytes(folder: Path) -> dict[str, bytes]:
    """Every file of a folder by its path in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def read_pairs(folder: Path) -> Counter[tuple[str, str, str, str]]:
    """Language, split, message and reply of every pair."""
    found: Counter[tuple[str, str, str, str]] = Counter()
    for path in sorted((folder / "data").rglob("*.parquet")):
        if not path.parent.name.endswith("-responses"):
            split = path.name.split("-")[0]
            rows = pq.read_table(path).to_pylist()
            found.update((path.parent.name, split, row["message"], row["reply"]) for row in rows)
    return found


def read_report(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "report.json").read_text(encoding="utf-8")))


def leftovers(folder: Path, *wanted: str) -> list[str]:
    """Names in a folder besides those that are wanted there, hidden ones too."""
    return sorted(path.name for path in folder.iterdir() if path.name not in wanted)
