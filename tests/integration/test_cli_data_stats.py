"""`mrs data stats` beyond the papers' tables, its drawing, `mrs data diversity` and `mrs data list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mrs_datasets.catalogue import catalogued
from mrs_datasets.prepared.prepare import GENERATED, READERS, prepare
from mrs_suggest.cli.main import main

pytestmark = pytest.mark.integration
ROW = {"premise": "äöü", "choice1": "a", "choice2": "bb", "question": "cause", "label": 1, "idx": 0}


@pytest.fixture
def copa(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    rows = [{**ROW, "idx": n, "label": int(n > 0), "premise": "ä" * (n + 1)} for n in range(4)]
    (tmp_path / "src" / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    prepare("xcopa", [str(tmp_path / "src")], tmp_path / "copa")
    return tmp_path / "copa"


def test_lengths_are_counted_in_characters_and_labels_by_name(copa: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "stats", str(copa), "--json"]) == 0
    (text,) = json.loads(capsys.readouterr().out)["texts"]
    assert text == {
        "config": "en",
        "split": "validation",
        "rows": 4,
        "lengths": {"premise": [1, 1, 2, 3, 4], "choice1": [1] * 5, "choice2": [2] * 5},
        "labels": {"label": {"choice1": 1, "choice2": 3}},
    }
    assert main(["data", "stats", str(copa)]) == 0
    assert "choice1 25.0 %, choice2 75.0 %" in capsys.readouterr().out


def test_it_draws_a_png_or_says_why_not(copa: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "stats", str(copa), "--plot", str(tmp_path / "out.png")]) == 0
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    for name in ("none/out.png", "out.doc"):
        assert main(["data", "stats", str(copa), "--plot", str(tmp_path / name)]) == 2
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert name in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copa", "out.png", "src"]


def test_the_indices_of_table_2_and_of_any_sample(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "diversity", "--json"]) == 0
    found = {row["sample"]: (row["family"], round(row["geography"], 2)) for row in json.loads(capsys.readouterr().out)}
    assert found["XCOPA"] == (1, 1.67)
    assert main(["data", "diversity"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "(Table 2)" in printed
    assert "typology is not reproduced" in printed
    assert "0.41" in next(line for line in printed.split("│ ") if "0.41" in line)
    (tmp_path / "uriel.csv").write_text("code,S_SVO,S_SOV\neng,1,0\njpn,0,1\n")
    assert main(["data", "diversity", "en", "ja", "--uriel", str(tmp_path / "uriel.csv"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"sample": None, "languages": ["en", "ja"], "typology": 1.0, "family": 1.0, "geography": 0.0}
    ]
    assert main(["data", "diversity", "en", "xx"]) == 2
    assert main(["data", "diversity", "en", "ru", "--uriel", str(tmp_path / "uriel.csv")]) == 2
    err = capsys.readouterr().err
    assert "'xx'" in err
    assert "ru" in err.splitlines()[1]


def test_the_list_has_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(["mrs", *GENERATED, *READERS]) == catalogued()
    assert main(["data", "list", "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert records["staple"]["restricted"]
    assert records["xcopa"]["languages"]["qu"]["area"] == "South America"
    assert main(["data", "list"]) == 0
    assert "joined-LANG (--views joined)" in capsys.readouterr().out
