"""A dump as pieces of decompressed bytes, whatever it is packed with, in bounded memory.

The packing is told by the first bytes, never by the name. zstd frames are walked block by block (RFC 8878, section
3.1.1): a block holds at most 128 KiB, so that no input can blow one call up; a file that ends in the middle of a frame
is told from one that ends whole (the library's own stream readers take both for the end); and everything before a
damaged block comes out. Only the checksum at the end of a frame tells of bytes that were altered and can still be
decoded; all of it came out by then, so whoever reads begins again, without it.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from typing import BinaryIO, Protocol

from mrs_core.errors import MissingExtraError

try:
    import zstandard
except ImportError:
    raise MissingExtraError("zstandard", "reddit", "reading dumps") from None

PIECE = 1 << 17  # most bytes a piece holds: a zstd block
AHEAD = 16  # pieces of zstd made at a time
FEED = 1 << 10  # bytes that a bz2, gzip or xz decoder gets at a time: about what is lost before a damaged place
MAX_WINDOW = 1 << 31  # the window of the published dumps, and the decoder's memory
HEAD = 1 << 16  # bytes of a plain file that are looked at
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE, _RESERVED = 1, 3
MAGICS = {ZSTD_MAGIC: "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bz2", b"\x1f\x8b": "gzip"}
ENDS_EARLY = "the file ends early"


class DamagedError(Exception):
    """The stream cannot be read any further; everything whole before came out. The text says why."""


class AlteredError(Exception):
    """A frame came out whole, and its checksum says that it is not what was packed: none of its lines can be trusted.

    Attributes:
        frame: its number in the file, from 0.
    """

    def __init__(self, frame: int) -> None:
        super().__init__(f"frame {frame + 1} has another checksum than when it was packed")
        self.frame = frame


class _Decoder(Protocol):
    """What `lzma.LZMADecompressor` and `bz2.BZ2Decompressor` have in common."""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class _Gzip:
    """`zlib` with the manners of the other two."""

    def __init__(self) -> None:
        self._decoder = zlib.decompressobj(wbits=31)
        self.needs_input = True

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        piece = self._decoder.decompress(self._decoder.unconsumed_tail + data, max_length)
        self.needs_input = not self._decoder.unconsumed_tail and len(piece) < max_length
        return piece

    @property
    def eof(self) -> bool:
        return self._decoder.eof

    @property
    def unused_data(self) -> bytes:
        return self._decoder.unused_data


_DECODERS: dict[str, Callable[[], _Decoder]] = {
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_WINDOW),
    "bz2": bz2.BZ2Decompressor,
    "gzip": _Gzip,
}


def packing_of(head: bytes) -> str | None:
    """The packing, by a file's first bytes (up to `HEAD`): zstd, xz, bz2, gzip, plain (JSON lines), or None.

    >>> packing_of(b"BZh91AY&SY"), packing_of(b'{"id": "a"}'), packing_of(b"PK\\x03\\x04")
    ('bz2', 'plain', None)
    """
    for magic, name in MAGICS.items():
        if head.startswith(magic):
            return name
    if head[:4] and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return "zstd"
    if head.lstrip().startswith(b"{"):
        return "plain"
    text = b"\0" not in head and b"\n{" in head  # a dump whose first line is broken
    return "plain" if text else None


def read_pieces(file: BinaryIO, packing: str, skipped: Container[int] = ()) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces of about `PIECE` bytes, never twice as many.

    Several streams (frames) on end are read as one.

    Args:
        file: at its start.
        packing: what `packing_of` says.
        skipped: frames of zstd to leave out, by number; an empty piece stands in their place.

    Raises:
        AlteredError: the checksum of a zstd frame does not fit what came out of it; leave it out, and begin again.
        DamagedError: the stream ends early or is damaged, after everything before that was yielded.
        MemoryError: the window of a zstd frame cannot be had.
    """
    if packing == "plain":
        while piece := file.read(PIECE):
            yield piece
    elif packing == "zstd":
        yield from _ahead(_zstd_pieces(file, skipped))
    else:
        yield from _gathered(_stream_pieces(file, _DECODERS[packing]))


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, made `AHEAD` at a time; what was there before damage comes before the error.

    A decoder that is called between other work finds the processor's caches full of that work: reading and decoding
    JSON together take about a tenth less time so.
    """
    while True:
        held: list[bytes] = []
        try:
            for piece in islice(pieces, AHEAD):
                held.append(piece)
        except DamagedError:
            yield from held
            raise
        if not held:
            return
        yield from held


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces put together; what was there before damage comes before the error."""
    held: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            held.append(piece)
            size += len(piece)
            if size >= PIECE:
                yield b"".join(held)
                held, size = [], 0
    except DamagedError:
        yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


