"""The compiled reader of plain lines: every line is what msgspec makes of it, whatever is wrong with it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.read import ReadCounts, read_comments
from mrs_datasets.synthetic.dumps import write_dumps
from tests.cases import cases

_lines = pytest.importorskip("mrs_datasets.builders.reddit._lines", reason="needs the compiled part of the package")

PLAIN: list[bytes] = [line.encode() for line in cases(__file__, "PLAIN")]
UNUSUAL: list[bytes] = [line.encode() for line in cases(__file__, "UNUSUAL")]
PIECES: list[bytes] = [
    *(piece.encode() for piece in cases(__file__, "PIECES")),
    b"", b"\n", b"\0", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"\xff",
]  # fmt: skip
# Where, in which way, how many bytes are replaced, and by what: anywhere, or behind a colon or a comma.
EDITS = st.tuples(
    st.integers(0, 500), st.sampled_from([b"", b":", b","]), st.sampled_from([0, 0, 1, 2, 9]),
    st.sampled_from(PIECES) | st.binary(max_size=2),
)  # fmt: skip
LINES = st.tuples(st.sampled_from(PLAIN + UNUSUAL), st.lists(EDITS, max_size=3))
# With more other fields than are compared with those of the line before.
OTHERS = b",".join(b'"k%d":[%d]' % (n, n) for n in range(70))
WIDE = b'{"id":"a","link_id":"t3_b",%s,"body":"c","created_utc":1}' % OTHERS


def edited(line: bytes, edits: list[tuple[int, bytes, int, bytes]]) -> bytes:
    for at, mark, size, piece in edits:
        place = (line.find(mark, at % (len(line) + 1)) + 1 if mark else at) % (len(line) + 1)
        line = line[:place] + piece + line[place + size :]
    return line


def found(block: bytes, compiled: bool) -> tuple[list[dict[str, Any]], ReadCounts]:
    counts = ReadCounts()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "_lines", _lines if compiled else None)
        table = read._joined(list(read.read_lines(block, counts)))
    table.validate(full=True)
    return table.to_pylist(), counts


@settings(max_examples=400)
@given(st.lists(LINES, min_size=1, max_size=5), st.sampled_from([b"\n", b"\r\n", b""]))
def test_edited_lines_are_what_msgspec_makes_of_them(lines: list[Any], end: bytes) -> None:
    block = b"\n".join(edited(line, edits) for line, edits in lines) + end
    assert found(block, compiled=True) == found(block, compiled=False)


@settings(max_examples=200)
@given(st.sampled_from([*PLAIN, WIDE]), st.lists(st.lists(EDITS, max_size=2), min_size=2, max_size=6))
def test_lines_that_are_much_like_the_one_before(line: bytes, edits: list[Any]) -> None:
    lines = [line]
    for again in edits:
        lines += [edited(lines[-1], again), line]
    block = b"\n".join(lines) + b"\n"
    assert found(block, compiled=True) == found(block, compiled=False)


def test_every_byte_may_differ_from_the_line_before() -> None:
    line = PLAIN[-1]
    others = [line[:at] + byte + line[at + 1 :] for at in range(len(line)) for byte in (b"", b",", b"}", b'"', b"1")]
    block = b"\n".join([line, *(part for other in others for part in (other, line)), b""])
    assert found(block, compiled=True) == found(block, compiled=False)


def test_lines_with_more_or_fewer_members_than_the_line_before() -> None:
    fields = [*json.loads(PLAIN[0]).items(), *((f"k{number}", number) for number in range(70))]
    few = [json.dumps(dict(fields[:count])).encode() for count in range(len(fields))]
    block = b"\n".join(part for line in few for part in (few[-1], line, few[-2], line)) + b"\n"
    assert found(block, compiled=True) == found(block, compiled=False)


@pytest.mark.parametrize("line", [*PLAIN, WIDE])
def test_the_lines_of_every_year_are_read_without_msgspec(line: bytes) -> None:
    for block in (line + b"\n", line + b" \r\n"):
        end, columns = _lines.scan(block, 0)
        assert end == len(block)
        assert len(columns[-1]) == 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "decode_lines", None)
        rows, counts = found(line + b"\n" + line + b"\n", compiled=True)
    assert rows == found(line + b"\n", compiled=False)[0] * 2
    assert (counts.lines, counts.comments) == (2, 2)


@pytest.mark.parametrize("line", UNUSUAL)
def test_what_is_not_plain_is_left_to_msgspec(line: bytes) -> None:
    plain = PLAIN[0] + b"\n"
    block = plain * 2 + (line + b"\n") * 2 + plain + line + b"{"
    places = [0]
    while places[-1] < len(block):
        end, columns = _lines.scan(block, places[-1])
        assert bool(columns) == (len(places) % 2 == 1)
        places.append(end)
    end = len(block) - len(line) - 1
    assert places[1:] == [2 * len(plain), end - len(plain), end, len(block)]
    assert found(block, compiled=True) == found(block, compiled=False)


def test_no_part_of_a_line_is_plain() -> None:
    for line in PLAIN:
        for at in range(len(line)):
            for part in (line[:at], line[at + 1 :]):
                assert _lines.scan(part + b"\n", 0) == (len(part) + 1, ())
                assert _lines.scan(part, 0) == (len(part), ())


def test_the_longest_texts_of_every_kind() -> None:
    """At every distance from the eight bytes that are compared together."""
    for text in ("x", "é", "日本", "🙂", '"\\', "\x7f", "x" * 61 + "é"):
        for before in range(20):
            body = "a" * before + text * 300
            for ascii_only in (True, False):
                line = json.dumps(json.loads(PLAIN[0]) | {"body": body}, ensure_ascii=ascii_only).encode() + b"\n"
                end, columns = _lines.scan(line * 2, len(line))
                assert (end, columns[3].decode()) == (2 * len(line), body)
                assert np.frombuffer(columns[8], np.int32).tolist() == [len(body.encode())]


def test_a_month_has_the_same_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_dumps(tmp_path / "out", ["2018-01"], 6000, 5)
    path = tmp_path / "out/RC_2018-01.zst"
    monkeypatch.setattr(read, "BATCH_ROWS", 700)
    batches = list[list[pa.RecordBatch]]()
    for part in (_lines, None):
        monkeypatch.setattr(read, "_lines", part)
        batches.append(list(read_comments(path, ReadCounts())))
    assert batches[0] == batches[1]
    assert len(batches[0]) == 9


def test_wrong_arguments_are_refused() -> None:
    for start in (-1, 4):
        with pytest.raises(ValueError, match=f"start: expected a position in the 3 bytes, found {start}"):
            _lines.scan(b"{}\n", start)
    with pytest.raises(ValueError, match="block: expected at most 1 GiB, found 1073741825 bytes"):
        _lines.scan(bytes((1 << 30) + 1), 0)
    with pytest.raises(TypeError):
        _lines.scan("{}\n", 0)
    assert _lines.scan(b"", 0) == (0, ())
