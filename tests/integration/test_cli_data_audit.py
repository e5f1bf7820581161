"""`mrs data audit`: from a prepared folder to sheets, and from sheets to figures."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.common.io.sheets import restored
from tests.audit_sheets import change, judge, load, sheet_of
from tests.command import Result, refused

pytestmark = pytest.mark.integration

Run = Callable[..., Result]


@pytest.fixture
def run(mrs_here: Run) -> Run:
    """A function that runs `mrs data audit`."""
    return lambda *arguments: mrs_here("data", "audit", *arguments)


@pytest.fixture
def folder(prepared: PreparedData) -> Path:
    """80 English and 80 Japanese pairs, and translated ones, which are not audited."""
    assert prepared.folder is not None
    return prepared.folder


def test_the_paper_s_audit(run: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, said, err = run("make", folder, "--out", out)
    assert (code, err) == (0, "")
    assert "160 pairs (en 80, ja 80); 1 annotator." in said
    assert "fewer than 300 different pairs: all of them are taken" in said
    assert "no toxicity filter" in said
    assert sorted(path.name for path in out.rglob("*.*")) == [
        "annotator-1.csv", "annotator-1.html", "instructions.txt", "key.json",
    ]  # fmt: skip
    texts = {tuple(restored(row[name]) for name in ("language", "message", "reply")) for row in load(sheet_of(out))}
    assert texts == {(c, f"{c} message {n}", f"{c} reply {n % 7}") for c in ("en", "ja") for n in range(80)}
    assert "is not toxic" in (out / "instructions.txt").read_text("utf-8")
    judge(sheet_of(out), lambda *_: "no")
    code, said, err = run("read", out)
    assert (code, err) == (0, "")
    assert re.search(r"toxic\s+│\s+all │\s+160 │\s+160 │\s+0 │\s+0 │\s+0.0 % │\s+0.0 % to 2.3 % │\s+0.0 %", said)
    assert "The paper (section 2.2) found 0 toxic pairs among 300" in said
    assert "| toxic | all | 160 | 160 | 0 | 0 | 0.0 % | 0.0 % to 2.3 % | 0.0 % |" in run("read", out, "--markdown")[1]


def test_a_wide_audit_by_two(run: Run, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="needs statsmodels, of the extra [analysis]")
    out = tmp_path / "out"
    made = run("make", folder, "--out", out, "--kind", "wide", "--examples", 10, "--annotators", 2, "--languages", "ja")
    assert "10 pairs (ja 10); 2 annotators." in made[1]
    questions = ("toxic", "private", "wrong language", "no reply")
    judge(sheet_of(out, 1), lambda row, question: "yes" if question == "wrong language" else "no", questions)
    judge(sheet_of(out, 2), lambda row, question: "no", questions)
    change(sheet_of(out, 2), 0, comment="[bold]odd[/]\x1b[2J", toxic="unsure")
    code, said, err = run("read", out)
    assert (code, err) == (0, "")
    assert "Pairs on which annotators differ (11 of 11)" in said
    assert "annotator 1 yes, annotator 2 no" in said
    assert "Annotator 1: 10 pairs; yes: toxic 0, private 0, wrong language 10, no reply 0; unsure: 0." in said
    assert "Annotator 2: 10 pairs; yes: toxic 0, private 0, wrong language 0, no reply 0; unsure: 1." in said
    assert "\x1b" not in said
    got = json.loads(run("read", out, "--json")[1])
    assert got["comments"][0]["comment"] == "[bold]odd[/]\x1b[2J"
    shares = {row["question"]: row for row in got["shares"]}
    assert (shares["wrong language"]["undecided"], shares["wrong language"]["at_most"]) == (10, 1)
    assert {row["question"]: row["kappa"] for row in got["agreement"]} == {
        "toxic": 0, "private": None, "wrong language": 0, "no reply": None,
    }  # fmt: skip


def test_nothing_is_replaced_unasked(run: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run("make", folder, "--out", out)[0] == 0
    before = sheet_of(out).read_bytes()
    assert "exists already" in refused(run("make", folder, "--out", out, "--seed", 3))
    assert run("make", folder, "--out", out, "--seed", 3, "--overwrite")[0] == 0
    assert sheet_of(out).read_bytes() != before
    change(sheet_of(out), 0, toxic="no")
    assert "annotator-1.csv has been filled in" in refused(run("make", folder, "--out", out, "--overwrite"))
    assert load(sheet_of(out))[0]["toxic"] == "no"
    sheet_of(out).rename(out / "sheets" / "annotator-1 (1).csv")
    assert "annotator-1 (1).csv has been filled in" in refused(run("make", folder, "--out", out, "--overwrite"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("x")
    assert "not look like mrs-suggest output" in refused(run("make", folder, "--out", tmp_path / "home", "--overwrite"))


def test_bad_input(run: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "no such folder" in refused(run("make", tmp_path / "nowhere", "--out", out))
    assert "not a prepared folder" in refused(run("make", tmp_path, "--out", out))
    assert "unknown language 'xx'" in refused(run("make", folder, "--out", out, "--languages", "xx"))
    assert "--languages de: data has en ja." in refused(run("make", folder, "--out", out, "--languages", "en", "de"))
    for option, value in (("--examples", 0), ("--annotators", 0), ("--seed", -1)):
        sentence = refused(run("make", folder, "--out", out, option, value))
        assert f"{option}: expected {value + 1} or more, found {value}." in sentence
    assert not out.exists()
    assert "has no key.json" in refused(run("read", out))
