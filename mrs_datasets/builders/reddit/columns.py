"""A step's function on columns of texts: only the texts that its pattern finds become Python strings.

The pattern is matched by RE2 over the whole column (.3 us a comment); see `mrs_datasets.builders.reddit.steps`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrs_datasets.builders.reddit.steps import Step, any_of

BATCH_ROWS = 16_384  # Python texts in memory at once


def change_in_turn(texts: pa.Array, steps: Sequence[Step]) -> tuple[pa.Array, NDArray[np.int64]]:
    """Replace each text by what the steps make of it, one after the other; see `change_column`.

    A text that no step's pattern finds is not changed by the first step, so not by the second, and so on.
    """
    found = found_rows(texts, any_of(steps))
    if not len(found):
        return texts, found
    before = after = texts.take(pa.array(found))
    for step in steps:
        after, _ = change_column(after, step)
    other = _booleans(pc.not_equal(after, before))
    return with_rows(texts, found[other], after.filter(pa.array(other))), found[other]


def change_column(texts: pa.Array, step: Step) -> tuple[pa.Array, NDArray[np.int64]]:
    """Replace each text by what the step makes of it.

    Args:
        texts: strings without nulls.

    Returns:
        The texts, and the rows of those that changed, in their order.
    """
    found = found_rows(texts, step.may_change)
    rows: list[int] = []
    changed: list[str] = []
    for start in range(0, len(found), BATCH_ROWS):
        part = found[start : start + BATCH_ROWS]
        for row, text in zip(part.tolist(), texts.take(pa.array(part)).to_pylist(), strict=True):
            other = step.change(text)
            if other != text:
                rows.append(row)
                changed.append(other)
    where = np.array(rows, np.int64)
    return with_rows(texts, where, pa.array(changed, texts.type)), where


def with_rows(texts: pa.Array, rows: NDArray[np.int64], others: pa.Array) -> pa.Array:
    """The texts with those of ascending `rows` replaced by `others`."""
    if not len(rows):
        return texts
    replaced = np.zeros(len(texts), bool)
    replaced[rows] = True
    return pc.replace_with_mask(texts, pa.array(replaced), others)


def found_rows(texts: pa.Array, pattern: str) -> NDArray[np.int64]:
    """The rows of the texts that have a match of a pattern in RE2's syntax."""
    return np.flatnonzero(_booleans(pc.match_substring_regex(texts, pattern)))


def _booleans(values: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)
