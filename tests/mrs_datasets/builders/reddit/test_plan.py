"""The plan: what is found, what it will take, what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from mrs_datasets.builders.pipeline.work_folder import MARKER, work_place
from mrs_datasets.builders.reddit import plan
from mrs_datasets.builders.reddit.plan import begun_buckets, find_dumps, make_build_plan, read_size, readable
from mrs_suggest.common.errors import InputError

Usage = namedtuple("Usage", "total used free")
GB = 10**9


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


def free_disk(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10 * free, 9 * free, free))


def month(folder: Path, name: str, size: int = 10) -> Path:
    """A month of that size which takes no room."""
    path = folder / name
    path.touch()
    os.truncate(path, size)
    return path


def test_months_are_found_once_and_in_order(tmp_path: Path) -> None:
    for name in ("RC_2018-02.zst", "RC_2018-01.zst", "RC_2017-12.bz2", "RS_2018-01.zst"):
        month(tmp_path, name)
    (tmp_path / "RC_folder.zst").mkdir()
    found = find_dumps([f"{tmp_path}/RC_*.zst", f"{tmp_path}/RC_2018-01.zst", f"{tmp_path}/*.bz2"])
    assert [path.name for path in found] == ["RC_2017-12.bz2", "RC_2018-01.zst", "RC_2018-02.zst"]


def test_the_home_folder_stands_for_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    month(tmp_path, "RC_2018-01.zst")
    assert find_dumps(["~/RC_*.zst"]) == (tmp_path / "RC_2018-01.zst",)


def test_nothing_found_and_two_of_one_name_are_refused(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        month(tmp_path / folder, "RC_2018-01.zst")
    with pytest.raises(InputError, match=r"--dumps .*RS_.*: no such file"):
        find_dumps([f"{tmp_path}/a/RC_*", f"{tmp_path}/a/RS_*"])
    with pytest.raises(InputError, match="have the same name"):
        find_dumps([f"{tmp_path}/*/RC_*"])


@pytest.mark.parametrize(
    ("memory", "asked", "workers"), [(8 * GB, None, 2), (30 * GB, None, 8), (30 * GB, 1, 1), (6 * GB, 9, 2)]
)
def test_workers_are_as_many_as_memory_and_cores_allow(
    tmp_path: Path, cores: None, memory: int, asked: int | None, workers: int
) -> None:
    files = [month(tmp_path, f"RC_2018-0{number}.zst") for number in (1, 2, 3)]
    made = make_build_plan(files, tmp_path / "out", asked, memory, 64)
    assert made.workers == workers
    assert made.memory == min(workers, len(files)) * plan.READER_BYTES <= memory


def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--memory 2 GB: reading a month takes 2.7 GB"):
        make_build_plan([month(tmp_path, "RC_1.zst")], tmp_path / "out", None, 2 * GB, 64)


def test_buckets_grow_until_one_fits_the_memory(tmp_path: Path, cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    free_disk(monkeypatch, 10**15)
    small = make_build_plan([month(tmp_path, "RC_1.zst", GB)], tmp_path / "out", 1, 8 * GB, 64)
    assert (small.buckets, small.bytes) == (64, GB)
    large = make_build_plan([month(tmp_path, "RC_2.zst", 500 * GB)], tmp_path / "out", 1, 8 * GB, 64)
    assert large.buckets > 64
    assert large.buckets % 64 == 0
    assert (
        large.comments / large.buckets * plan.BUCKET_BYTES
        <= 8 * GB
        < 2 * large.comments / large.buckets * plan.BUCKET_BYTES
    )


def test_looking_for_duplicates_takes_more_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free_disk(monkeypatch, 10**15)
    files = [month(tmp_path, "RC_1.zst", GB)]
    plain, clean = (make_build_plan(files, tmp_path / "out", 1, 8 * GB, 64, clean).disk for clean in (False, True))
    assert 1.5 < clean / plain < 2.5


def test_a_disk_that_will_not_hold_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A build that goes on needs the room only that it has not taken yet."""
    files = [month(tmp_path, "RC_2018-01.zst", GB)]
    out = tmp_path / "deep" / "out"
    needed = make_build_plan(files, out, 1, 8 * GB, 64).disk
    assert needed > 0.9 * plan.RESERVE * GB * plan.RATIOS[".zst"] / plan.LINE_BYTES * plan.SPILL_BYTES
    free_disk(monkeypatch, needed)
    make_build_plan(files, out, 1, 8 * GB, 64)
    free_disk(monkeypatch, needed - 10**6)
    with pytest.raises(InputError, match=r"--out .*out: the build needs about .* free; choose another disk"):
        make_build_plan(files, out, 1, 8 * GB, 64)
    work_place(out).mkdir(parents=True)
    month(work_place(out), "RC_2018-01.zst.arrow", 10**6)
    make_build_plan(files, out, 1, 8 * GB, 64)


def test_a_build_that_goes_on_keeps_its_buckets(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert begun_buckets(out) is None
    work_place(out).mkdir()
    for content in ("", "[]", '{"buckets": null}', "{"):
        (work_place(out) / MARKER).write_text(content)
        assert begun_buckets(out) is None
    (work_place(out) / MARKER).write_text(json.dumps({"buckets": 128}))
    assert begun_buckets(out) == 128


def test_the_lines_that_a_person_reads(tmp_path: Path, cores: None) -> None:
    files = [month(tmp_path, f"RC_2018-0{number}.zst", 10**6) for number in range(1, 7)]
    first, second = make_build_plan(files, tmp_path / "out", 1, 8 * GB, 64).lines()
    assert first == "6 files, 6 MB: RC_2018-01.zst, RC_2018-02.zst ... RC_2018-06.zst"
    assert "with 1 worker, 64 buckets" in second


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GB", 8 * GB), ("1.5g", 1.5 * GB), (" 2 GiB ", 2 << 30), ("512M", 512 * 10**6), ("1TB", 10**12)],
)
def test_sizes(text: str, size: int) -> None:
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "8", "GB", "-1GB", "8 gallons", "1e9", "8GBB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--memory"):
        read_size(text)


def test_sizes_for_people() -> None:
    assert [readable(size) for size in (0, 999, 1500, 2_700_000_000, 5.8e12, 5.8e15)] == [
        "0 B", "999 B", "1.5 kB", "2.7 GB", "5.8 TB", "5.8e+03 TB",
    ]  # fmt: skip
