"""Lines of a text file, plain or compressed, with the file and line in every error."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from mrs_core.errors import InputError

BLOCK = 1 << 22


def open_binary(path: Path) -> BinaryIO:
    """Open a plain, `.gz` or `.xz` file for reading bytes."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); only `\\n` ends a line, a final one is optional.

    Raises:
        InputError: the file is missing, damaged, or a line is not UTF-8.
    """
    try:
        with open_binary(path) as file:
            number = 0
            rest = b""
            while block := file.read(BLOCK):
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    yield number, _decode(path, number, line)
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
