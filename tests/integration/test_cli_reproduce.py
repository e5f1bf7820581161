"""`mrs reproduce`, with the real trainer and tiny models."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import cases
from tests.command import Result, refused, shown
from tests.conftest import Mrs

pytestmark = pytest.mark.integration

Run = Callable[..., Result]


@pytest.fixture
def here(mrs_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs `mrs reproduce` in this process and an empty folder."""
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: mrs_here("reproduce", *arguments)


def test_a_student_and_its_teacher_in_one_command(mrs: Mrs, here: Run, tmp_path: Path) -> None:
    words = ("retrieval", "--scale", "tiny", "--only", "student", "--output", "out")
    done = mrs("reproduce", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "| student, three for three | ." in done.stdout
    assert "[2/2] student/42: finished in" in done.stderr
    record = json.loads((tmp_path / "out" / "tiny" / "retrieval.json").read_text(encoding="utf-8"))
    assert set(record["runs"]) == {"sample/42", "student/42"}
    own = [one for one in record["figures"] if one["row"] == "student, three for three"]
    assert record["not_run"].keys() >= {"sample/43", "coffee/42"}
    assert set(record["not_run"].values()) == {"not chosen by --only"}, "whether their data are given or not"
    assert {one["metric"]: bool(one["values"]) for one in own} == {"weighted": True, "mrr": True, "self_rouge": True}
    page = tmp_path / "out" / "tiny" / "retrieval.html"
    written = page.read_bytes()
    code, printed, said = here(*words, "--page")
    assert code == 0
    assert "starts" not in said
    assert "| student, three for three | ." in printed
    assert page.read_bytes() == written
    curves = json.loads((tmp_path / "out" / "tiny" / "cells" / "student-42" / "run" / "curves.json").read_text("utf-8"))
    assert curves["loss"] or curves["validation"]
    listed = shown(here(*words, "--dry-run"))
    assert listed.count("(finished)  4 steps, of commit ") == 2
    assert listed.endswith("2 cells: 2 finished, 0 cannot run, 0 to run\n")
    assert "mrs train retrieval --config out/tiny/cells/student-42/tiny.yaml" in listed


def test_what_each_table_needs_is_listed(here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    full = shown(here("all"))
    assert "  table 3: 21 cells: 0 can run here, 21 need a GPU, 21 lack mrs\n" in full
    assert ", 21 lack mrs, 21 lack build/unicoder\n" in full
    assert full.count("\n  mrs: pass --data mrs=FOLDER (from its authors") == 1, "each reason once"
    assert "\n  xcopa 5, xcopa 8: USE has no checkpoint" in full
    tables = ("families", "forgetting", "mrs", "retrieval", "staple", "xcopa", "xglue")
    assert all(f"\n{name}: " in f"\n{full}" for name in tables)
    tiny = shown(here("all", "--scale", "tiny"))
    assert "  table 3: 21 cells: 21 can run here\n" in tiny, "its data are generated"
    refusals = {
        "--scale huge": "--scale huge: no table has such a scale; expected one of full, tiny, ",
        "--only student": "--table, --figure, --only and --checkpoint: name one table instead of `all`.",
        "--data chats=x": "--data chats: no table has such data.",
    }
    for words, sentence in refusals.items():
        assert sentence in refused(here("all", *words.split()))
    assert not list(tmp_path.iterdir())
    (tmp_path / "en.tsv").write_text("hi\tyes\n", encoding="utf-8")
    given = shown(here("all", "--scale", "small", "--data", "mrs=."))
    assert "  table 3: 60 cells: 60 can run here\n" in given
    assert "  table 4: 60 cells: 0 can run here, 60 cannot run (the scale small has only cells of retrieval)\n" in given
    timed = shown(here("mrs", "--table", "1", "3", "--data", "mrs=.", "--estimate"))
    assert timed == "  not timed: 1 cell, train no model\n  not timed: 21 cells, need a GPU\n"
    assert [path.name for path in tmp_path.iterdir()] == ["en.tsv"], "data are not prepared for cells that cannot run"


@pytest.mark.parametrize(("words", "sentence"), cases(__file__, "test_what_cannot_be_is_one_sentence"))
def test_what_cannot_be_is_one_sentence(here: Run, tmp_path: Path, words: list[str], sentence: str) -> None:
    assert sentence in refused(here("retrieval", "--dry-run", *words))
    assert list(tmp_path.iterdir()) == []
