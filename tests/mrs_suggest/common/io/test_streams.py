"""Pieces of decompressed bytes: packings, several streams, ends in the middle, damage, memory."""

import bz2
import gzip
import io
import lzma
import random
import tracemalloc
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.io.streams import FEED, PIECE, ZSTD_MAGIC, AlteredError, DamagedError, packing_of, read_pieces

PACK: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "zstd": zstandard.ZstdCompressor(write_checksum=True).compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "gzip": gzip.compress,
}
TEXT = b"".join(b'{"line": %d, "random": "%x"}\n' % (i, random.Random(i).getrandbits(300)) for i in range(9000))


def unpack(data: bytes, packing: str) -> tuple[bytes, str]:
    """What comes out, and the damage."""
    pieces = []
    try:
        for piece in read_pieces(io.BytesIO(data), packing):
            assert 0 <= len(piece) < 2 * PIECE
            pieces.append(piece)
    except DamagedError as error:
        return b"".join(pieces), str(error)
    return b"".join(pieces), ""


@pytest.mark.parametrize("packing", PACK)
def test_what_was_packed_comes_out_and_the_first_bytes_tell_the_packing(packing: str) -> None:
    data = PACK[packing](TEXT)
    assert packing_of(data[:100]) == packing
    assert unpack(data, packing) == (TEXT, "")
    # Several streams on end are one.
    parts = [TEXT[:1000], b"", TEXT[1000:400_000], TEXT[400_000:]]
    assert unpack(b"".join(map(PACK[packing], parts)), packing) == (TEXT, "")


@pytest.mark.parametrize("packing", ["xz", "gzip"])
def test_zero_bytes_between_streams_and_after_them_are_padding(packing: str) -> None:
    data = PACK[packing](TEXT[:500]) + bytes(2 * FEED) + PACK[packing](TEXT[500:]) + bytes(12)
    assert unpack(data, packing) == (TEXT, "")


def test_zstd_frames_of_every_make() -> None:
    def frame(data: bytes, **options: object) -> bytes:
        parameters = zstandard.ZstdCompressionParameters.from_level(1, **options)
        return zstandard.ZstdCompressor(compression_params=parameters).compress(data)

    def streamed(data: bytes, window_log: int) -> bytes:
        parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log, write_checksum=True)
        packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
        return packer.compress(data[:700]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + packer.flush()

    skippable = b"\x5f\x2a\x4d\x18" + (300_000).to_bytes(4, "little") + bytes(300_000)
    noise = random.Random(1).randbytes(300_000)
    contents = [
        (skippable, b""),
        (frame(b"a" * 1_000_000), b"a" * 1_000_000),  # blocks of one repeated byte
        (frame(noise), noise),  # blocks as they are
        (frame(TEXT, write_content_size=False), TEXT),
        (frame(b"x" * 200, write_content_size=True), b"x" * 200),
        (frame(b"y" * 400, write_checksum=True, window_log=10), b"y" * 400),
        (streamed(TEXT, 31), TEXT[:700]),
        (skippable, b""),
    ]
    data = b"".join(packed for packed, _ in contents)
    assert packing_of(data[:10]) == "zstd"
    assert zstandard.get_frame_parameters(streamed(TEXT, 31)).window_size == 1 << 31
    assert unpack(data, "zstd") == (b"".join(content for _, content in contents), "")


@pytest.mark.parametrize("packing", ["zstd", "xz", "bz2", "gzip"])
@given(data=st.data())
def test_a_stream_that_ends_anywhere_gives_a_beginning_and_says_so(packing: str, data: st.DataObject) -> None:
    packed = PACK[packing](TEXT[:200]) + PACK[packing](TEXT[200:5000])
    seam = len(PACK[packing](TEXT[:200]))
    cut = data.draw(st.integers(1, len(packed) - 1))
    found, damage = unpack(packed[:cut], packing)
    assert TEXT[:5000].startswith(found)
    assert damage == ("" if cut == seam else "the file ends early")
    if cut >= seam:
        assert found.startswith(TEXT[:200])


@pytest.mark.parametrize("packing", ["zstd", "xz", "bz2", "gzip"])
def test_damage_keeps_what_comes_before(packing: str) -> None:
    first, second = PACK[packing](TEXT[:50_000]), bytearray(PACK[packing](TEXT[50_000:]))
    middle = len(second) // 2
    second[middle : middle + 140_000] = b"\xff" * 140_000  # more than a block of zstd, with its header
    found, damage = unpack(first + bytes(second), packing)
    assert damage.startswith("damaged")
    assert len(found) >= 50_000 - 2 * FEED * 10
    assert found[:40_000] == TEXT[:40_000]
    if packing == "zstd":
        assert found[:50_000] == TEXT[:50_000], "a frame that is whole comes out whole"
    # Bytes after the end are damage, too.
    found, damage = unpack(PACK[packing](TEXT) + b"And now for something else", packing)
    assert damage
    assert found == TEXT


def altered(text: bytes) -> bytes:
    """A frame that can be decoded, to something else than what its checksum says."""
    plain = zstandard.ZstdCompressor(write_checksum=True).compress(text)
    other = zstandard.ZstdCompressor(write_checksum=True).compress(text.replace(b"random", b"modnar"))
    return plain[:-4] + other[-4:]


def test_an_altered_frame_is_named_and_can_be_left_out() -> None:
    frames = [TEXT[:50_000], TEXT[50_000:400_000], TEXT[400_000:450_000], TEXT[450_000:]]
    data = b"".join(altered(part) if number in (1, 2) else PACK["zstd"](part) for number, part in enumerate(frames))
    for skipped, first in (((), 1), ((1,), 2), ((2,), 1)):
        with pytest.raises(AlteredError, match=f"frame {first + 1} does not match its checksum") as caught:
            list(read_pieces(io.BytesIO(data), "zstd", skipped))
        assert caught.value.frame == first
    pieces = list(read_pieces(io.BytesIO(data), "zstd", (1, 2)))
    assert b"".join(pieces) == frames[0] + frames[3]
    assert pieces.count(b"") == 2, "a line that was begun before does not go on behind"


def test_a_window_beyond_two_gib_is_refused() -> None:
    four_gib = ZSTD_MAGIC + bytes([0, 22 << 3]) + b"\x01\x00\x00"
    found, damage = unpack(four_gib, "zstd")
    assert found == b""
    assert "memory" in damage


@pytest.mark.parametrize("packing", ["zstd", "xz", "bz2", "gzip"])
def test_a_bomb_comes_out_in_small_pieces(packing: str) -> None:
    bomb = PACK[packing](b"0" * (64 << 20))
    assert len(bomb) < 100_000
    tracemalloc.start()
    try:
        size = sum(len(piece) for piece in read_pieces(io.BytesIO(bomb), packing))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size == 64 << 20
    assert peak < 12 << 20  # of which xz has 8 MiB for its dictionary


@pytest.mark.parametrize(
    "head", [b"", b"PK\x03\x04\x14\0", b"\x89PNG\r\n\x1a\n\0\0", b"id,body\n1,x\n", '{"id": 1}'.encode("utf-16")]
)
def test_other_files_have_no_packing(head: bytes) -> None:
    assert packing_of(head) is None
