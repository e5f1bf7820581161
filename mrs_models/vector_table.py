"""Vectors that are searched for the largest products with a message's vector: exact, and fast where there are many.

A small table is multiplied in float32. From `CODED_FROM` rows on, a table is stored in float16 and has 8-bit codes
beside it, so that a product reads a quarter of the memory. How far each row lies from its code is known, so the
product of codes is wrong by at most a known slack (Cauchy-Schwarz): the rows that may belong to the best are multiplied
again as they are stored, and the answer is the one that a product of all rows gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from mrs_core.files import atomic_file

CODED_FROM = 16_384  # rows; ours: below, the float32 product takes less than the two steps (benchmarks/bench_search.py)
_ROWS_AT_A_TIME = 8_192  # that are held in float32
_LARGEST = 127  # code of a row
# Code of a message: without VNNI, processors add two products in 16 bits, and 255 * 63 * 2 fits.
_LARGEST_ASKED = 63
_ROUNDING = 1e-6  # of float32 sums, relative to the product of the norms; ours, checked by a property test
_HALF_ERROR = 2.0**-10  # of a row's norm: rows that float16 cannot hold so well stay float32
TABLE_ARRAYS = ("vectors", "codes", "scales", "errors", "centre")
Array = NDArray[np.float32]


@dataclass(frozen=True)
class Codes:
    """8-bit codes of N rows: row r is `centre + scales[r] * codes[r]`, but for an error of norm `errors[r]` at most.

    Attributes:
        codes: (N, d) int8.
        scales, errors: (N,) float32.
        centre: (d,) float32, the mean row: what all rows share takes no part of the scale.
    """

    codes: torch.Tensor
    scales: torch.Tensor
    errors: torch.Tensor
    centre: torch.Tensor

    @classmethod
    def of(cls, rows: torch.Tensor) -> Codes:
        """Code (N, d) rows of any norm."""
        chunks = rows.split(_ROWS_AT_A_TIME)
        centre = (torch.stack([chunk.double().sum(0) for chunk in chunks]).sum(0) / len(rows)).float()
        codes, scales, errors = [], [], []
        for chunk in chunks:
            rest = chunk.double() - centre
            scale = (rest.abs().amax(1) / _LARGEST).float().clamp_min(1e-30)
            code = (rest / scale[:, None]).round().clamp(-_LARGEST, _LARGEST)
            error = (rest - code * scale[:, None]).norm(dim=1)
            codes.append(code.to(torch.int8))
            scales.append(scale)
            errors.append(error.float() * (1 + 1e-6))
        return cls(torch.cat(codes), torch.cat(scales), torch.cat(errors), centre)

    @cached_property
    def _farthest(self) -> tuple[float, float]:
        """The largest error of a row, and a bound of the norm of what its code stands for."""
        longest = float(self.scales.max()) * _LARGEST * self.codes.shape[1] ** 0.5
        return float(self.errors.max()), longest

    def products(self, query: torch.Tensor) -> Array:
        """(N,) products with a query (d,); see `slack`."""
        codes, steps, _ = _asked(query)
        coarse, fine = torch._int_mm(self.codes, codes).numpy().T
        # The passes over the result in numpy: on a busy machine each parallel step of torch waits for its last thread.
        found = coarse.astype(np.float32)
        found *= steps[0]
        found += fine.astype(np.float32) * steps[1]
        found *= self.scales.numpy()
        found += np.float32(query.numpy() @ self.centre.numpy())
        return found

    def slack(self, query: torch.Tensor) -> float:
        """By how much the products of the rows with a query differ from `products` at most."""
        norm, rest = float(query.norm()), _asked(query)[2]
        error, longest = self._farthest
        return error * norm + longest * rest + _ROUNDING * norm * (longest + float(self.centre.norm()))

    def arrays(self) -> dict[str, torch.Tensor]:
        """What `from_arrays` reads."""
        return {"codes": self.codes, "scales": self.scales, "errors": self.errors, "centre": self.centre}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, torch.Tensor], rows: torch.Tensor) -> Codes:
        """The codes that `arrays` wrote, of these rows.

        They are made again where they were not written, or were rounded to float16 with the rest of a model.

        Raises:
            ValueError: they do not fit the rows.
        """
        if "codes" not in arrays or any(arrays[n].dtype != torch.float32 for n in ("scales", "errors", "centre")):
            return cls.of(rows)
        found = cls(*(arrays[name] for name in ("codes", "scales", "errors", "centre")))
        shapes = (*rows.shape,), (len(rows),), (len(rows),), (*rows.shape[1:],)
        fits = all(tuple(array.shape) == shape for array, shape in zip(found.arrays().values(), shapes, strict=True))
        if not fits or found.codes.dtype != torch.int8:
            raise ValueError("the codes of the vectors do not fit them")
        return found


@dataclass(frozen=True)
class VectorTable:
    """N vectors; make it with `build`, or with `from_arrays`, whose tensors may be memory-mapped.

    Attributes:
        rows: (N, d) float32, or float16 where there are codes.
        codes: for the first step of a search; None where rows are multiplied at once.
    """

    rows: torch.Tensor
    codes: Codes | None = None

    @classmethod
    def build(cls, vectors: torch.Tensor) -> VectorTable:
        """A table of (N, d) vectors; many are rounded to float16, unless that loses what tells them apart."""
        rows = vectors.detach().float().cpu().contiguous()
        if len(rows) < CODED_FROM:
            return cls(rows)
        half = rows.half()
        exact = all(
            bool(((whole - stored.float()).norm(dim=1) <= _HALF_ERROR * whole.norm(dim=1)).all())
            for whole, stored in zip(rows.split(_ROWS_AT_A_TIME), half.split(_ROWS_AT_A_TIME), strict=True)
        )
        rows = half if exact else rows
        return cls(rows, Codes.of(rows))

    def arrays(self) -> dict[str, torch.Tensor]:
        """What `from_arrays` reads: `vectors`, and those of `Codes.arrays` where there are codes."""
        return {"vectors": self.rows, **(self.codes.arrays() if self.codes else {})}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, torch.Tensor]) -> VectorTable:
        """The table that `arrays` wrote, or one of `vectors` alone.

        Raises:
            KeyError, ValueError: an array is missing, or they do not fit each other.
        """
        rows = arrays["vectors"]
        if rows.ndim != 2 or not rows.is_floating_point():
            raise ValueError("the vectors are no table of floating-point numbers")
        if len(rows) < CODED_FROM:
            return cls(rows.float())
        return cls(rows, Codes.from_arrays(arrays, rows))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def coded(self) -> bool:
        """Whether one query is answered in two steps."""
        return self.codes is not None and _codes_work(self.rows.shape[1])

    def products(self, queries: torch.Tensor) -> torch.Tensor:
        """(n, d) queries -> (n, N) float32, of the rows themselves."""
        asked = queries.detach().float().cpu()
        if self.rows.dtype == torch.float32:
            return asked @ self.rows.T
        found = torch.empty(len(asked), len(self.rows))
        for begin in range(0, len(self.rows), _ROWS_AT_A_TIME):
            end = begin + _ROWS_AT_A_TIME
            found[:, begin:end] = asked @ self.rows[begin:end].float().T
        return found

    def products_of(self, numbers: NDArray[np.int64], query: Array) -> Array:
        """(r,) float32 products of a query (d,) with the rows of these numbers, summed in float64."""
        asked = torch.from_numpy(query).double()
        chunks = torch.as_tensor(numbers).split(_ROWS_AT_A_TIME)
        return torch.cat([self.rows[chunk].double() @ asked for chunk in chunks]).float().numpy()

    def estimates(self, query: Array) -> Array:
        """(N,) products of a query (d,): `slack` tells by how much those of the rows differ."""
        if self.codes is not None and self.coded:
            return self.codes.products(torch.from_numpy(query))
        if self.rows.dtype == torch.float32:
            return np.asarray(self.rows.numpy() @ query)  # torch spreads small products over threads
        return np.asarray(self.products(torch.from_numpy(query)[None])[0].numpy())

    def slack(self, query: Array) -> float:
        """By how much the products of the rows differ from `estimates` at most; 0 where these are the rows' own."""
        return self.codes.slack(torch.from_numpy(query)) if self.codes is not None and self.coded else 0.0


