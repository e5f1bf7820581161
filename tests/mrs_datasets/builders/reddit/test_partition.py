"""Partition files: nothing lost, whole or not at all, damage is noticed, and memory stays in its budget."""

import re
import resource
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xxhash import xxh64_intdigest

from mrs_datasets.builders.reddit import partition as module
from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.partition import PARTITION, bucket_sizes, partition, read_buckets, stable_hashes
from mrs_datasets.builders.reddit.read import COMMENTS
from mrs_suggest.common.errors import InputError

Row = tuple[str, str, str, str, int]
NAMES = st.text("ab1é", max_size=3)
ROWS = st.lists(st.tuples(NAMES, NAMES, NAMES, st.text(max_size=9), st.integers(-(2**63), 2**63 - 1)), max_size=25)


def as_batch(rows: list[Row]) -> pa.RecordBatch:
    """A batch with all columns that the filter hands on."""
    ids, parents, links, bodies, created = ([row[column] for row in rows] for column in range(5))
    columns = [ids, parents, links, bodies, [1] * len(rows), [False] * len(rows), [False] * len(rows), created]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, COMMENTS.types, strict=True)], schema=COMMENTS
    )


def as_rows(table: pa.Table) -> list[Row]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def made_rows(count: int, first: int = 0) -> list[Row]:
    return [(f"c{i}", f"t1_c{i - 1}", f"t3_p{i % 17}", f"text {i} " * 5, i) for i in range(first, first + count)]


def read_bucket(path: Path, bucket: int) -> pa.Table:
    return read_buckets(path, range(bucket, bucket + 1))


def written(path: Path, batches: Iterable[pa.RecordBatch], buckets: int, run: int = 1 << 20, groups: int = 256) -> int:
    """Write a partition file with runs and groups of these sizes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK_BYTES", run)
        patch.setattr(module, "GROUPS", groups)
        return partition(batches, path, buckets)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a partition file of 60 comments, 3 buckets, more than one run."""
    written(tmp_path / "m.arrow", [as_batch(made_rows(30)), as_batch(made_rows(30, 30))], 3, 2000)
    return tmp_path / "m.arrow"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(ROWS, max_size=4), st.integers(1, 9), st.integers(1, 1500), st.integers(1, 9), st.integers(1, 9), st.data()
)
def test_every_comment_is_in_the_bucket_of_its_thread_in_the_order_of_its_coming(
    parts: list[list[Row]], buckets: int, run: int, groups: int, batch: int, data: st.DataObject
) -> None:
    """At one level, and by way of groups; buckets read one by one, and several together."""
    first = data.draw(st.integers(0, buckets - 1))
    some = range(first, data.draw(st.integers(first + 1, buckets)))
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_ROWS", batch)
        path = Path(folder) / "m.arrow"
        comments = written(path, [as_batch(part) for part in parts], buckets, run, groups)
        found = [as_rows(read_bucket(path, bucket)) for bucket in range(buckets)]
        together, sizes = in_buckets(as_rows(read_buckets(path, some)), buckets), bucket_sizes(path).tolist()
    rows = [row for part in parts for row in part]
    expected = in_buckets(rows, buckets)
    assert found == expected
    assert together == [of if bucket in some else [] for bucket, of in enumerate(expected)]
    assert sizes == list(map(len, expected))
    assert comments == len(rows)


def in_buckets(rows: list[Row], buckets: int) -> list[list[Row]]:
    """The rows of each bucket, in their order."""
    found: list[list[Row]] = [[] for _ in range(buckets)]
    for row, digest in zip(rows, stable_hashes(pa.array([row[2] for row in rows], pa.string())).tolist(), strict=True):
        found[digest % buckets].append(row)
    return found


def test_the_hash_never_changes() -> None:
    # published test vectors of XXH64 with seed 0; another hash would tear the threads of a resumed build apart
    assert stable_hashes(pa.array(["", "a", "abc"])).tolist() == [
        0xEF46DB3751D8E999,
        0xD24EC4F1A98C6E5B,
        0x44BC2CF5AD770999,
    ]


