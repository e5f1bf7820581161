"""Arrays in safetensors files, memory-mapped and written atomically.

`safetensors.numpy` copies every array that it reads; here a large index costs memory only where it is used, and
processes that answer from the same file share it.
"""

from __future__ import annotations

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
# Types of the format; bfloat16, which NumPy lacks, is read as float32.
_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1", "BOOL": "?", "BF16": "<u2",
}  # fmt: skip


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
        yield name, (found.astype(np.uint32) << 16).view(np.float32) if kind == "BF16" else found


def save_arrays(arrays: Mapping[str, AnyArray], path: Path) -> None:
    """Write a safetensors file under a temporary name, then rename it: processes that map the old one keep it."""
    with atomic_file(path) as partial:
        save_file({name: np.asarray(array, order="C") for name, array in arrays.items()}, partial)
