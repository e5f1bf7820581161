"""Exact search for the vectors with the largest products with a message's vector, fast for many vectors.

A small table is multiplied in float32. A table of `CODED_FROM` or more rows is stored in float16 together with 8-bit
codes, so that a product reads a quarter of the memory. The distance of each row from its code bounds the error of a
product (Cauchy-Schwarz): rows that may be among the best are multiplied again exactly, so the result equals that of a
product of all rows. The product of codes is torch's; without torch, NumPy converts them to float32 in blocks that fit
the processor's cache, which is faster than reading float32 rows from memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

CODED_FROM = 16_384  # rows; ours: with fewer, one float32 product is faster (benchmarks/bench_search.py)
_ROWS_AT_A_TIME = 8_192  # converted to float32
_BLOCK = 1 << 18  # codes that NumPy converts at a time, 1 MiB of float32; ours
_LARGEST = 127  # code of a row
# Code of a message: without VNNI, processors add two products in 16 bits, and 255 * 63 * 2 fits.
_LARGEST_ASKED = 63
_EPSILON = 2.0**-23  # of float32
_HALF_ERROR = 2.0**-10  # of a row's norm; with a larger error in float16, rows stay float32
TABLE_ARRAYS = ("vectors", "codes", "scales", "errors", "centre")
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Codes:
    """8-bit codes of N rows: row r is `centre + scales[r] * codes[r]` with an error of norm `errors[r]` at most.

    Attributes:
        codes: (N, d) int8.
        scales, errors: (N,) float32.
        centre: (d,) float32, the mean row.
    """

    codes: NDArray[np.int8]
    scales: Array
    errors: Array
    centre: Array

    @classmethod
    def of(cls, rows: NDArray[np.floating]) -> Codes:
        """Code (N, d) rows of any norm."""
        chunks = _chunks(rows)
        centre = np.asarray(sum(chunk.sum(0, dtype=np.float64) for chunk in chunks) / len(rows), np.float32)
        codes, scales, errors = [], [], []
        for chunk in chunks:
            rest = chunk.astype(np.float64) - centre
            scale = np.maximum((np.abs(rest).max(1) / _LARGEST).astype(np.float32), np.float32(1e-30))
            code = np.clip(np.rint(rest / scale[:, None]), -_LARGEST, _LARGEST)
            error = np.linalg.norm(rest - code * scale[:, None], axis=1)
            codes.append(code.astype(np.int8))
            scales.append(scale)
            errors.append(error.astype(np.float32) * np.float32(1 + 1e-6))
        return cls(np.concatenate(codes), np.concatenate(scales), np.concatenate(errors), centre)

    @cached_property
    def _farthest(self) -> tuple[float, float]:
        """The largest error of a row, and a bound on the norm of a decoded row without the centre."""
        longest = float(self.scales.max()) * _LARGEST * self.codes.shape[1] ** 0.5
        return float(self.errors.max()), longest

    def products(self, query: Array) -> Array:
        """(N,) products with a query (d,); see `slack`."""
        if _codes_work(self.codes.shape[1]):
            codes, steps, _ = _asked(query)
            coarse, fine = _products_of_codes(self.codes, codes).T
            found = coarse.astype(np.float32)
            found *= steps[0]
            found += fine.astype(np.float32) * steps[1]
        else:
            found = _products_in_blocks(self.codes, query)
        found *= self.scales
        found += np.float32(query @ self.centre)
        return found

    def slack(self, query: Array) -> float:
        """The largest error of `products`.

        A float32 sum of d products is off by at most d roundings of the product of the norms (Higham 2002, section
        3.1); four more cover the steps after it.
        """
        norm, rest = float(np.linalg.norm(query.astype(np.float64))), _asked(query)[2]
        error, longest = self._farthest
        rounding = (self.codes.shape[1] + 4) * _EPSILON
        return error * norm + longest * rest + rounding * norm * (longest + float(np.linalg.norm(self.centre)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays for `from_arrays`."""
        return {"codes": self.codes, "scales": self.scales, "errors": self.errors, "centre": self.centre}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], rows: NDArray[np.floating]) -> Codes:
        """The codes of these rows that `arrays` wrote; ValueError if they do not match the rows.

        They are computed again if they are missing, or were rounded to float16 with the rest of a model.
        """
        if "codes" not in arrays or any(arrays[n].dtype != np.float32 for n in ("scales", "errors", "centre")):
            return cls.of(rows)
        found = cls(*(arrays[name] for name in ("codes", "scales", "errors", "centre")))
        shapes = rows.shape, (len(rows),), (len(rows),), rows.shape[1:]
        fits = all(array.shape == shape for array, shape in zip(found.arrays().values(), shapes, strict=True))
        if not fits or found.codes.dtype != np.int8:
            raise ValueError("the codes do not match the vectors")
        return found


