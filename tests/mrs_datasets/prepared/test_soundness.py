"""Prepared folders that no command can read: one sentence from every verb, before anything is written."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.readers.sample import SAMPLE
from mrs_suggest.cli.main import main
from tests.cases import cases

ROW = 7
FILE = "train-00000-of-00001.parquet"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLE, tmp_path / "mrs"))


def replies(folder: Path, change: Callable[[pa.Array], pa.Array]) -> None:
    """Replace the replies of the English training split."""
    path = folder / "data" / "en" / FILE
    table = pq.read_table(path)
    changed = table.set_column(1, "reply", change(table["reply"].combine_chunks()))
    pq.write_table(changed, path, row_group_size=5)


def with_value(texts: pa.Array, value: bytes | None) -> pa.Array:
    values = [text.encode() for text in texts.to_pylist()]
    values[ROW] = value
    return pa.array(values, pa.binary()).view(pa.string())


def without_messages(folder: Path) -> None:
    path = folder / "data" / "en" / FILE
    pq.write_table(pq.read_table(path).drop_columns(["message"]), path)


DAMAGE: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "null": (lambda path: replies(path, lambda t: with_value(t, None)), (FILE, "row 7", "'reply'", "is null")),
    "integers": (lambda path: replies(path, lambda t: pa.array(range(len(t)))), (FILE, "'reply'", "holds int64")),
    "no messages": (without_messages, (FILE, "no column 'message'")),
    "invalid UTF-8": (
        lambda path: replies(path, lambda t: with_value(t, b"caf\xe9")),
        (FILE, "row 7", "'reply'", "not valid UTF-8"),
    ),
    "a reply of 50 MB": (
        lambda path: replies(path, lambda t: with_value(t, b"x" * 50_000_000)),
        (FILE, "row 7", "'reply'", "50,000,000 bytes"),
    ),
    "a deep report": (
        lambda path: (path / "report.json").write_text("[" * 100_000 + "]" * 100_000),
        ("report.json", "recursion limit"),
    ),
}
VERBS: dict[str, list[str]] = cases(__file__, "VERBS")
CASES = [
    *(("stats", damage) for damage in DAMAGE),
    *((verb, damage) for verb in VERBS if verb != "stats" for damage in ("null", "no messages", "a deep report")),
]


@pytest.mark.parametrize(("verb", "damage"), CASES)
def test_every_verb_refuses_a_damaged_folder(
    folder: Path, tmp_path: Path, damage: str, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    harm, words = DAMAGE[damage]
    harm(folder)
    places = {"DATA": str(folder), "OUT": str(tmp_path / "out")}
    assert main([places.get(word, word) for word in VERBS[verb]]) == 2
    sentence = capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()
    if verb != "publish":  # which compares the files with report.json first
        assert [word for word in words if word not in sentence] == [], sentence


@pytest.mark.parametrize("damage", DAMAGE)
def test_check_lists_the_damage(folder: Path, damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    DAMAGE[damage][0](folder)
    code = main(["data", "check", str(folder), "--json"])
    told = capsys.readouterr()
    if damage == "a deep report":
        assert (code, "recursion limit" in told.err) == (2, True)
        return
    rules = {(found["rule"], found["where"]) for found in json.loads(told.out)["findings"] if found["level"] == "error"}
    assert code == 1
    wanted = {"schema", "null where a value is needed", "text that cannot be used"}
    assert rules & {(rule, "en/train") for rule in wanted}