def _asked(query: torch.Tensor) -> tuple[torch.Tensor, Array, float]:
    """A query (d,) as (d, 2) codes, coarse and fine, with their (2,) scales, and the norm of what they leave out."""
    rest, codes, scales = query.double(), [], []
    for _ in range(2):
        scale = max(float(rest.abs().max()) / _LARGEST_ASKED, 1e-30)
        code = (rest / scale).round()
        rest = rest - code * scale
        codes.append(code.to(torch.int8))
        scales.append(scale)
    return torch.stack(codes, 1), np.array(scales, np.float32), float(rest.norm())


@cache
def _codes_work(dimension: int) -> bool:
    """Whether torch multiplies the largest codes rightly on this processor; 8-bit kernels may saturate."""
    if not hasattr(torch, "_int_mm"):
        return False
    signs = torch.tensor([1, -1], dtype=torch.int8).repeat(64)[:, None]
    rows = (signs * _LARGEST).expand(-1, dimension).contiguous()
    asked = torch.full((dimension, 2), _LARGEST_ASKED, dtype=torch.int8)
    try:
        found = torch._int_mm(rows, asked)
    except RuntimeError:
        return False
    return bool((found == signs.int() * (_LARGEST * _LARGEST_ASKED * dimension)).all())


def save_tensors(tensors: Mapping[str, torch.Tensor], path: Path) -> None:
    """Write a safetensors file under a temporary name, then rename it: who has mapped the old one keeps reading it."""
    with atomic_file(path) as partial:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, partial)
