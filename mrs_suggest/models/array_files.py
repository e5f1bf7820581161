"""Arrays in safetensors files, memory-mapped and written atomically.

`safetensors.numpy` copies every array that it reads; here a large index costs memory only where it is used, and
processes that answer from the same file share it.
"""

import json
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file

from mrs_suggest.common.io.files import atomic_file

AnyArray = NDArray[Any]
# Types of the format; bfloat16 and 8-bit floats, which NumPy lacks, are read as float32.
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?", "BF16": "<u2", "F8_E4M3": "<u1",
}  # fmt: skip


def _eight_bit_floats() -> NDArray[np.float32]:
    """(256,) the values of the codes: a sign, four bits of exponent and three of mantissa; the largest is not a number.

    Micikevicius et al. 2022, "FP8 Formats for Deep Learning", table 1.

    >>> [float(_eight_bit_floats()[code]) for code in (0x01, 0x38, 0xB9, 0x7E)]
    [0.001953125, 1.0, -1.125, 448.0]
    """
    codes = np.arange(256)
    exponents, mantissas = (codes >> 3) & 15, codes & 7
    sizes = np.where(exponents > 0, np.ldexp(8.0 + mantissas, exponents - 10), np.ldexp(mantissas * 1.0, -9))
    sizes[(codes & 127) == 127] = np.nan
    return np.asarray(np.where(codes < 128, sizes, -sizes), np.float32)


def load_arrays(path: Path) -> dict[str, AnyArray]:
    """The arrays of a safetensors file by name, memory-mapped; changes to them stay in this process.

    Raises:
        SafetensorError: the file is damaged.
        OSError: it cannot be read.
        ValueError: a type of number is not known.
    """
    return dict(iter_arrays(path))


def iter_arrays(path: Path) -> Iterator[tuple[str, AnyArray]]:
    """As `load_arrays`, one array after the other."""
    with safe_open(path, framework="numpy"):  # checks the header, and that the file is as long as it says
        pass
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header: dict[str, Any] = json.loads(file.read(size))
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    header.pop("__metadata__", None)
    for name, facts in header.items():
        kind, shape = facts["dtype"], facts["shape"]
        if kind not in _TYPES:
            raise ValueError(f"the array {name!r} is of the type {kind}, which is not read here")
        count = int(np.prod(shape, dtype=np.int64))
        found = np.frombuffer(content, _TYPES[kind], count, 8 + size + facts["data_offsets"][0]).reshape(shape)
        if kind == "BF16":
            yield name, (found.astype(np.uint32) << 16).view(np.float32)
        else:
            yield name, _eight_bit_floats()[found] if kind == "F8_E4M3" else found


def save_arrays(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write a safetensors file under a temporary name, then rename it: processes that map the old one keep it."""
    with atomic_file(path) as partial:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, partial)
