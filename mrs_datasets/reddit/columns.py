"""A function of one text on columns of texts: only the texts that a pattern finds become Python strings.

A pattern is an over-approximation of its function: it finds every text that the function changes, and perhaps others.
It is matched by RE2 over the whole column (.3 us a comment), which has no look-around, whose `\\s` and `\\w` are ASCII
and whose folding of case lacks the dotted and the dotless i; so a pattern names characters instead.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

BATCH_ROWS = 16_384  # Python texts in memory at once


def change_column(texts: pa.Array, change: Callable[[str], str], may_change: str) -> tuple[pa.Array, NDArray[np.int64]]:
    """Replace each text by `change(text)`.

    Args:
        texts: strings without nulls.
        may_change: a pattern in RE2's syntax, to be found in every text that `change` changes.

    Returns:
        The texts, and the rows of those that changed, in their order.
    """
    found = np.flatnonzero(pc.match_substring_regex(texts, may_change).to_numpy(zero_copy_only=False))
    rows: list[int] = []
    changed: list[str] = []
    for start in range(0, len(found), BATCH_ROWS):
        part = found[start : start + BATCH_ROWS]
        for row, text in zip(part.tolist(), texts.take(pa.array(part)).to_pylist(), strict=True):
            other = change(text)
            if other != text:
                rows.append(row)
                changed.append(other)
    return with_rows(texts, np.array(rows, np.int64), pa.array(changed, texts.type)), np.array(rows, np.int64)


def with_rows(texts: pa.Array, rows: NDArray[np.int64], others: pa.Array) -> pa.Array:
    """The texts with those of ascending `rows` replaced by `others`."""
    if not len(rows):
        return texts
    replaced = np.zeros(len(texts), bool)
    replaced[rows] = True
    return pc.replace_with_mask(texts, pa.array(replaced), others)
