"""What to say where the memory does not suffice."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from mrs_core.errors import InputError

# What libraries say in a RuntimeError: of the CPU, of MPS and XPU, of cuBLAS, of a file that is mapped.
SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory", "alloc_failed")
AMOUNT = re.compile(r"tried to allocate ([\d.]+ ?[a-z]+)", re.IGNORECASE)


@contextmanager
def out_of_memory_told(advice: Callable[[], str]) -> Iterator[None]:
    """Turn the libraries' errors for want of memory into one sentence; others pass.

    Args:
        advice: what was being done and what helps, such as "in training; lower --mini_batch_size"; asked for then.

    Raises:
        InputError: the memory did not suffice.
    """
    try:
        yield
    except (RuntimeError, MemoryError, OSError) as error:
        if not _is_out_of_memory(error):
            raise
        amount = AMOUNT.search(str(error))
        tried = f" (tried to allocate {amount[1]})" if amount else ""
        raise InputError(f"out of memory{tried} {advice()}.") from None


def _is_out_of_memory(error: BaseException) -> bool:
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return any(sign in str(error).lower() for sign in SIGNS)