@given(st.lists(st.text(max_size=70), max_size=9), st.integers(0, 3), st.integers(0, 40))
def test_the_hash_is_the_same_with_and_without_the_compiled_part(texts: list[str], start: int, skipped: int) -> None:
    expected = [xxh64_intdigest(text.encode()[skipped:]) for text in texts[start:]]
    assert stable_hashes(pa.array(texts, pa.string())[start:], skipped).tolist() == expected
    for part in (None, "compiled before it had hashes"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(read, "_lines", part)
            assert stable_hashes(pa.array(texts, pa.string())[start:], skipped).tolist() == expected


@pytest.mark.parametrize(("bounds", "skipped"), [([0, 4, 3], 0), ([-1, 2], 0), ([0, 6], 0), ([0, 5], -1)])
def test_texts_out_of_bounds_are_not_hashed(bounds: list[int], skipped: int) -> None:
    if not read._lines:
        pytest.skip("needs the compiled part of the package")
    with pytest.raises(ValueError, match=r"text [01]: expected ascending bounds in 5 bytes"):
        read._lines.hashes(b"abcde", np.array(bounds, np.int64), skipped)


@pytest.mark.parametrize("groups", [256, 4])
def test_memory_does_not_grow_with_the_comments(tmp_path: Path, groups: int) -> None:
    budget = 1 << 20
    batch = as_batch(made_rows(500))

    def peak(times: int) -> int:
        pool = pa.proxy_memory_pool(pa.system_memory_pool())
        before = pa.default_memory_pool()
        pa.set_memory_pool(pool)
        try:
            written(tmp_path / "m", (batch for _ in range(times)), 8, budget, groups)
        finally:
            pa.set_memory_pool(before)
        return int(pool.max_memory())

    few, many = peak(200), peak(600)
    assert few < 4 * budget
    assert many < 1.1 * few


@pytest.mark.parametrize("groups", [256, 1])
@pytest.mark.parametrize("error", [InputError("the dump ends."), OSError("cannot be read"), KeyboardInterrupt()])
def test_an_error_on_the_way_leaves_nothing_and_the_earlier_file_as_it_was(
    file: Path, error: BaseException, groups: int
) -> None:
    before = file.read_bytes()

    def broken() -> Iterator[pa.RecordBatch]:
        yield from (as_batch(made_rows(30)) for _ in range(9))
        raise error

    with pytest.raises(type(error)) as caught:
        written(file, broken(), 2, 1000, groups)
    assert caught.value is error  # the reader's own, not taken for one of writing
    assert [found.name for found in file.parent.iterdir()] == [file.name]
    assert file.read_bytes() == before


@pytest.mark.parametrize("groups", [256, 1])
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, groups: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # as a full disk, writing stops in the middle
    try:
        with pytest.raises(InputError, match=r"m\.arrow: cannot be written \(File too large\); free space"):
            rows = (as_batch(made_rows(200, 200 * i)) for i in range(20))
            written(tmp_path / "m.arrow", rows, 2, 20_000, groups)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match=r"none/m: cannot be written \(No such file or directory\)"):
        partition([], tmp_path / "none" / "m", 2)


def test_a_file_that_was_cut_off_is_never_taken_for_whole(file: Path) -> None:
    whole = file.read_bytes()
    for end in [*range(0, len(whole), 97), *range(len(whole) - 30, len(whole))]:
        file.write_bytes(whole[:end])
        with pytest.raises(InputError, match=r"m\.arrow: is not a complete partition file .*; delete it and resume"):
            read_bucket(file, 0)


@pytest.fixture(scope="module")
def whole() -> tuple[bytes, list[pa.Table]]:
    """Return the contents of a partition file, and its buckets."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        written(path, [as_batch(made_rows(30)), as_batch(made_rows(30, 30))], 3, 2000)
        return path.read_bytes(), [read_bucket(path, bucket) for bucket in range(3)]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_broken_byte_is_noticed_or_does_no_harm(whole: tuple[bytes, list[pa.Table]], data: st.DataObject) -> None:
    content, expected = bytearray(whole[0]), whole[1]
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    sentence = ""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "m"
        path.write_bytes(content)
        try:
            assert [read_bucket(path, bucket) for bucket in range(3)] == expected
        except InputError as error:
            sentence = str(error)
    assert not sentence or re.fullmatch(r".*/m: is not a complete partition file \(.*\); delete it .*", sentence)


def test_an_arrow_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.arrow"
    for schema in (pa.schema([("a", pa.int32())]), PARTITION):  # the second is what a crash before the index leaves
        with pa.ipc.new_file(str(path), schema):
            pass
        with pytest.raises(InputError, match=r"m\.arrow: is not a complete partition file \(it is an Arrow file"):
            read_bucket(path, 0)
    path.unlink()
    with pytest.raises(InputError, match=r"m\.arrow: cannot be read \(No such file or directory\)"):
        read_bucket(path, 0)
