"""Values that occur several times in a long column, in bounded memory and one or few passes over the column."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import numpy.typing as npt

from mrs_datasets.builders.reddit.partition import mix

PART_PAIRS = 1 << 24  # sorted together: .8 GB
Numbers = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.uint32]
Rows = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


def parts_of(number: int) -> range:
    """The parts of so many values in which `repeated` finds them."""
    return range(-(-number // PART_PAIRS))


def repeated(
    values: Sequence[Numbers | Keys], arrival: Sequence[Numbers], parts: range, folder: Path, skip: Marks | None = None
) -> Iterator[tuple[Rows, Marks]]:
    """Positions (m,) of the pairs that share their value with others, value by value; (m,), true for the first ones.

    For one part after the other, which has all pairs of some values: about `PART_PAIRS` are in memory, at 50 bytes
    each. Values (n,), which are hashes in several arrays, are read once. Several parts take temporary space in
    `folder`: 4 bytes per pair, and its value. Pairs are ordered by the numbers (k, n) in `arrival`, else by position.
    """
    number, start, written, runs = len(parts_of(sum(map(len, values)))), 0, 0, []
    with TemporaryFile(dir=folder) as file:
        for scanned in values:
            kept = True if skip is None else ~skip[start : start + len(scanned)]
            run, cuts = _by_part(scanned, kept, parts, number)
            if len(parts) > 1:
                file.write(run.data)  # not mapped, so that a full disk raises an error
                cuts, written, run = cuts + written, written + len(run), run[:0].copy()
            runs.append((start, run, cuts))
            start += len(scanned)
        file.flush()
        whole = np.memmap(file, run.dtype, "r") if written else None  # once: descriptors are few
        for part in range(len(parts)):
            found = [(at, (run if whole is None else whole)[cut[part] : cut[part + 1]]) for at, run, cut in runs]
            rows = (own["row"] + np.int64(first) for first, own in found)
            yield _shared(np.concatenate([*rows]), np.concatenate([mix(own["value"]) for _, own in found]), arrival)


def _by_part(values: Numbers | Keys, kept: Marks | bool, parts: range, number: int) -> tuple[npt.NDArray[Any], Rows]:
    """The positions and values (m,) of an array's kept pairs in some of so many parts, part by part; where each begins,
    and the end."""
    of = values % values.dtype.type(number)
    rows = np.flatnonzero(kept & (of >= parts.start) & (of < parts.stop))
    if len(parts) > 1:
        rows = rows[np.argsort(of[rows].astype(np.uint16), kind="stable")]
    run = np.empty(len(rows), [("row", np.uint32), ("value", values.dtype)])
    run["row"], run["value"] = rows, values[rows]
    return run, np.searchsorted(of[rows], np.arange(parts.start, parts.stop + 1, dtype=of.dtype))


def _shared(rows: Rows, keys: Numbers, arrival: Sequence[Numbers]) -> tuple[Rows, Marks]:
    """What `repeated` yields of some pairs (m,) with their keys (m,)."""
    sorting = np.argsort(keys, kind="stable")
    again = keys[sorting][1:] == keys[sorting][:-1]
    shared = np.sort(sorting[(np.append(again, False) | np.insert(again, 0, False))[: len(rows)]])
    rows, keys = rows[shared], keys[shared]  # sorted: sequential reads
    sorting = np.lexsort((*(take(arrival, rows)[::-1] if arrival else ()), keys))
    rows, keys = rows[sorting], keys[sorting]
    return rows, np.insert(keys[1:] != keys[:-1], 0, True)[: len(rows)]


def take(arrays: Sequence[npt.NDArray[Any]], rows: Rows) -> npt.NDArray[Any]:
    """The columns of some rows (m,) of arrays (k, n) that stand side by side: (k, m)."""
    starts, sorting = np.cumsum([0, *(array.shape[1] for array in arrays)]), np.argsort(rows, kind="stable")
    cuts = pairwise(np.searchsorted(rows, starts, sorter=sorting))
    taken = [array[:, rows[sorting[a:b]] - at] for array, at, (a, b) in zip(arrays, starts, cuts, strict=False)]
    return np.concatenate(taken, axis=1)[:, np.argsort(sorting)]