def _exactly(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise DamagedError(ENDS_EARLY)
    return data


def _zstd_pieces(file: BinaryIO, skipped: Container[int]) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
    number = 0
    try:
        while magic := file.read(4):
            if len(magic) < 4:
                raise DamagedError(ENDS_EARLY)
            if int.from_bytes(magic, "little") in _SKIPPABLE:
                left = int.from_bytes(_exactly(file, 4), "little")
                while left:
                    left -= len(_exactly(file, min(left, PIECE)))
            elif magic == ZSTD_MAGIC:
                if number in skipped:
                    _skip_frame(file)
                    yield b""
                else:
                    yield from _zstd_frame(file, decoder, number)
                number += 1
            else:
                raise DamagedError("bytes that are no zstd frame")
    except zstandard.ZstdError as error:
        if "not enough memory" in str(error):
            raise MemoryError from None
        raise DamagedError(f"damaged zstd data: {error}") from None


def _zstd_frame(file: BinaryIO, decoder: zstandard.ZstdDecompressor, number: int) -> Iterator[bytes]:
    """The blocks of one frame, whose magic number was read already."""
    header, checksum = _frame_header(file)
    frame = decoder.decompressobj()
    frame.decompress(ZSTD_MAGIC + header)
    for block in _blocks(file):
        if piece := frame.decompress(block):
            yield piece
    if checksum:
        try:
            frame.decompress(_exactly(file, 4))
        except zstandard.ZstdError:
            raise AlteredError(number) from None


def _skip_frame(file: BinaryIO) -> None:
    """Go behind a frame, whose magic number was read already."""
    _, checksum = _frame_header(file)
    for _ in _blocks(file):
        pass
    if checksum:
        _exactly(file, 4)


def _frame_header(file: BinaryIO) -> tuple[bytes, bool]:
    """The header of a frame behind its magic number, and whether a checksum ends it."""
    descriptor = _exactly(file, 1)
    flags = descriptor[0]
    single = bool(flags & 0x20)  # no window byte, and the content's size in at least one
    size = (not single) + _DICTIONARY_BYTES[flags & 3] + (int(single), 2, 4, 8)[flags >> 6]
    return descriptor + _exactly(file, size), bool(flags & 4)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The blocks of a frame as they lie in the file."""
    last = 0
    while not last:
        head = _exactly(file, 3)
        word = int.from_bytes(head, "little")
        last, kind, size = word & 1, word >> 1 & 3, word >> 3
        if kind == _RESERVED or size > PIECE:
            raise DamagedError("damaged zstd data: no such block")
        yield head + _exactly(file, 1 if kind == _RLE else size)


def _stream_pieces(file: BinaryIO, make: Callable[[], _Decoder]) -> Iterator[bytes]:
    """The pieces of bz2, gzip or xz streams on end; zero bytes between and after them are padding."""
    try:
        data = file.read(FEED)
        while data:
            decoder = make()
            while not decoder.eof:
                if not data and decoder.needs_input:
                    data = file.read(FEED)
                    if not data:
                        raise DamagedError(ENDS_EARLY)
                piece = decoder.decompress(data, PIECE)
                data = b""
                if piece:
                    yield piece
            data = decoder.unused_data.lstrip(b"\0")
            while not data and (more := file.read(FEED)):
                data = more.lstrip(b"\0")
    except (lzma.LZMAError, zlib.error, OSError, EOFError, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's trouble, not the data's
        raise DamagedError(f"damaged data: {error}") from None
