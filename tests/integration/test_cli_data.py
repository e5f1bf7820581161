"""`mrs data` in its own process: the folder, the figures, and one sentence for bad input."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

# `Message 1`, `2`, `5` fall into train, `3` into validation, `0` into test
ENGLISH = "Message 1\tYes, sure!\nMessage 1\tNo.\nMessage 2\tNo.\nMessage 3\tI can't\nMessage 0\tOK\n"
SPANISH = "Message 5\tsí\nMessage 3\tno\nMessage 0\tvale\n"
Done = subprocess.CompletedProcess


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder of LANG.tsv files."""
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "en.tsv").write_text(ENGLISH, encoding="utf-8")
    (folder / "es.tsv").write_text(SPANISH, encoding="utf-8")
    return folder


def assert_refused(done: Done[str], *words: str) -> None:
    """One sentence on stderr that holds `words`, nothing on stdout, exit code 2."""
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("mrs data: ")
    assert [word for word in words if word not in lines[0]] == []
    assert done.stdout == ""


def test_the_sample_is_prepared_and_counted(mrs, tmp_path: Path) -> None:
    done = mrs("data", "prepare", "mrs", "--source", "sample", "--out", "deep/mrs", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "wrote deep/mrs (MRS sample)" in done.stdout
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["mrs"]
    counted = mrs("data", "stats", "deep/mrs", "--language", "es", "en", "--json", cwd=tmp_path)
    assert (counted.returncode, counted.stderr) == (0, "")
    rows = json.loads(counted.stdout)["splits"]
    report = json.loads((tmp_path / "deep" / "mrs" / "report.json").read_text(encoding="utf-8"))["configs"]
    assert [(row["language"], row["split"], row["examples"], row["responses"]) for row in rows] == [
        (code, split, report[code][split]["rows"], report[f"{code}-responses"]["train"]["rows"])
        for code in ("en", "es")
        for split in ("train", "validation", "test")
    ]


def test_the_figures_of_a_small_folder_are_those_counted_by_hand(mrs, source: Path, tmp_path: Path) -> None:
    done = mrs("data", "prepare", "mrs", "--source", source, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "en  train 3, validation 1, test 1; responses 2",
        "es  train 1, validation 1, test 1; responses 1",
        "wrote out (Message-reply pairs)",
    ]
    rows = json.loads(mrs("data", "stats", "out", "--json", cwd=tmp_path).stdout)["splits"]
    # tokens: messages have 2 each; Yes , sure ! | No . | No . | I ca n't | OK
    assert {row.pop("tokenizer") for row in rows} == {"treebank 3.8.1"}
    assert [tuple(row.values()) for row in rows] == [
        ("en", "train", 3, 6 + 4 + 2 + 2, 2),
        ("en", "validation", 1, 2 + 3, 2),
        ("en", "test", 1, 2 + 1, 2),
        ("es", "train", 1, 2 + 1, 1),
        ("es", "validation", 1, 2 + 1, 1),
        ("es", "test", 1, 2 + 1, 1),
    ]
    table = mrs("data", "stats", "out", cwd=tmp_path)
    assert (table.returncode, table.stderr) == (0, "")
    assert "Spanish" in table.stdout
    assert "treebank" in table.stdout


def test_dropped_rows_are_told(mrs, source: Path, tmp_path: Path) -> None:
    (source / "es.tsv").write_text(SPANISH + "\tno\nsí\t \n", encoding="utf-8")
    done = mrs("data", "prepare", "mrs", "--source", source, "--out", "out", cwd=tmp_path)
    assert done.returncode == 0
    assert "es: 1 rows dropped (empty message)" in done.stdout
    assert "es: 1 rows dropped (empty reply)" in done.stdout


def test_an_existing_folder_is_kept_until_overwrite_is_asked_for(mrs, source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    prepare = ("data", "prepare", "mrs", "--source", source, "--out", "out")
    assert_refused(mrs(*prepare, cwd=tmp_path), "out", "--overwrite")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert_refused(
        mrs(*prepare, "--overwrite", cwd=tmp_path), "out", "no report.json"
    )  # whatever it is, it is not ours
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    (tmp_path / "out" / "report.json").write_text("{}")
    assert mrs(*prepare, "--overwrite", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["README.md", "data", "report.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "src"]


BAD = {
    "a line of one column": ("en.tsv", b"a\tb\nno tab\n", ["en.tsv, line 2"]),
    "bad UTF-8": ("en.tsv", b"a\tb\nc\td\n\xff\xfe\tx\n", ["en.tsv, line 3", "UTF-8"]),
    "an empty file": ("en.tsv", b"", ["en.tsv", "empty"]),
    "an unknown language": ("xx.tsv", b"a\tb\n", ["xx.tsv", "'xx'"]),
    "a damaged file": ("de.tsv.gz", b"\x1f\x8b\x08 broken", ["de.tsv.gz", "damaged"]),
    "a missing split": ("mrs/train/en/a.tsv", b"a\tb\n", ["validation split", "missing"]),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]], ids=["new", "old"])
def test_bad_input_leaves_nothing_behind(mrs, source, tmp_path, name, content, words, overwrite) -> None:
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    (source / name).write_bytes(content)
    if overwrite:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "report.json").write_text("{}")
    before = sorted(tmp_path.rglob("*"))
    assert_refused(mrs("data", "prepare", "mrs", "--source", source, "--out", "out", *overwrite, cwd=tmp_path), *words)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("kind", ["not an archive", "empty", "cut off", "points outside", "a TSV file"])
def test_a_bad_archive_leaves_nothing_behind(mrs, source: Path, tmp_path: Path, kind: str) -> None:
    archive = tmp_path / "mrs.tgz"
    with tarfile.open(archive, "w:gz") as tar:
        for split in ("train", "valid", "test"):
            tar.add(source / "en.tsv", f"mrs/{split}/en/a.tsv")
        if kind == "points outside":
            tar.add(source / "en.tsv", "../evil.tsv")
    whole = archive.read_bytes()
    content = {"not an archive": b"<html>404</html>\n" * 99, "empty": b"", "cut off": whole[: len(whole) // 2]}
    archive.write_bytes(ENGLISH.encode() if kind == "a TSV file" else content.get(kind, whole))
    before = sorted(tmp_path.rglob("*"))
    assert_refused(mrs("data", "prepare", "mrs", "--source", archive, "--out", "out", cwd=tmp_path), "mrs.tgz")
    assert sorted(tmp_path.rglob("*")) == before


def test_an_absent_source_is_refused(mrs, tmp_path: Path) -> None:
    done = mrs("data", "prepare", "mrs", "--source", "none", "--out", "out", cwd=tmp_path)
    assert_refused(done, "none: no such file or folder")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--max-responses", "--min-reply-count"])
def test_a_limit_below_one_is_refused(mrs, source: Path, tmp_path: Path, option: str) -> None:
    done = mrs("data", "prepare", "mrs", "--source", source, "--out", "out", option, "-1", cwd=tmp_path)
    assert done.returncode == 2
    assert option in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], ["none", "no such folder"]),
        (["build/none"], ["build/none"]),  # has the shape of a hub id
        (["src"], ["src", "not a prepared folder"]),
        (["nothing"], ["nothing"]),
        (["sample", "--language", "xx"], ["--language", "'xx'"]),
    ],
    ids=["no folder", "no folder below", "no prepared folder", "empty data folder", "language"],
)
def test_stats_of_what_is_not_there_are_refused(mrs, source: Path, tmp_path: Path, arguments, words) -> None:
    (tmp_path / "nothing" / "data").mkdir(parents=True)
    assert_refused(mrs("data", "stats", *arguments, cwd=tmp_path), *words)


def test_stats_of_a_language_that_the_folder_lacks_are_refused(mrs, source: Path, tmp_path: Path) -> None:
    assert mrs("data", "prepare", "mrs", "--source", source, "--out", "out", cwd=tmp_path).returncode == 0
    assert_refused(mrs("data", "stats", "out", "--language", "ru", cwd=tmp_path), "'ru'", "en", "es")


def test_the_real_replies_are_prepared_and_counted(mrs, shared_data: Path, tmp_path: Path) -> None:
    replies = shared_data / "replies"
    done = mrs("data", "prepare", "mrs", "--source", replies, "--out", "out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    counted = mrs("data", "stats", "out", "--json", cwd=tmp_path)
    assert (counted.returncode, counted.stderr) == (0, "")
    found: Counter[str] = Counter()
    for row in json.loads(counted.stdout)["splits"]:
        found[row["language"]] += row["examples"]
        assert row["tokens"] >= 2 * row["examples"] > 0
    files = {path.stem: path.read_text(encoding="utf-8").rstrip("\n").split("\n") for path in replies.glob("*.tsv")}
    dropped = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["dropped"]
    assert len(files) == 10
    assert found == {code: len(lines) - sum(dropped.get(code, {}).values()) for code, lines in files.items()}
