"""`mrs data responses`: sets counted from the training replies or taken from a file; the folder stays whole."""

import json
import math
import shutil
from pathlib import Path

import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.add_responses import add_responses
from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases


@pytest.fixture
def bare(official, write_tree, tmp_path: Path) -> Path:
    """A folder from the official layout whose Spanish has no response set."""
    del official["rsp_set/es/response_lm_cluster.txt.gz"]
    official["train/es/a.tsv"] = "Hola\tBuenas\nHey\tBuenas\nAdiós\tChao\n"
    prepare_mrs(str(write_tree(tmp_path / "source", official)), tmp_path / "mrs")
    shutil.rmtree(tmp_path / "source")
    return tmp_path / "mrs"


def test_a_set_is_counted_where_there_is_none(bare: Path, rows, tmp_path: Path, capsys) -> None:
    before = {path: path.read_bytes() for path in bare.rglob("*.parquet")}
    assert main(["data", "responses", str(bare), "--min-reply-count", "1"]) == 0
    assert "es-responses  2" in capsys.readouterr().out
    assert rows(bare, "es-responses", "train") == [
        ("Buenas", 2, pytest.approx(math.log(3 / 5)), "buenas", "organic"),
        ("Chao", 1, pytest.approx(math.log(2 / 5)), "chao", "organic"),
    ]
    report = json.loads((bare / "report.json").read_text(encoding="utf-8"))
    assert [note for note in report["notes"] if note.startswith("es: no rsp_set")] == []
    assert list(report["configs"]) == ["en", "es", "en-responses", "es-responses"]
    assert "es-responses" in (bare / "README.md").read_text(encoding="utf-8")
    assert [f for f in check(open_prepared(str(bare))) if f.level == "error"] == []
    assert before.items() <= {path: path.read_bytes() for path in bare.rglob("*.parquet")}.items()
    assert [path.name for path in tmp_path.iterdir()] == ["mrs"]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Nada\nBuenas\n", [("Buenas", 2, 3 / 6), ("Nada", 0, 1 / 6)]),  # 3 replies, 2 different ones and one unseen
        ("Nada\t7\nBuenas\t1\nChao\t9\n", [("Chao", 9, 10 / 20), ("Nada", 7, 8 / 20)]),
    ],
)
def test_a_set_from_a_file(bare: Path, rows, tmp_path: Path, lines: str, expected) -> None:
    (tmp_path / "set.txt").write_text(lines, encoding="utf-8")
    add_responses(bare, ["es"], file=tmp_path / "set.txt", out=tmp_path / "new", min_reply_count=1, max_responses=2)
    found = [(reply, count, log_prob) for reply, count, log_prob, *_ in rows(tmp_path / "new", "es-responses", "train")]
    assert found == [(reply, count, pytest.approx(math.log(share))) for reply, count, share in expected]
    assert not (bare / "data" / "es-responses").exists()


def test_the_official_file_is_taken_as_it_is(bare: Path, rows, tmp_path: Path) -> None:
    (tmp_path / "response_lm_cluster.txt").write_text("-1.5\tSí\t7\n", encoding="utf-8")
    add_responses(bare, file=tmp_path / "response_lm_cluster.txt")
    assert rows(bare, "es-responses", "train") == [("Sí", None, -1.5, "7", None)]


@pytest.mark.parametrize(
    ("arguments", "content", "sentence"), cases(__file__, "test_bad_input_leaves_the_folder_as_it_was")
)
def test_bad_input_leaves_the_folder_as_it_was(
    bare: Path, tmp_path: Path, monkeypatch, arguments: list[str], content: str, sentence: str
) -> None:
    from mrs_suggest.cli.main import run_verb

    monkeypatch.chdir(tmp_path)
    (tmp_path / "set.txt").write_text(content, encoding="utf-8")
    before = {path: path.read_bytes() if path.is_file() else b"" for path in sorted(tmp_path.rglob("*"))}
    with pytest.raises(InputError, match=sentence):
        run_verb("data", ["responses", "mrs", *arguments])
    assert {path: path.read_bytes() if path.is_file() else b"" for path in sorted(tmp_path.rglob("*"))} == before
