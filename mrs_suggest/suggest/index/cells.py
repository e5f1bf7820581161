"""The search for the vectors of a large table with the largest products with a message's vector.

A product of all rows is exact and fast enough for tens of thousands. In a larger table the rows are grouped in cells by
k-means (inverted file: Jégou, Douze and Schmid 2011, "Product Quantization for Nearest Neighbor Search", section IV); a
search compares the rows of the nearest cells along their principal axes, and returns the best for an exact comparison.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

CELLS_FROM = 50_000  # rows; with fewer, all are multiplied in less than 6 ms
# The following are ours, chosen on real replies for a recall of .99 or more (benchmarks/bench_large_search.py).
PROBED = 0.1  # share of the cells that a search visits
DIMENSIONS = 64  # along which rows are compared first
RESCORED = 256  # rows at least that are compared exactly
_ROUNDS = 8  # of k-means
_SAMPLE = 64  # rows per cell from which the centres are found
_ROWS_AT_A_TIME = 8_192
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Cells:
    """N rows in c cells; create it with `of`.

    Attributes:
        centres: (c, d) the mean of each cell's rows.
        starts: (c + 1,) int64; the rows of cell i are `order[starts[i] : starts[i + 1]]`.
        order: (N,) int64 numbers of the rows, cell by cell.
        axes: (d, q) orthonormal.
        short: (N, q) the rows along the axes, in this order.
    """

    centres: Array
    starts: NDArray[np.int64]
    order: NDArray[np.int64]
    axes: Array
    short: Array

    @classmethod
    def of(cls, rows: Array) -> Self:
        """Group (N, d) rows in about sqrt(N) cells; equal rows give equal cells."""
        count = round(len(rows) ** 0.5)
        some = rows[np.linspace(0, len(rows) - 1, min(len(rows), _SAMPLE * count)).astype(np.int64)]
        centres = some[np.linspace(0, len(some) - 1, count).astype(np.int64)]
        for _ in range(_ROUNDS):
            centres = _means(some, _nearest(some, centres), centres)
        of_row = _nearest(rows, centres)
        order = np.argsort(of_row, kind="stable")
        starts = np.searchsorted(of_row[order], np.arange(count + 1))
        _, axes = np.linalg.eigh(some.T.astype(np.float64) @ some)
        axes = np.ascontiguousarray(axes[:, ::-1][:, :DIMENSIONS], np.float32)
        short = np.concatenate([part @ axes for part in _chunks(rows)])[order]
        return cls(_means(rows, of_row, centres), starts, order, axes, short)

    def likely(self, query: Array, least: int) -> NDArray[np.int64]:
        """(n,) ascending numbers of rows that probably have the `least` largest products with a query (d,)."""
        visited = np.argsort(-(self.centres @ query), kind="stable")
        sizes = np.diff(self.starts)[visited].cumsum()
        enough = max(int(np.ceil(PROBED * len(visited))), int(np.searchsorted(sizes, least)) + 1)
        parts = [slice(self.starts[cell], self.starts[cell + 1]) for cell in visited[:enough]]
        asked = query @ self.axes
        scores = np.concatenate([self.short[part] @ asked for part in parts])
        numbers = np.concatenate([self.order[part] for part in parts])
        best = np.argpartition(-scores, least - 1)[:least] if least < len(scores) else slice(None)
        return np.sort(numbers[best])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {f"cells.{name}": value for name, value in vars(self).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rows: Array) -> Self | None:
        """The cells of (N, d) rows that `arrays` wrote, found again if they are missing; None for a small table.

        Raises:
            ValueError: they are damaged.
        """
        if len(rows) < CELLS_FROM:
            return None
        if "cells.order" not in arrays:
            return cls.of(rows)
        found = cls(*(arrays[f"cells.{name}"] for name in ("centres", "starts", "order", "axes", "short")))
        (size, width), count, dimension = rows.shape, len(found.centres), found.axes.shape[-1]
        shapes = (count, width), (count + 1,), (size,), (width, dimension), (size, dimension)
        fits = all(array.shape == shape for array, shape in zip(vars(found).values(), shapes, strict=True))
        fits = fits and found.starts[0] == 0 and found.starts[-1] == size and bool((np.diff(found.starts) >= 0).all())
        if not fits or found.order.min() < 0 or found.order.max() >= size:
            raise ValueError("the cells do not match the vectors")
        return found


def _chunks(rows: Array) -> list[Array]:
    return [rows[begin : begin + _ROWS_AT_A_TIME] for begin in range(0, len(rows), _ROWS_AT_A_TIME)]


def _nearest(rows: Array, centres: Array) -> NDArray[np.int64]:
    """(n,) the nearest of the centres (c, d) for each row (n, d)."""
    half = (centres**2).sum(1) / 2
    return np.concatenate([(part @ centres.T - half).argmax(1) for part in _chunks(rows)])


def _means(rows: Array, of_row: NDArray[np.int64], before: Array) -> Array:
    """(c, d) the mean row of each cell; that of `before` if it is empty."""
    found = before.copy()
    order = np.argsort(of_row, kind="stable")
    cells, begins = np.unique(of_row[order], return_index=True)
    for cell, members in zip(cells, np.split(order, begins[1:]), strict=True):
        found[cell] = rows[members].mean(0)
    return found
