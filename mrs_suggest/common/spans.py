"""Names for the steps of an answer, so that a server can trace them; without a tracer, they cost nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Start = Callable[[str], AbstractContextManager[Any]]
_NOTHING = nullcontext()
_start: Start | None = None


def span(name: str) -> AbstractContextManager[Any]:
    """A block of code as a step of the answer that this thread is computing."""
    return _NOTHING if _start is None else _start(name)


def trace_with(start: Start | None) -> None:
    """From now on, begin each step of this process with `start`; None: with nothing."""
    global _start
    _start = start
