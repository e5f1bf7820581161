"""Lines of a text file, plain or compressed, with the file and line in every error."""

from __future__ import annotations

import codecs
import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from mrs_core.errors import InputError

BLOCK = 1 << 22
MAX_LINE = 64 << 20  # chosen: a message has some KiB; without a limit, zero bytes packed 1000:1 would fill the memory
EDITED = "somebody edited the file, so fetch it again."


def open_binary(path: Path) -> BinaryIO:
    """Open a plain, `.gz` or `.xz` file for reading bytes."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def read_lines(path: Path, as_published: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); only `\\n` ends a line, a final one is optional.

    Args:
        as_published: the file comes from a publisher, in UTF-8 without a byte-order mark and with line ends of one
            kind: otherwise somebody edited it, and who knows what else changed. Files of one's own may be as they like.

    Raises:
        InputError: the file is missing, damaged, a line is not UTF-8, one goes on for more than `MAX_LINE` bytes, or
            (`as_published`) the file was edited.
    """
    try:
        with open_binary(path) as file:
            number = 0
            rest = b""
            returns = None  # whether lines end with a carriage return
            while block := file.read(BLOCK):
                if as_published and number == 0 and not rest and block.startswith(codecs.BOM_UTF8):
                    raise InputError(
                        f"{path}, line 1: a byte-order mark, which the published file does not have; {EDITED}"
                    )
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    if as_published and line.endswith(b"\r") is not returns:
                        if returns is not None:
                            raise InputError(
                                f"{path}, line {number}: another line end than in the lines before; {EDITED}"
                            )
                        returns = line.endswith(b"\r")
                    yield number, _decode(path, number, line)
                if len(rest) > MAX_LINE:
                    raise InputError(
                        f"{path}, line {number + 1}: no line end within {MAX_LINE >> 20} MiB; expected a text file "
                        "with one row a line."
                    )
            if rest:
                yield number + 1, _decode(path, number + 1, rest)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the compressed file is damaged or cut off ({error}); fetch it again.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None


def _decode(path: Path, number: int, line: bytes) -> str:
    try:
        # Windows editors put a byte-order mark first
        return line.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); "
            "convert the file to UTF-8."
        ) from None
