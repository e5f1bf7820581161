"""Standard input in place of a prediction file (`mrs score -`)."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mrs_suggest.common.errors import InputError

STANDARD_INPUT = Path("-")
NAME = "standard input"


@contextmanager
def standard_input(files: Sequence[Path], folder: bool = False) -> Iterator[list[Path]]:
    """Yield the files with a temporary copy of standard input in the place of `-`; errors name standard input.

    Args:
        files: as they were given.
        folder: whether the metric reads folders, which standard input cannot be.

    Raises:
        InputError: `-` is named twice, or the metric reads folders.
    """
    if STANDARD_INPUT not in files:
        yield list(files)
        return
    if folder:
        raise InputError("-: this metric reads a folder of predictions, which cannot come from standard input.")
    if list(files).count(STANDARD_INPUT) > 1:
        raise InputError("-: standard input can be read only once; name it for one system.")
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, NAME)
        copy.write_bytes(sys.stdin.buffer.read())
        try:
            yield [copy if path == STANDARD_INPUT else path for path in files]
        except InputError as error:
            raise InputError(str(error).replace(str(copy), NAME)) from error
