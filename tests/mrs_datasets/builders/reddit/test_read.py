"""Reading dumps: the fields of every year, lines that are not comments, files that end early, memory."""

import gzip
import hashlib
import json
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.read import COMMENTS, ReadCounts, read_comments, whole_lines
from mrs_datasets.synthetic.dumps import write_dumps
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.streams import PIECE
from tests.cases import cases

COMMENT = {
    "author": "SynthUser_1", "body": "Sure!", "created_utc": 1514764800, "id": "zzc1", "link_id": "t3_zzp1",
    "parent_id": "t1_zzc0", "score": 3, "subreddit": "synth_sub_1",
}  # fmt: skip
ROW = {
    "id": "zzc1", "parent_id": "t1_zzc0", "link_id": "t3_zzp1", "body": "Sure!", "score": 3, "is_bot": False,
    "deleted_later": False, "created": 1514764800,
}  # fmt: skip
Dump = Callable[..., Path]


@pytest.fixture(autouse=True, scope="module", params=["compiled", "msgspec"])
def reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with the compiled reader of plain lines, and as where there is no compiler."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "compiled":
            pytest.importorskip("mrs_datasets.builders.reddit._lines", reason="needs the compiled part of the package")
        else:
            patch.setattr(read, "_lines", None)
        yield


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    """Return a function that writes a plain dump of lines: bytes as they are, dictionaries as JSON."""

    def write(*lines: bytes | dict[str, Any], name: str = "RC_2018-01", end: bytes = b"\n") -> Path:
        path = tmp_path / name
        path.write_bytes(b"\n".join(line if isinstance(line, bytes) else as_line(line) for line in lines) + end)
        return path

    return write


def as_line(comment: dict[str, Any]) -> bytes:
    return json.dumps(comment).encode()


def without(*names: str) -> dict[str, Any]:
    return {name: value for name, value in COMMENT.items() if name not in names}


def rows_of(path: Path, counts: ReadCounts | None = None) -> list[dict[str, Any]]:
    return [row for batch in read_comments(path, counts or ReadCounts()) for row in batch.to_pylist()]


def test_bots_are_found_by_their_names() -> None:
    names = {
        "AutoModerator": True, "automoderator": True, "weather_BOT": True, "TotesMessenger": True, "Bottle": False,
        "bot_owner": False, "[deleted]": False, "": False, None: False,
    }  # fmt: skip
    assert read.is_bot(pa.array(names, pa.string())).to_pylist() == list(names.values())


@pytest.mark.parametrize(("change", "row"), cases(__file__, "test_the_fields_of_every_year"))
def test_the_fields_of_every_year(dump: Dump, change: dict[str, Any], row: dict[str, Any]) -> None:
    escaped, raw = as_line(COMMENT | change), json.dumps(COMMENT | change, ensure_ascii=False).encode()
    assert rows_of(dump(escaped, raw, raw + b"\r", b"  " + raw)) == [ROW | row] * 4


def test_fields_that_may_be_missing_and_bots_that_are_not_asked_for(dump: Dump) -> None:
    path = dump({**COMMENT, "author": "AutoModerator"}, COMMENT)
    assert pa.Table.from_batches(read_comments(path, ReadCounts(), find_bots=False)).to_pylist() == [ROW, ROW]
    assert rows_of(dump(without("score", "author", "subreddit"))) == [ROW | {"score": None}]
    assert rows_of(dump(without("parent_id"))) == [ROW | {"parent_id": "t3_zzp1"}]


