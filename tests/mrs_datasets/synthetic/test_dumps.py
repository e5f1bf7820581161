"""The synthetic dumps: what their manifest says is what the stages find."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from mrs_datasets.builders.reddit import read
from mrs_datasets.builders.reddit.months import FilterCounts, filter_batch
from mrs_datasets.builders.reddit.plan import PROFILES
from mrs_datasets.builders.reddit.read import ReadCounts, read_comments
from mrs_datasets.synthetic import threads
from mrs_datasets.synthetic.dumps import write_dumps
from mrs_datasets.synthetic.threads import NAMES
from mrs_suggest.cli.data import synth as data_synth
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES

MONTHS = ["2012-12", "2018-01", "2023-06"]
LINES = 6000


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return a folder of three months, and its manifest."""
    folder = tmp_path_factory.mktemp("synth") / "dumps"
    manifest = write_dumps(folder, MONTHS, LINES, 3)
    assert json.loads((folder / "manifest.json").read_text(encoding="utf-8")) == manifest
    return folder, manifest


def raw_lines(path: Path) -> list[bytes]:
    with zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(path.open("rb")) as stream:
        return stream.read().split(b"\n")[:-1]


def test_the_reader_finds_what_the_manifest_says(dumps: tuple[Path, dict[str, Any]]) -> None:
    folder, manifest = dumps
    assert list(manifest["files"]) == [f"RC_{month}.zst" for month in MONTHS]
    for name, expected in manifest["files"].items():
        counts = ReadCounts()
        rows = [row for batch in read_comments(folder / name, counts) for row in batch.to_pylist()]
        assert counts.rejected == expected["rejected"]
        assert counts.truncated == ""
        assert (counts.lines, counts.comments, len(rows)) == (LINES, expected["comments"], expected["comments"])
        assert counts.bytes == expected["compressed"] == (folder / name).stat().st_size
        assert len(rows) - len({row["id"] for row in rows}) == expected["twice"]
        assert sum(row["score"] is None for row in rows) > 0
        assert set(counts.rejected) == {read.BROKEN, read.SURROGATE, read.WRONG_TYPE, read.MISSING, read.BLANK}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_filter_and_a_join_find_what_the_manifest_says(dumps: tuple[Path, dict[str, Any]], profile: str) -> None:
    folder, manifest = dumps
    expected = manifest["profiles"][profile]
    counts = FilterCounts()
    link_of: dict[str, str] = {}
    kept: dict[tuple[str, str], dict[str, Any]] = {}
    twice = 0
    for name in manifest["files"]:
        for batch in read_comments(folder / name, ReadCounts()):
            link_of.update(zip(batch["id"].to_pylist(), batch["link_id"].to_pylist(), strict=True))
            for row in filter_batch(batch, PROFILES[profile], counts).to_pylist():
                twice += (row["link_id"], row["id"]) in kept
                kept[row["link_id"], row["id"]] = row
    assert counts.seen == sum(facts["comments"] for facts in manifest["files"].values())
    assert (counts.dropped, counts.seen - counts.dropped.total()) == (expected["dropped"], expected["kept"])
    unmatched = {threads.TWICE: twice}
    pairs = across = 0
    for (link, _), row in kept.items():
        prefix, parent = row["parent_id"][:3], row["parent_id"][3:]
        if (link, parent) in kept and prefix == "t1_":
            pairs += 1
            across += _month(row) != _month(kept[link, parent])
            continue
        if prefix == "t3_":
            why = threads.POST
        elif parent not in link_of:
            why = threads.PARENT_MISSING
        else:
            why = threads.PARENT_DROPPED if link_of[parent] == link else threads.OTHER_POST
        unmatched[why] = unmatched.get(why, 0) + 1
    assert pairs == expected["pairs"] == sum(expected["pairs_by_language"].values())
    assert unmatched == expected["unmatched"]
    assert across > 100, "threads go on across the months"


def _month(row: dict[str, Any]) -> int:
    return row["created"] // (86400 * 31)


def test_every_language_has_pairs_and_fields_change_with_the_years(dumps: tuple[Path, dict[str, Any]]) -> None:
    folder, manifest = dumps
    assert set(manifest["profiles"]["paper"]["pairs_by_language"]) == set(LANGUAGES)
    bodies = [b for batch in read_comments(folder / "RC_2018-01.zst", ReadCounts()) for b in batch["body"].to_pylist()]
    assert len(set(bodies)) > 0.6 * len(bodies)
    assert len(set(bodies)) < 0.9 * len(bodies), "short replies come again"
    text = "\n".join(bodies)
    for name in ("mention", "address", "mail"):
        assert NAMES[name] in text
    for name in ("author", "comment id", "post id", "author id", "subreddit"):
        assert NAMES[name] not in text
    assert "&gt; " in text
    kinds = {}
    for month in MONTHS:
        lines = raw_lines(folder / f"RC_{month}.zst")
        first = json.loads(next(line for line in lines if line.endswith(b"}")))
        kinds[month] = type(first["created_utc"]), all(map(bytes.isascii, lines))
        assert first["id"].startswith(NAMES["comment id"])
    assert kinds == {"2012-12": (str, True), "2018-01": (int, True), "2023-06": (float, False)}
    assert "😀" in text


def test_lines_and_packing_are_as_of_real_months(tmp_path: Path) -> None:
    facts = write_dumps(tmp_path / "dumps", ["2018-01"], 30_000)["files"]["RC_2018-01.zst"]
    assert 900 < facts["bytes"] / facts["lines"] < 1150
    assert 7 < facts["bytes"] / facts["compressed"] < 9
    head = (tmp_path / "dumps" / "RC_2018-01.zst").read_bytes()[:18]
    assert zstandard.get_frame_parameters(head).window_size == 1 << 31


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    files = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_dumps(tmp_path / name, ["2018-02", "2018-01"], 300, seed, window_log=20)
        files.append([(tmp_path / name / f"RC_{m}.zst").read_bytes() for m in ("2018-01", "2018-02")])
    assert files[0] == files[1]
    assert files[0][0] != files[2][0]
    assert files[0][0] != files[0][1]


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"months": ["2018-13"]}, "--months 2018-13"),
        ({"months": ["2018-01", "2018-01"]}, "--months"),
        ({"months": []}, "--months"),
        ({"comments": 0}, "--comments"),
        ({"seed": -1}, "--seed"),
        ({"window_log": 32}, "--window"),
    ],
)
def test_options_that_cannot_be_are_one_sentence(tmp_path: Path, change: dict[str, Any], option: str) -> None:
    with pytest.raises(InputError, match=f"^{option}: expected ") as caught:
        write_dumps(tmp_path / "out", **({"months": ["2018-01"], "comments": 10} | change))
    assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())


def test_the_command_writes_the_folder_and_says_what_is_in_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    data_synth.make_parser(parser)
    line = f"--out {tmp_path}/out --months 2018-02 2018-01 --comments 200 --seed 4 --window 20"
    options = parser.parse_args(line.split())
    options.run(options)
    printed = capsys.readouterr().out
    assert "RC_2018-01.zst  200 lines" in printed
    assert "paper: " in printed
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert (manifest["seed"], manifest["comments"], manifest["window_log"]) == (4, 200, 20)
