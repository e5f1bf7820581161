"""Stage 7, split: train, validation and test, 80/10/10 by a stable hash (Zhang et al. 2021, section 2).

The hash split of a folder of pairs (`mrs_datasets.readers.pairs.pairs.split_of`) uses the message's text. Here it uses
the keys that the join made from the ids: a thread has many messages, and an example is more than its message.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_datasets.prepared.schema import SPLITS
from mrs_suggest.common.errors import InputError

# How to split -> the column of 64-bit keys that decides.
KEYS = {"thread": "thread", "example": "order"}
_TENTHS = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2)  # of the pairs: positions in SPLITS


def assign_splits(pairs: pa.Table, by: str) -> pa.Table:
    """Append the column `split` to `pairs`; rows and order stay.

    Args:
        pairs: with the column `thread` (by="thread") or `order` (by="example"), uint64.
        by: "thread": all pairs of a thread are in one split, so that no test message was seen as a training reply;
            "example": every pair on its own, as in the paper.

    Raises:
        InputError: `by` is neither.
    """
    if by not in KEYS:
        raise InputError(f"--split-by: expected one of {' '.join(KEYS)}, found {by!r}.")
    numbers = split_numbers(pairs[KEYS[by]].to_numpy())
    column = pa.DictionaryArray.from_arrays(pa.array(numbers), pa.array(SPLITS, pa.string()))
    return pairs.append_column("split", column.cast(pa.string()))


def split_numbers(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int8]:
    """(n,) 64-bit keys -> (n,) positions in `SPLITS`; equal keys get equal splits, on every machine and version.

    >>> [SPLITS[number] for number in split_numbers(np.arange(6, dtype=np.uint64))]
    ['train', 'train', 'train', 'train', 'validation', 'validation']
    """
    return np.asarray(np.array(_TENTHS, dtype=np.int8)[mix(keys) % np.uint64(10)])


def mix(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele et al. 2014): a one-to-one scrambling of 64-bit numbers.

    The buckets of the partition are remainders of the same keys: unmixed, the split of a bucket would be lopsided.
    """
    mixed = keys.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