@pytest.mark.parametrize(
    ("change", "row"),
    cases(__file__, "test_half_a_surrogate_pair_spoils_only_what_is_read")
)  # fmt: skip
def test_half_a_surrogate_pair_spoils_only_what_is_read(
    dump: Dump, change: dict[str, Any], row: dict[str, Any]
) -> None:
    escaped = as_line(COMMENT | change)
    raw = json.dumps(COMMENT | change, ensure_ascii=False).encode("utf-8", "surrogatepass")
    counts = ReadCounts()
    assert rows_of(dump(COMMENT, escaped, raw, COMMENT), counts) == [ROW, ROW | row, ROW | row, ROW]
    assert (counts.lines, counts.comments, counts.rejected) == (4, 4, {})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        *(
            (as_line(COMMENT | change), reason)
            for change, reason in cases(__file__, "test_a_line_that_is_no_comment_is_counted_and_skipped")
        ),
        (as_line(COMMENT)[:-1], read.BROKEN),
        (as_line(COMMENT)[:-20], read.BROKEN),
        (as_line(COMMENT)[3:], read.BROKEN),
        (as_line(COMMENT) * 2, read.BROKEN),
        (as_line(COMMENT) + b" x", read.BROKEN),
        (b"garbage", read.BROKEN),
        (b"\0" * 60, read.BROKEN),
        (b'{"x":' + b"[" * 100_000, read.BROKEN),
        (as_line(COMMENT).replace(b"Sure!", b"\xff"), read.BROKEN),
        (as_line(COMMENT).replace(b"Sure!", b"\xed\xa0\x80"), read.SURROGATE),
        (as_line(COMMENT).replace(b"Sure!", b"tab\tstop"), read.BROKEN),
        *((as_line(COMMENT | {name: "x\ud83d"}), read.SURROGATE) for name in ("id", "parent_id", "link_id")),
        (as_line({"flair": "\ud83d"} | COMMENT)[:-1], read.BROKEN),
        (as_line({"flair": "\ud83d", "x": float("nan")} | COMMENT), read.BROKEN),
        (as_line({"flair": "\ud83d"} | without("body")), read.MISSING),
        (as_line({"flair": "\ud83d"} | COMMENT | {"created_utc": "15\ud83d"}), read.WRONG_TYPE),
        (as_line({"flair": "\ud83d"} | COMMENT | {"score": 2.0**31}), read.OUT_OF_RANGE),
        (b'["\\ud83d"]', read.WRONG_TYPE),
        (b"", read.BLANK),
        (b" \r", read.BLANK),
        (b"null", read.WRONG_TYPE),
        (b"[]", read.WRONG_TYPE),
        (as_line(without("body")), read.MISSING),
        (as_line(without("id")), read.MISSING),
        (as_line(without("created_utc")), read.MISSING),
        (as_line(without("parent_id", "link_id")), read.MISSING),
        (b"{}", read.MISSING),
    ],
)
def test_a_line_that_is_no_comment_is_counted_and_skipped(dump: Dump, line: bytes, reason: str) -> None:
    counts = ReadCounts()
    assert rows_of(dump(COMMENT, line, COMMENT | {"id": "zzc2"}), counts) == [ROW, ROW | {"id": "zzc2"}]
    assert counts.rejected == {reason: 1}
    assert (counts.lines, counts.comments, counts.truncated) == (3, 2, "")


