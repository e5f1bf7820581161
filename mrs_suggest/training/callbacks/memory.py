"""The error when the memory runs out."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from mrs_suggest.common.errors import InputError

# Parts of the libraries' RuntimeErrors: CPU, MPS and XPU, cuBLAS, a mapped file.
SIGNS = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory", "alloc_failed")
AMOUNT = re.compile(r"tried to allocate ([\d.]+ ?[a-z]+)", re.IGNORECASE)


@contextmanager
def explain_out_of_memory(advice: Callable[[], str]) -> Iterator[None]:
    """Turn the libraries' out-of-memory errors into one sentence; others pass.

    Args:
        advice: gives what was being done and what helps, such as "in training; lower --mini_batch_size".

    Raises:
        InputError: the memory ran out.
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
