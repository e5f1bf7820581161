"""Lines of files: line ends, the byte-order mark, bytes that were read already."""

import gzip
import io
import lzma
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io import lines
from mrs_suggest.common.io.lines import read_lines

NOWHERE = Path("nowhere.txt")
content = st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", "é\u2028".encode()]), max_size=12).map(b"".join)


def texts(data: bytes, **how: bool) -> list[str]:
    found = list(read_lines(NOWHERE, data=data, **how))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return [text for _, text in found]


@given(content, st.integers(1, 9))
def test_line_ends(data: bytes, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "BLOCK", block)  # line ends of two bytes at the edge of a block
        assert texts(data, any_line_end=True) == [
            line.rstrip("\n") for line in io.TextIOWrapper(io.BytesIO(data), "utf-8")
        ]
        alone = [line.removesuffix(b"\n").removesuffix(b"\r").decode() for line in io.BytesIO(data)]
        assert texts(data) == alone


def test_the_byte_order_mark() -> None:
    marked = b"\xef\xbb\xbfa\n\xef\xbb\xbfb"
    assert texts(marked) == ["a", "\ufeffb"]
    assert texts(marked, keep_bom=True) == ["\ufeffa", "\ufeffb"]
    assert texts(marked[:3]) == []
    with pytest.raises(InputError, match="nowhere.txt, line 1: a byte-order mark"):
        texts(marked, as_published=True)
    with pytest.raises(InputError, match=r"line 1: not UTF-8 \(byte 0xff at position 1\)"):
        texts(b"\xef\xbb\xbfa\xff")


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_packed_files_are_read_and_their_bytes_told(tmp_path: Path, suffix: str) -> None:
    pack = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.ZstdCompressor().compress}[suffix]
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack("".join(f"línea {n}\n" for n in range(3000)).encode()))
    told: list[int] = []
    assert [text for _, text in read_lines(path, advance=told.append)] == [f"línea {n}" for n in range(3000)]
    assert sum(told) == path.stat().st_size
    if suffix:
        path.write_bytes(path.read_bytes()[:-9])
        with pytest.raises(InputError, match=rf"a\.txt\{suffix}: the compressed file is damaged .*; fetch"):
            list(read_lines(path))
