"""Settings and plan of a build: which values and dumps are taken, and what it will need."""

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.builders.pipeline.work_folder import MARKER, work_place
from mrs_datasets.builders.reddit import plan
from mrs_datasets.builders.reddit.plan import (
    Part,
    begun_buckets,
    find_dumps,
    make_build_plan,
    make_settings,
    read_months,
    read_size,
)
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.streams import ZSTD_MAGIC
from tests.cases import cases

Usage = namedtuple("Usage", "total used free")
GB = 10**9


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)


def free_disk(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10 * free, 9 * free, free))


def month(folder: Path, name: str, size: int = 10, window_log: int = 31) -> Path:
    """A sparse file of that size, with the header of a zstd frame."""
    path = folder / name
    path.write_bytes(ZSTD_MAGIC + bytes([0, window_log - 10 << 3]))
    os.truncate(path, size)
    return path


def test_months_are_found_once_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RC_2018-02.zst", "RC_2018-01.zst", "RC_2017-12.bz2", "RS_2018-01.zst"):
        month(tmp_path, name)
    (tmp_path / "RC_folder.zst").mkdir()
    found = find_dumps([f"{tmp_path}/RC_*.zst", f"{tmp_path}/RC_2018-01.zst", f"{tmp_path}/*.bz2"])
    assert [path.name for path in found] == ["RC_2017-12.bz2", "RC_2018-01.zst", "RC_2018-02.zst"]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_dumps(["~/RS_*.zst"]) == (tmp_path / "RS_2018-01.zst",)


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
    assert made.memory == min(workers, len(files)) * (plan.READER_BYTES + (2 << 30)) <= memory


def test_too_little_memory_is_refused(tmp_path: Path) -> None:
    """The largest window counts."""
    files = [month(tmp_path, f"RC_{log}.zst", window_log=log) for log in (22, 31)]
    with pytest.raises(InputError, match=r"--memory 2 GB: .* 2.7 GB \(its window alone is 2.15 GB\); pass 2.7GB or"):
        make_build_plan(files, tmp_path / "out", None, 2 * GB, 64)
    assert make_build_plan(files[:1], tmp_path / "out", 1, 2 * GB, 64).memory == plan.READER_BYTES + (4 << 20)


def test_buckets_grow_until_one_fits_the_memory(tmp_path: Path, cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    free_disk(monkeypatch, 10**15)
    small = make_build_plan([month(tmp_path, "RC_1.zst", GB)], tmp_path / "out", 1, 8 * GB, 64)
    assert (small.buckets, small.bytes) == (64, GB)
    large = make_build_plan([month(tmp_path, "RC_2.zst", 500 * GB)], tmp_path / "out", 1, 8 * GB, 64)
    assert large.buckets > 64
    assert large.buckets % 64 == 0
    bucket_bytes = large.comments / large.buckets * plan.BUCKET_BYTES
    assert bucket_bytes <= 8 * GB < 2 * bucket_bytes


def test_a_disk_that_is_too_small_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resumed build needs only the space that it does not have yet; duplicates need more."""
    files = [month(tmp_path, "RC_2018-01.zst", GB)]
    out = tmp_path / "deep" / "out"
    free_disk(monkeypatch, 10**15)
    kinds = (make_settings("paper"), make_settings("paper", clean=True), make_settings("paper", context=2))
    needed, clean, context = (make_build_plan(files, out, 1, 8 * GB, 64, settings).disk for settings in kinds)
    assert needed > 0.9 * plan.RESERVE * GB * plan.RATIOS[".zst"] / plan.LINE_BYTES * plan.SPILL_BYTES
    assert 1.5 < clean / needed < 2.5
    assert needed < context < 2 * needed
    free_disk(monkeypatch, needed)
    make_build_plan(files, out, 1, 8 * GB, 64)
    free_disk(monkeypatch, needed - 10**6)
    with pytest.raises(InputError, match=r"--out .*out: the build needs about .* free; choose another disk"):
        make_build_plan(files, out, 1, 8 * GB, 64)
    work_place(out).mkdir(parents=True)
    month(work_place(out), "RC_2018-01.zst.arrow", 10**6)
    make_build_plan(files, out, 1, 8 * GB, 64)


def test_a_resumed_build_keeps_its_buckets(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert begun_buckets(out) is None
    work_place(out).mkdir()
    for content in ("", "[]", '{"buckets": null}', "{"):
        (work_place(out) / MARKER).write_text(content)
        assert begun_buckets(out) is None
    (work_place(out) / MARKER).write_text(json.dumps({"buckets": 128}))
    assert begun_buckets(out) == 128


def test_sizes_and_months() -> None:
    sizes = {"8GB": 8 * GB, "1.5g": 1.5 * GB, " 2 GiB ": 2 << 30, "512M": 512 * 10**6, "1TB": 10**12}
    assert {text: read_size(text) for text in sizes} == sizes
    for text in ("", "8", "GB", "-1GB", "8 gallons", "1e9", "8GBB"):
        with pytest.raises(InputError, match="--memory"):
            read_size(text)
    assert read_months("2017-12:2018-12") == ("2017-12", "2018-12")
    assert read_months("2018-07") == ("2018-07", "2018-07")
    for text in ("", ":", "2018", "2018-13", "2018-00", "2018-1", "2018-02:2018-01", "2018-01:x", "a:b:c"):
        with pytest.raises(InputError, match="--english-months .*expected YYYY-MM:YYYY-MM"):
            read_months(text)


@pytest.mark.parametrize(("changes", "words"), cases(__file__, "test_values_out_of_range_name_their_flag"))
def test_values_out_of_range_name_their_flag(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make_settings(**{"profile": "paper", **changes})


def test_parts_have_whole_buckets_and_about_as_many_pairs() -> None:
    pairs: dict[Location, dict[str, list[int]]] = {Path(f"{n}"): {"en": [30], "sv": [n]} for n in range(11)}
    parts = Part.divide(pairs, "en", 100)
    assert [part.pairs for part in parts] == [90, 90, 90, 60]
    assert [own for part in parts for own in part.slices] == [(path, 30 * n, 0, 30) for n, path in enumerate(pairs)]
    [swedish] = Part.divide(pairs, "sv", 100)
    assert [*swedish.slices] == [(path, sum(range(n)), 0, n) for n, path in enumerate(pairs) if n]
    a, b = Path("a"), Path("b")
    uneven = Part.divide({a: {"en": [1000]}, b: {"en": [1]}}, "en", 100)
    assert [part.slices for part in uneven] == [((a, 0, 0, 1000),), ((b, 1000, 0, 1),)]
    together = Part.divide({a: {"en": [0, 30, 30, 30, 30, 30]}, b: {"de": [9], "en": [30] * 5}}, "en", 100)
    slices = [part.slices for part in together]
    assert slices == [((a, 0, 0, 120),), ((a, 120, 120, 30), (b, 150, 0, 60)), ((b, 210, 60, 90),)]
