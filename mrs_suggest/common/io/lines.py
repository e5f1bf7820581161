"""Lines of a text file, plain or compressed, with the file and line in every error."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.streams import HashedReader, PieceReader

if TYPE_CHECKING:
    from mrs_suggest.common.io.storage import Location

BLOCK = 1 << 22
MAX_LINE = 64 << 20  # chosen: a message has some KiB; without a limit, zero bytes packed 1000:1 would fill the memory
EDITED = "the file was edited, so fetch it again."
NUL = "a NUL character (U+0000)"


def _open_packed(path: Location) -> BinaryIO:
    return path.open("rb") if isinstance(path, Path) else path.open()


def open_binary(path: Location, packed: BinaryIO | None = None) -> BinaryIO:
    """Open a plain, `.gz`, `.xz` or `.zst` file for reading bytes.

    Args:
        packed: the same file, opened already; its owner knows how far it was read, and closes it.
    """
    if packed is None and not isinstance(path, Path):
        packed = path.open()
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(cast(Any, packed or path), "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(cast(Any, packed or path), "rb"))
    if path.suffix == ".zst":
        return cast(BinaryIO, io.BufferedReader(PieceReader(packed or _open_packed(path), "zstd")))
    return packed or _open_packed(path)


def read_lines(
    path: Location,
    *,
    as_published: bool = False,
    keep_bom: bool = False,
    any_line_end: bool = False,
    tolerant: bool = False,
    data: bytes | None = None,
    advance: Callable[[int], object] | None = None,
    digest: Any = None,
) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); the last line may lack its line end.

    Only `\\n` ends a line, since a text may contain any other line end; one `\\r` before it and a byte-order mark
    at the start are removed.

    Args:
        path: of a plain, `.gz`, `.xz` or `.zst` file in UTF-8.
        as_published: refuse a file with a byte-order mark or mixed line ends: a published file that has them was
            edited, and more may have changed.
        keep_bom: a byte-order mark is part of the first line.
        any_line_end: `\\r` and `\\r\\n` end a line as well, as in Python's text mode.
        tolerant: bytes that are not UTF-8 come as lone surrogates (`surrogateescape`), for the caller to find.
        data: the file's bytes, if they were read already; `path` is then only used in errors.
        advance: called with the number of bytes of the file, as it lies on the disk, read since the last call.
        digest: of `hashlib`, updated with the bytes of the file on the disk, all of them if all lines are taken.

    Raises:
        InputError: the file is missing or damaged, a line is not UTF-8 or longer than `MAX_LINE` bytes, or
            (`as_published`) the file was edited.
    """

    def hashed(file: BinaryIO) -> BinaryIO:
        return file if digest is None else cast(BinaryIO, io.BufferedReader(HashedReader(file, digest), BLOCK))

    number, rest, told = 0, b"", 0
    returns = None  # whether lines end with a carriage return
    try:
        with (
            _open_packed(path) if data is None else io.BytesIO(data) as packed,
            open_binary(path, hashed(packed)) if data is None else packed as file,
        ):
            for block in _blocks(path, file, as_published, keep_bom, any_line_end):
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    if as_published and line.endswith(b"\r") is not returns:
                        if returns is not None:
                            raise InputError(
                                f"{path}, line {number}: a different line end than in the lines before; {EDITED}"
                            )
                        returns = line.endswith(b"\r")
                    yield number, _decode(path, number, line, tolerant)
                if advance is not None:
                    advance(packed.tell() - told)
                    told = packed.tell()
                if len(rest) > MAX_LINE:
                    raise InputError(
                        f"{path}, line {number + 1}: no line end within {MAX_LINE >> 20} MiB; expected a text file "
                        "with one row per line."
                    )
            while digest is not None and (block := packed.read(BLOCK)):  # after the end of what is packed
                digest.update(block)
            if rest:
                yield number + 1, _decode(path, number + 1, rest, tolerant)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the compressed file is damaged or cut off ({error}); fetch it again.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None


def ends_inside_a_line(path: Path, data: bytes | None = None) -> bool:
    """Whether a file, or its bytes, ends without a line end, as a truncated one does."""
    last = data or b"\n"
    if data is None:
        with open_binary(path) as file:
            while block := file.read(BLOCK):
                last = block
    return not last.endswith(b"\n")


def _blocks(path: Location, file: BinaryIO, as_published: bool, keep_bom: bool, any_line_end: bool) -> Iterator[bytes]:
    """The bytes of a file in blocks; a byte-order mark is removed or refused, line ends become `\\n` if any counts."""
    start, held = True, b""
    while block := file.read(BLOCK):
        if start and not keep_bom and block.startswith(codecs.BOM_UTF8):
            if as_published:
                raise InputError(f"{path}, line 1: a byte-order mark, which the published file does not have; {EDITED}")
            block = block.removeprefix(codecs.BOM_UTF8)
        start = False
        if any_line_end:
            block = held + block
            held = b"\r" if block.endswith(b"\r") else b""  # the two bytes of \r\n belong together
            block = block.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        yield block
    if held:
        yield b"\n"


def _decode(path: Location, number: int, line: bytes, tolerant: bool) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8", "surrogateescape" if tolerant else "strict")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); "
            "convert the file to UTF-8."
        ) from None
