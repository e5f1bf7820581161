"""A compressed file as pieces of decompressed bytes, for several compression formats, in bounded memory.

The compression is found by the first bytes, never by the name. zstd frames are walked block by block (RFC 8878, section
3.1.1): a block holds at most 128 KiB, so that the output of one call is bounded; a file that ends inside a frame is
distinguished from a complete one (the library's own stream readers accept both); and everything before a damaged block
is read. Only the checksum at the end of a frame reveals altered bytes that can still be decoded; its contents have been
yielded by then, so the caller begins again without the frame.
"""

from __future__ import annotations

import bz2
import hashlib
import io
import lzma
import zlib
from collections.abc import Callable, Container, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from mrs_suggest.common.errors import extra_needed

if TYPE_CHECKING:
    import zstandard

PIECE = 1 << 17  # most bytes a piece holds: a zstd block
AHEAD = 16  # pieces of zstd made at a time
FEED = 1 << 10  # bytes passed to a bz2, gzip or xz decoder at a time: about what is lost before a damaged place
MAX_WINDOW = 1 << 31  # the window of the published dumps, and the decoder's memory
HEAD = 1 << 16  # bytes of a plain file that are checked
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_DICTIONARY_BYTES = (0, 1, 2, 4)
_RLE, _RESERVED = 1, 3
MAGICS = {ZSTD_MAGIC: "zstd", b"\xfd7zXZ\0": "xz", b"BZh": "bz2", b"\x1f\x8b": "gzip"}
ENDS_EARLY = "the file ends early"
STRAY = b" \t\r\n\xef\xbb\xbf\0"  # bytes before the first line that do no harm: white space, U+FEFF and NUL


class DamagedError(Exception):
    """The stream cannot be read any further; everything before was yielded. The text says why."""


class AlteredError(Exception):
    """A frame was decoded, but does not match its checksum: none of its lines can be trusted.

    Attributes:
        frame: its number in the file, from 0.
    """

    def __init__(self, frame: int) -> None:
        super().__init__(f"frame {frame + 1} does not match its checksum")
        self.frame = frame


class PieceReader(io.RawIOBase):
    """The decompressed bytes as a file, which raises `EOFError` if the stream is damaged or ends early."""

    def __init__(self, file: BinaryIO, packing: str) -> None:
        self._file, self._pieces, self._held = file, read_pieces(file, packing), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        """Fill the start of `target`; 0 at the end of the stream."""
        try:
            while not self._held:
                self._held = memoryview(next(self._pieces))
        except StopIteration:
            return 0
        except (DamagedError, AlteredError) as error:
            raise EOFError(str(error)) from None
        size = min(len(target), len(self._held))
        target[:size], self._held = self._held[:size], self._held[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


class HashedReader(io.RawIOBase):
    """A file whose bytes are hashed as they are read; bytes that are read twice are hashed once.

    Args:
        file: at its start; its owner closes it.
        digest: of `hashlib`; default: SHA-256.
    """

    def __init__(self, file: BinaryIO, digest: Any = None) -> None:
        self._file, self._digest, self._hashed = file, digest or hashlib.sha256(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: Any, /) -> int:
        """Fill the start of `target`; 0 at the end of the file."""
        start = self._hashed - self._file.tell()  # where the new bytes begin
        data = self._file.read(len(target))
        target[: len(data)] = data
        self._digest.update(memoryview(data)[start:])
        self._hashed += max(0, len(data) - start)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Move to a place that was read already."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def sha256(self) -> str:
        """SHA-256 of the whole file, 64 hex digits; the rest of the file is read."""
        self._file.seek(self._hashed)
        while block := self._file.read(1 << 20):
            self._digest.update(block)
            self._hashed += len(block)
        return self._digest.hexdigest()


class _Gzip:
    """`zlib` with the interface of `lzma.LZMADecompressor` and `bz2.BZ2Decompressor`."""

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


_DECODERS: dict[str, Callable[[], Any]] = {
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_WINDOW),
    "bz2": bz2.BZ2Decompressor,
    "gzip": _Gzip,
}