@pytest.mark.parametrize("stray", [b"\xef\xbb\xbf", b"\0", b"\0" * 4096, b" \0\xef\xbb\xbf"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_what_stands_before_a_line_does_not_lose_it(dump: Dump, stray: bytes, at: int) -> None:
    counts = ReadCounts()
    lines = [as_line(COMMENT | {"id": f"zzc{number}"}) for number in range(3)]
    lines[at] = stray + lines[at]
    assert [row["id"] for row in rows_of(dump(*lines), counts)] == ["zzc0", "zzc1", "zzc2"]
    assert (counts.rejected, counts.truncated) == ({}, "")


@pytest.mark.parametrize("end", [b"", b"\r"])
def test_lines_may_end_with_cr_alone(dump: Dump, end: bytes) -> None:
    """Over several pieces, of which one may begin with the line end."""
    comments = [as_line(COMMENT | {"id": f"zzc{number}"}) for number in range(3000)]
    for shift in range(3):
        counts = ReadCounts()
        comments[0] = as_line(COMMENT | {"id": "zzc0", "x": "y" * shift})
        path = dump(b"\r".join(comments), end=end)
        assert path.stat().st_size > 2 * PIECE
        assert [row["id"] for row in rows_of(path, counts)] == [f"zzc{number}" for number in range(3000)]
        assert (counts.lines, counts.truncated) == (3000, "")


def test_the_batches_have_the_schema_and_no_author(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 4)
    path = dump(*(COMMENT | {"id": f"zzc{i}", "author": "SynthUser_secret"} for i in range(10)))
    batches = list(read_comments(path, ReadCounts()))
    assert [batch.num_rows for batch in batches] == [4, 4, 2]
    assert [row["id"] for batch in batches for row in batch.to_pylist()] == [f"zzc{i}" for i in range(10)]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema == COMMENTS
        assert "SynthUser" not in str(batch.to_pylist())


def test_a_plain_file_that_ends_within_a_line_is_noted(dump: Dump) -> None:
    counts = ReadCounts()
    assert rows_of(dump(COMMENT, as_line(COMMENT)[:40], end=b""), counts) == [ROW]
    assert counts.truncated == "the file ends in the middle of a line"
    assert counts.lines == counts.comments + counts.rejected.total() == 2


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a month of 3,000 synthetic lines."""
    folder = tmp_path_factory.mktemp("dumps") / "out"
    write_dumps(folder, ["2018-01"], 3000, 5, window_log=27)
    return folder / "RC_2018-01.zst"


@pytest.mark.parametrize("share", [0.3, 0.9, 0.9999])
def test_a_month_that_ends_early_gives_what_was_whole(tmp_path: Path, month: Path, share: float) -> None:
    data = month.read_bytes()
    path = tmp_path / "RC_2018-01.zst"
    path.write_bytes(data[: int(len(data) * share)])
    counts, whole = ReadCounts(), rows_of(month)
    rows = rows_of(path, counts)
    assert counts.truncated == "the file ends early"
    assert rows == whole[: len(rows)]
    assert len(rows) > (share - 0.15) * len(whole)
    assert counts.lines == counts.comments + counts.rejected.total()
    assert counts.bytes == path.stat().st_size


def test_a_damaged_frame_gives_what_comes_before(tmp_path: Path, month: Path) -> None:
    data = bytearray(month.read_bytes())
    frame = zstandard.ZstdCompressor().compress(as_line(COMMENT) + b"\n")
    data[len(data) // 2 :] = bytes(len(data) // 2)
    path = tmp_path / "RC_2018-02.zst"
    path.write_bytes(frame * 3 + bytes(data))
    counts = ReadCounts()
    rows = rows_of(path, counts)
    assert rows[:3] == [ROW] * 3
    assert rows[3:] == rows_of(month)[: len(rows) - 3]
    assert len(rows) > 1000
    assert counts.truncated.startswith("damaged zstd data")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read"),
        (b"", "is empty"),
        (b"PK\x03\x04\0\0", "found a file that starts with 50 4b 03 04"),
        (b"some text\nof somebody\n", "expected a dump"),
        (zstandard.ZstdCompressor().compress(b""), "has no lines"),
        (zstandard.ZstdCompressor().compress(as_line(COMMENT) * 9)[:-9], "no complete line could be read"),
        (b"\xfd7zXZ\0" + b"\1" * 50, "no complete line could be read"),
        (as_line({"id": "a", "title": "a post"}) + b"\n", "none of its 1 lines is a comment (most often: missing"),
    ],
)
def test_a_file_that_is_not_a_dump_is_one_sentence(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "RC_2018-01.zst"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        rows_of(path)
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_no_memory_for_the_window_is_one_sentence(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: object) -> Iterator[bytes]:
        yield as_line(COMMENT) + b"\n"
        raise MemoryError

    monkeypatch.setattr(read, "read_pieces", no_memory)
    with pytest.raises(InputError, match="more memory than is free"):
        rows_of(dump(COMMENT))


def test_a_line_over_the_limit_is_skipped_in_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "MAX_LINE", 2 << 20)
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    block = b"a" * (1 << 20)
    parts = [as_line(COMMENT) + b'\n{"body": "', *([block] * 64), b'"}\n' + as_line(COMMENT) + b"\n"]
    path = tmp_path / "RC_2018-01.zst"
    path.write_bytes(b"".join(packer.compress(part) for part in parts) + packer.flush())
    counts = ReadCounts()
    tracemalloc.start()
    try:
        rows = rows_of(path, counts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == [ROW, ROW]
    assert counts.rejected == {read.TOO_LONG: 1}
    assert counts.lines == 3
    assert peak < 12 << 20


@given(st.lists(st.integers(0, 3 * PIECE), max_size=6), st.integers(1, PIECE), st.booleans())
def test_lines_are_cut_where_they_end_however_the_pieces_fall(lengths: list[int], step: int, end: bool) -> None:
    lines = [b"%d" % (i % 10) * length for i, length in enumerate(lengths)]
    text = b"\n".join(lines) + (b"\n" if end and lines else b"")
    counts = ReadCounts()
    limit = 2 * PIECE
    step = max(step, 1 + len(text) // 500)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(read, "MAX_LINE", limit)
        blocks = list(whole_lines((text[i : i + step] for i in range(0, len(text), step)), counts))
    assert all(block.endswith(b"\n") for block in blocks[:-1])
    found = b"".join(blocks).split(b"\n")
    kept = [line for line in text.split(b"\n") if len(line) <= limit]
    assert [line for line in found if line] == [line for line in kept if line]
    assert counts.rejected.total() == sum(length > limit for length in lengths)


def test_memory_does_not_grow_with_the_file(dump: Dump, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "BATCH_ROWS", 500)
    peaks = []
    for lines in (2000, 6000):
        path = dump(*[as_line(COMMENT | {"body": "word " * 200})] * lines)
        tracemalloc.start()
        try:
            for batch in read_comments(path, ReadCounts()):
                assert batch.num_rows <= 500
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.integers().map(str), st.floats().map(str))
OBJECTS = st.fixed_dictionaries(
    {
        "id": st.text(max_size=6),
        "parent_id": st.sampled_from(["t1_zzc0", "t3_zzp0", None]),
        "link_id": st.just("t3_zzp0"),
        "body": st.text(st.characters(exclude_categories=())),
        "created_utc": NUMBERS | st.integers(0, 2**31),
    },
    optional={
        "score": st.none() | st.integers(-(2**33), 2**33) | NUMBERS,
        "author": st.none() | st.sampled_from(["AutoModerator", "a_bot", "human", "a_bot\ud83d"]),
        "_meta": st.none() | st.fixed_dictionaries({}, optional={"was_deleted_later": st.booleans() | st.none()}),
        "x": JSON,
    },
)
SOME_JSON = st.one_of(
    OBJECTS, st.tuples(OBJECTS, st.sampled_from(sorted(COMMENT)), JSON).map(lambda t: t[0] | {t[1]: t[2]}), JSON
)
LINES = st.tuples(SOME_JSON, st.booleans()).map(
    lambda drawn: json.dumps(drawn[0], ensure_ascii=drawn[1]).encode("utf-8", "surrogatepass")
)
SPOILED = st.tuples(LINES, st.integers(0, 400), st.sampled_from([b"", b"{", b"}", b'"', b",", b"\\", b"\0", b" "])).map(
    lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + 1 :]
)


def rows_of_block(block: bytes, counts: ReadCounts) -> list[dict[str, Any]]:
    table = read._joined(list(read.read_lines(block, counts)))
    table.validate(full=True)
    bots = read.is_bot(table["author"])
    return table.set_column(5, "is_bot", bots).to_pylist()


def as_json_reads_it(line: bytes) -> dict[str, Any]:
    """The row that `json` makes of a line."""
    fields = json.loads(line)
    created = fields["created_utc"]
    author = fields.get("author") or ""
    return {
        **{name: fields[name] for name in ("id", "link_id", "body")},
        "parent_id": fields["link_id"] if fields.get("parent_id") is None else fields["parent_id"],
        "score": fields.get("score"),
        "is_bot": author in ("AutoModerator", "a_bot"),
        "deleted_later": ((fields.get("_meta") or {}).get("was_deleted_later")) is True,
        "created": int(float(created)) if isinstance(created, str) and "." in created else int(created),
    }


@settings(max_examples=60)
@given(st.lists(LINES | SPOILED, min_size=1, max_size=4))
def test_any_line_reads_as_json_reads_it_or_is_counted(lines: list[bytes]) -> None:
    counts = ReadCounts()
    rows = rows_of_block(b"\n".join(lines) + b"\n", counts)
    assert counts.lines == len(lines) == len(rows) + counts.rejected.total()
    assert counts.comments == len(rows)
    remaining = iter(rows)
    for line in lines:
        alone = ReadCounts()
        if rows_of_block(line + b"\n", alone):
            assert next(remaining) == as_json_reads_it(line)
        else:
            assert alone.rejected.total() == 1
    assert next(remaining, None) is None


@pytest.mark.parametrize("packing", ["plain", "zstd", "gzip"])
@pytest.mark.parametrize("kept", [1.0, 0.7])
def test_the_hash_is_of_the_whole_file_however_much_of_it_is_read(tmp_path: Path, packing: str, kept: float) -> None:
    pack = {"plain": bytes, "zstd": zstandard.ZstdCompressor().compress, "gzip": gzip.compress}[packing]
    lines = b"".join(as_line({**COMMENT, "id": str(number), "body": "x" * 999}) + b"\n" for number in range(2000))
    content = pack(lines)
    path = tmp_path / "RC_2018-01"
    path.write_bytes(content[: int(kept * len(content))] + (b"" if kept == 1 else b"\0 damaged" * 999))
    counts = ReadCounts()
    rows_of(path, counts)
    assert counts.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
