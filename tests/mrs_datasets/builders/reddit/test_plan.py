"""Settings and plan of a build: what may be asked for, what is found, what it will take, what is refused."""

from __future__ import annotations

import json
import os
import shutil
from collections import namedtuple
from pathlib import Path

import pytest

from mrs_datasets.builders.pipeline.work_folder import MARKER, work_place
from mrs_datasets.builders.reddit import plan
from mrs_datasets.builders.reddit.plan import (
    PROFILES,
    begun_buckets,
    find_dumps,
    make_build_plan,
    make_settings,
    read_months,
    read_size,
    readable,
)
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


def test_the_profile_paper_is_section_2() -> None:
    paper = make_settings("paper")
    assert (paper.min_score, paper.min_language_score, paper.min_examples) == (1, 0.7, 100_000)
    assert (paper.min_reply_count, paper.max_responses) == (20, 50_000)
    assert (paper.drop_bots, paper.clean, paper.split_by) == (False, False, "example")
    assert paper.english_months == ("2018-01", "2018-12")
    assert paper.departures() == {}


def test_the_profile_clean_differs_from_paper_in_what_it_says() -> None:
    paper, clean = (make_settings(name).as_dict() for name in ("paper", "clean"))
    differing = {name: value for name, value in clean.items() if value != paper[name]}
    assert differing == {
        "profile": "clean", "drop_bots": True, "clean": True, "split_by": "thread", "responses_from": "training"
    }  # fmt: skip
    assert make_settings("clean").departures() == {}, "a profile does not depart from itself"


def test_every_change_is_a_departure_and_goes_into_json() -> None:
    changes = {"min_score": 0, "english_months": ("2015-01", "2015-06"), "drop_bots": True, "max_characters": 500}
    settings = make_settings("paper", **changes, clean=None)
    assert settings.departures() == {**changes, "english_months": "2015-01:2015-06"}
    plain = json.loads(json.dumps(settings.as_dict()))
    assert plain == settings.as_dict(), "a report that was read again equals the settings"
    assert plain["english_months"] == "2015-01:2015-06"
    assert make_settings("paper", english_months=()).as_dict()["english_months"] == "all"
    assert set(plain) == set(PROFILES["paper"].as_dict())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min_examples": 0}, "--min-examples: expected 1 or more, found 0"),
        ({"min_reply_count": -1}, "--min-reply-count: expected 1 or more"),
        ({"max_responses": 0}, "--max-responses"),
        ({"buckets": 0}, "--buckets"),
        ({"keep_rejects": -1}, "--keep-rejects: expected 0 or more"),
        ({"min_characters": -1}, "--min-characters: expected 0 or more"),
        ({"max_characters": 0}, "--max-characters: expected 1 or more"),
        ({"min_characters": 9, "max_characters": 8}, "--min-characters 9"),
        ({"min_language_score": 1.0}, "--min-language-score: expected 0 or more and below 1"),
        ({"min_language_score": float("nan")}, "--min-language-score"),
        ({"split_by": "day"}, "--split-by: expected one of example, thread, found 'day'"),
    ],
)
def test_values_out_of_range_name_their_flag(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        make_settings("paper", **changes)


def test_a_profile_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="--profile mine: expected one of paper, clean"):
        make_settings("mine")


@pytest.mark.parametrize(
    ("text", "months"),
    [("2018-01:2018-12", ("2018-01", "2018-12")), ("2018-07", ("2018-07",) * 2), ("2017-12:2018-01", None)],
)
def test_months(text: str, months: tuple[str, str] | None) -> None:
    assert read_months(text) == (months or tuple(text.split(":")))


@pytest.mark.parametrize(
    "text", ["", ":", "2018", "2018-13", "2018-00", "2018-1", "2018-02:2018-01", "2018-01:x", "a:b:c"]
)
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--english-months .*expected YYYY-MM:YYYY-MM"):
        read_months(text)
