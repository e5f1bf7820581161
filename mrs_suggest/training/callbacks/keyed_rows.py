"""The training rows of several sources one after the other, each with its source's key, such as its task."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from torch.utils.data import ConcatDataset, Dataset

Key = TypeVar("Key")


class KeyedRows(Dataset[tuple[Key, Any]], Generic[Key]):
    """Rows as (key, row).

    Args:
        sources: key -> rows, which have a length and are read by their number.
    """

    def __init__(self, sources: Sequence[tuple[Key, Any]]) -> None:
        self._keys = [key for key, _ in sources]
        self._rows: ConcatDataset[Any] = ConcatDataset([rows for _, rows in sources])

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> tuple[Key, Any]:
        return self._keys[bisect_right(self._rows.cumulative_sizes, number)], self._rows[number]