@dataclass(frozen=True)
class VectorTable:
    """N vectors; create it with `build`, or with `from_arrays`, whose arrays may be memory-mapped.

    Attributes:
        rows: (N, d) float32, or float16 with codes.
        codes: for the first step of a search; None in a small table.
    """

    rows: NDArray[np.floating]
    codes: Codes | None = None

    @classmethod
    def build(cls, vectors: NDArray[np.floating]) -> VectorTable:
        """A table of (N, d) vectors; a large one is rounded to float16, unless that loses too much."""
        rows = np.ascontiguousarray(vectors, np.float32)
        if len(rows) < CODED_FROM:
            return cls(rows)
        with np.errstate(over="ignore"):  # what float16 cannot hold stays float32
            half = rows.astype(np.float16)
        exact = all(
            bool((np.linalg.norm(whole - stored, axis=1) <= _HALF_ERROR * np.linalg.norm(whole, axis=1)).all())
            for whole, stored in zip(_chunks(rows), _chunks(half), strict=True)
        )
        kept = half if exact else rows
        return cls(kept, Codes.of(kept))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays for `from_arrays`: `vectors`, and those of `Codes.arrays`."""
        return {"vectors": self.rows, **(self.codes.arrays() if self.codes else {})}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> VectorTable:
        """The table that `arrays` wrote, or one of `vectors` alone; KeyError or ValueError if it is damaged."""
        rows = arrays["vectors"]
        if rows.ndim != 2 or rows.dtype.kind != "f":
            raise ValueError("expected the vectors to be a table of floating-point numbers")
        if len(rows) < CODED_FROM:
            return cls(np.asarray(rows, np.float32))
        return cls(rows, Codes.from_arrays(arrays, rows))

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, queries: NDArray[np.floating]) -> Array:
        """(n, d) queries -> (n, N) float32, of the rows themselves."""
        asked = np.asarray(queries, np.float32)
        if self.rows.dtype == np.float32:
            return np.asarray(asked @ self.rows.T)
        found = np.empty((len(asked), len(self.rows)), np.float32)
        for begin, chunk in zip(range(0, len(self.rows), _ROWS_AT_A_TIME), _chunks(self.rows), strict=True):
            found[:, begin : begin + len(chunk)] = asked @ chunk.astype(np.float32).T
        return found

    def products_of(self, numbers: NDArray[np.int64], query: Array) -> Array:
        """(r,) float32 products of a query (d,) with the rows of these numbers, summed in float64."""
        asked = query.astype(np.float64)
        found = [self.rows[chunk].astype(np.float64) @ asked for chunk in _chunks(np.asarray(numbers))]
        return np.concatenate(found).astype(np.float32)

    def estimates(self, query: Array) -> Array:
        """(N,) products of a query (d,) with an error of at most `slack`."""
        return self.products(query[None])[0] if self.codes is None else self.codes.products(query)

    def slack(self, query: Array) -> float:
        """The largest error of `estimates`; 0 in a small table."""
        return 0.0 if self.codes is None else self.codes.slack(query)


def _chunks(rows: NDArray[Any]) -> list[NDArray[Any]]:
    """At least one."""
    return [rows[begin : begin + _ROWS_AT_A_TIME] for begin in range(0, max(1, len(rows)), _ROWS_AT_A_TIME)]


def _asked(query: Array) -> tuple[NDArray[np.int8], Array, float]:
    """A query (d,) as (d, 2) coarse and fine codes with their (2,) scales, and the norm of the remainder."""
    rest, codes, scales = query.astype(np.float64), [], []
    for _ in range(2):
        scale = max(float(np.abs(rest).max()) / _LARGEST_ASKED, 1e-30)
        code = np.rint(rest / scale)
        rest = rest - code * scale
        codes.append(code.astype(np.int8))
        scales.append(scale)
    return np.stack(codes, 1), np.array(scales, np.float32), float(np.linalg.norm(rest))


def _products_of_codes(rows: NDArray[np.int8], asked: NDArray[np.int8]) -> NDArray[np.int32]:
    """(N, d) and (d, 2) codes -> (N, 2) exact products."""
    import torch

    found: NDArray[np.int32] = torch._int_mm(torch.from_numpy(rows), torch.from_numpy(asked)).numpy()
    return found


def _products_in_blocks(rows: NDArray[np.int8], query: Array) -> Array:
    """(N, d) codes and a query (d,) -> (N,)."""
    count, dimension = rows.shape
    height = min(count, max(1, _BLOCK // max(1, dimension)))
    found, block = np.empty(count, np.float32), np.empty((height, dimension), np.float32)
    for begin in range(0, count, height):
        part = rows[begin : begin + height]
        np.copyto(block[: len(part)], part)
        np.matmul(block[: len(part)], query, out=found[begin : begin + height])
    return found


@cache
def _codes_work(dimension: int) -> bool:
    """Whether torch multiplies the largest codes correctly on this processor; 8-bit kernels may saturate."""
    signs = np.tile(np.array([1, -1], np.int8), 64)[:, None]
    rows = np.repeat(signs * np.int8(_LARGEST), dimension, axis=1)
    try:
        found = _products_of_codes(rows, np.full((dimension, 2), _LARGEST_ASKED, np.int8))
    except (ImportError, AttributeError, RuntimeError):
        return False
    return bool((found == signs.astype(np.int32) * (_LARGEST * _LARGEST_ASKED * dimension)).all())
