"""Synthetic data: generated data sets and Reddit dumps, and the phrase books of the embedded sample."""

from collections.abc import Iterator
from typing import Any

Tables = Iterator[tuple[str, str, list[dict[str, Any]]]]  # (config, split, rows) of a generated data set
