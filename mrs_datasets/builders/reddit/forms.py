"""Checks the beginning of a file before a build: anything other than a dump is refused by name."""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.remote import BUFFER_BYTES
from mrs_suggest.common.io.storage import Location, open_stream
from mrs_suggest.common.io.streams import STRAY, AlteredError, DamagedError, packing_of, read_pieces, window_of

_BLOCKS = "zst_blocks"  # of the archives of Arctic Shift until 2024: a size before each zstd frame
_OBJECT_PER_LINE = "a dump has one comment per line, as `jq -c` writes"
_OTHER = {
    rb"version https://git-lfs": "is a pointer of Git LFS in place of the file; run `git lfs pull`",
    rb"\[\s*[{\]]": f"is one JSON array; {_OBJECT_PER_LINE} with '.[]'",
    rb'\{\s*"(kind"\s*:\s*"(Listing|t\d)"|data"\s*:\s*[\[{])': (
        f"is an answer of an API, with comments inside of other objects; {_OBJECT_PER_LINE} with '.data[]'"
    ),
    rb'(?!.*"body":)[^\n]*"title":': "has submissions, not comments; pass the dumps of comments (RC_*)",
}


def check_form(path: Location) -> int:
    """Bytes of the zstd window of a dump, 0 for other compressions.

    A file that is empty, damaged or not known here passes: reading it says what is wrong.

    Raises:
        InputError: the file cannot be opened, or has one of the other forms in which comments are distributed.
    """
    with opened(path) as file:
        start = head = file.read(BUFFER_BYTES)
    packing = packing_of(head)
    if packing not in (None, "plain"):
        with suppress(DamagedError, AlteredError, MemoryError):
            start = next(read_pieces(io.BytesIO(head), packing), b"")
    if packing is None and (packing_of(head[4:8]) == "zstd" or path.name.endswith(f".{_BLOCKS}")):
        raise InputError(f"{path}: has the format {_BLOCKS}, which is not read; pass the month as .zst or lines.")
    for beginning, problem in _OTHER.items():
        if re.match(beginning, start.lstrip(STRAY), re.DOTALL):
            raise InputError(f"{path}: {problem}.")
    return window_of(head)


@contextmanager
def opened(path: Location) -> Iterator[BinaryIO]:
    """Open a file for reading bytes; disk errors, also later ones, become one sentence."""
    try:
        with open_stream(path) as file:
            yield file
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check the path and its rights."
        ) from None
