"""Changes of the texts of a column in turn; only texts that a pattern finds become Python strings."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrs_suggest.common.text.masks import Step

BATCH_TEXTS = 16_384  # Python texts in memory at a time


def change_in_turn(texts: pa.Array, steps: Sequence[Step]) -> tuple[pa.Array, NDArray[np.int64]]:
    """Apply steps to each text, one after the other.

    A text that no step's pattern finds is not changed by the first step, so not by the second, and so on.

    Args:
        texts: strings without nulls.

    Returns:
        The texts, and the rows of those that changed, in their order.
    """
    found = found_rows(texts, "|".join(step.may_change for step in steps))
    if not len(found):
        return texts, found
    before = after = texts.take(pa.array(found))
    for step in steps:
        after = _change(after, step)
    other = _booleans(pc.not_equal(after, before))
    return with_rows(texts, found[other], after.filter(pa.array(other))), found[other]


def _change(texts: pa.Array, step: Step) -> pa.Array:
    found = found_rows(texts, step.may_change)
    rows: list[int] = []
    changed: list[str] = []
    for start in range(0, len(found), BATCH_TEXTS):
        part = found[start : start + BATCH_TEXTS]
        for row, text in zip(part.tolist(), texts.take(pa.array(part)).to_pylist(), strict=True):
            other = step.change(text)
            if other != text:
                rows.append(row)
                changed.append(other)
    return with_rows(texts, np.array(rows, np.int64), pa.array(changed, texts.type))


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