def packing_of(head: bytes) -> str | None:
    """The compression, by a file's first bytes (up to `HEAD`): zstd, xz, bz2, gzip, plain (JSON lines), or None.

    >>> packing_of(b"BZh91AY&SY"), packing_of(b'{"id": "a"}'), packing_of(b"PK\\x03\\x04")
    ('bz2', 'plain', None)
    """
    for magic, name in MAGICS.items():
        if head.startswith(magic):
            return name
    if head[:4] and int.from_bytes(head[:4], "little") in _SKIPPABLE:
        return "zstd"
    if head.lstrip(STRAY).startswith(b"{"):
        return "plain"
    text = b"\0" not in head and b"\n{" in head  # also a dump whose first line is broken
    return "plain" if text else None


def window_of(head: bytes) -> int:
    """Bytes of the window of a file's first zstd frame, by its first bytes; 0 for other compressions."""
    if packing_of(head[:HEAD]) != "zstd":
        return 0
    with extra_needed("zstandard", "reddit", "reading zstd files"):
        import zstandard
    try:
        frame = zstandard.get_frame_parameters(head[max(head.find(ZSTD_MAGIC), 0) :])
    except zstandard.ZstdError:
        return MAX_WINDOW  # unknown
    return min(frame.window_size, frame.content_size, MAX_WINDOW)


def read_pieces(file: BinaryIO, packing: str, skipped: Container[int] = ()) -> Iterator[bytes]:
    """Yield the decompressed bytes in pieces of about `PIECE` bytes, never twice as many.

    Several consecutive streams (frames) are read as one.

    Args:
        file: at its start.
        skipped: frames of zstd to leave out, by number; an empty piece takes their place.

    Raises:
        AlteredError: a zstd frame does not match its checksum; leave it out, and begin again.
        DamagedError: the stream ends early or is damaged, after everything before that was yielded.
        MemoryError: the window of a zstd frame cannot be allocated.
    """
    if packing == "plain":
        while piece := file.read(PIECE):
            yield piece
    elif packing == "zstd":
        yield from _ahead(_zstd_pieces(file, skipped))
    else:
        yield from _gathered(_stream_pieces(file, _DECODERS[packing]))


def _ahead(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, `AHEAD` at a time; pieces before damage come before the error.

    Batches use the processor's caches better: reading and decoding JSON together take about a tenth less time.
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
    """Small pieces joined; pieces before damage come before the error."""
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
    with extra_needed("zstandard", "reddit", "reading zstd files"):
        import zstandard
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
                raise DamagedError("bytes that are not a zstd frame")
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
        import zstandard

        try:
            frame.decompress(_exactly(file, 4))
        except zstandard.ZstdError:
            raise AlteredError(number) from None


def _skip_frame(file: BinaryIO) -> None:
    """Skip a frame, whose magic number was read already."""
    _, checksum = _frame_header(file)
    for _ in _blocks(file):
        pass
    if checksum:
        _exactly(file, 4)


def _frame_header(file: BinaryIO) -> tuple[bytes, bool]:
    """The header of a frame after its magic number, and whether the frame ends with a checksum."""
    descriptor = _exactly(file, 1)
    flags = descriptor[0]
    single = bool(flags & 0x20)  # no window byte, and the content's size in at least one
    size = (not single) + _DICTIONARY_BYTES[flags & 3] + (int(single), 2, 4, 8)[flags >> 6]
    return descriptor + _exactly(file, size), bool(flags & 4)


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    last = 0
    while not last:
        head = _exactly(file, 3)
        word = int.from_bytes(head, "little")
        last, kind, size = word & 1, word >> 1 & 3, word >> 3
        if kind == _RESERVED or size > PIECE:
            raise DamagedError("damaged zstd data: no such block")
        yield head + _exactly(file, 1 if kind == _RLE else size)


def _stream_pieces(file: BinaryIO, make: Callable[[], Any]) -> Iterator[bytes]:
    """The pieces of consecutive bz2, gzip or xz streams; zero bytes between and after them are padding."""
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
            raise  # a disk error, not damaged data
        raise DamagedError(f"damaged data: {error}") from None
