"""Rows of token ids side by side in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

IGNORED = -100  # the label that torch's cross entropy passes over


def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of any length -> (rows, longest) int64, filled up with `value` on the right."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows], dtype=torch.int64)
