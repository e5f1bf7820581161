"""`mrs data prepare` and `mrs data stats`: the folder, the figures, and one sentence for bad input."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command
from tests.cases import cases
from tests.command import Result

pytestmark = pytest.mark.integration

# `Message 1`, `2`, `5` fall into train, `3` into validation, `0` into test
ENGLISH = "Message 1\tYes, sure!\nMessage 1\tNo.\nMessage 2\tNo.\nMessage 3\tI can't\nMessage 0\tOK\n"
SPANISH = "Message 5\tsí\nMessage 3\tno\nMessage 0\tvale\n"
Run = Callable[..., str]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a folder of LANG.tsv files."""
    folder = tmp_path / "src"
    folder.mkdir()
    (folder / "en.tsv").write_text(ENGLISH, encoding="utf-8")
    (folder / "es.tsv").write_text(SPANISH, encoding="utf-8")
    return folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mrs_here: Callable[..., Result]) -> Run:
    """Return a function that runs `mrs data` in this process and folder: what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> str:
        code, out, _ = mrs_here("data", *arguments)
        assert code == 0
        return out

    return call


@pytest.fixture
def refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mrs_here: Callable[..., Result]) -> Run:
    """Return a function that runs `mrs data`, which says one sentence and changes no file."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> str:
        before = sorted(tmp_path.rglob("*"))
        line = command.refused(mrs_here("data", *arguments))
        assert line.startswith("mrs data: ")
        assert sorted(tmp_path.rglob("*")) == before
        return line

    return call


def test_the_sample_is_prepared_and_counted(mrs, tmp_path: Path) -> None:
    """In their own processes."""
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


def test_the_figures_of_a_small_folder_are_those_counted_by_hand(run: Run, source: Path) -> None:
    assert run("prepare", "mrs", "--source", source, "--out", "out").splitlines() == [
        "en  train 3, validation 1, test 1; responses 2",
        "es  train 1, validation 1, test 1; responses 1",
        "wrote out (Message-reply pairs)",
    ]
    rows = json.loads(run("stats", "out", "--json"))["splits"]
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
    table = run("stats", "out")
    assert "Spanish" in table
    assert "treebank" in table


def test_dropped_rows_are_printed(run: Run, source: Path) -> None:
    (source / "es.tsv").write_text(SPANISH + "\tno\nsí\t \n", encoding="utf-8")
    printed = run("prepare", "mrs", "--source", source, "--out", "out")
    assert "es: 1 rows dropped (empty message)" in printed
    assert "es: 1 rows dropped (empty reply)" in printed


def test_an_existing_folder_is_kept_until_overwrite_is_asked_for(run: Run, refused, source: Path, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    prepare = ("prepare", "mrs", "--source", source, "--out", "out")
    for options in ([], ["--overwrite"]):
        assert "no report.json" in refused(*prepare, *options)  # whatever it is, it is not ours
    (tmp_path / "out" / "report.json").write_text("{}")
    assert "--overwrite" in refused(*prepare)
    run(*prepare, "--overwrite")
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
def test_bad_input_leaves_nothing_behind(refused, source: Path, tmp_path: Path, name, content, words) -> None:
    (source / name).parent.mkdir(parents=True, exist_ok=True)
    (source / name).write_bytes(content)
    line = refused("prepare", "mrs", "--source", source, "--out", "new")
    assert [word for word in words if word not in line] == []
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "report.json").write_text("{}")
    refused("prepare", "mrs", "--source", source, "--out", "old", "--overwrite")


@pytest.mark.parametrize(("arguments", "words"), cases(__file__, "test_wrong_arguments_are_refused"))
def test_wrong_arguments_are_refused(refused, run: Run, source: Path, tmp_path: Path, arguments, words) -> None:
    (tmp_path / "nothing" / "data").mkdir(parents=True)
    if "ru" in arguments:
        run("prepare", "mrs", "--source", source, "--out", "out")
    line = refused(*arguments)
    assert [word for word in words if word not in line] == []
