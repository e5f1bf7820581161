"""`mrs data stats` beyond the papers' tables, its drawing, `mrs data diversity` and `mrs data list`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.catalogue import catalogued
from mrs_datasets.prepared.prepare import GENERATED, READERS, prepare
from tests.command import Result, refused, shown

pytestmark = pytest.mark.integration
Run = Callable[..., Result]
ROW = {"premise": "äöü", "choice1": "a", "choice2": "bb", "question": "cause", "label": 1, "idx": 0}


@pytest.fixture
def copa(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    rows = [{**ROW, "idx": n, "label": int(n > 0), "premise": "ä" * (n + 1)} for n in range(4)]
    (tmp_path / "src" / "val.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    prepare("xcopa", [str(tmp_path / "src")], tmp_path / "copa")
    return tmp_path / "copa"


def test_lengths_are_counted_in_characters_and_labels_by_name(copa: Path, mrs_here: Run) -> None:
    (text,) = json.loads(shown(mrs_here("data", "stats", copa, "--json")))["texts"]
    assert text == {
        "config": "en",
        "split": "validation",
        "rows": 4,
        "lengths": {"premise": [1, 1, 2, 3, 4], "choice1": [1] * 5, "choice2": [2] * 5},
        "labels": {"label": {"choice1": 1, "choice2": 3}},
    }
    assert "choice1 25.0 %, choice2 75.0 %" in shown(mrs_here("data", "stats", copa))


def test_it_draws_a_png_or_says_why_not(copa: Path, tmp_path: Path, mrs_here: Run) -> None:
    shown(mrs_here("data", "stats", copa, "--plot", tmp_path / "out.png"))
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    for name in ("none/out.png", "out.doc"):
        assert name in refused(mrs_here("data", "stats", copa, "--plot", tmp_path / name))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copa", "out.png", "src"]


def test_the_indices_of_table_2_and_of_any_sample(tmp_path: Path, mrs_here: Run) -> None:
    rows = json.loads(shown(mrs_here("data", "diversity", "--json")))
    found = {row["sample"]: (row["family"], round(row["geography"], 2)) for row in rows}
    assert found["XCOPA"] == (1, 1.67)
    printed = " ".join(shown(mrs_here("data", "diversity")).split())
    assert "(Table 2)" in printed
    assert "close to natural logarithms" in printed
    assert "0.41" in next(line for line in printed.split("│ ") if "0.41" in line)
    (tmp_path / "uriel.csv").write_text("code,S_SVO,S_SOV\neng,1,0\njpn,0,1\n")
    uriel = ("--uriel", tmp_path / "uriel.csv")
    assert json.loads(shown(mrs_here("data", "diversity", "en", "ja", *uriel, "--json"))) == [
        {"sample": None, "languages": ["en", "ja"], "typology": 1.0, "family": 1.0, "geography": 0.0}
    ]
    assert "'xx'" in refused(mrs_here("data", "diversity", "en", "xx"))
    assert "ru" in refused(mrs_here("data", "diversity", "en", "ru", *uriel))


def test_the_list_has_every_record(mrs_here: Run) -> None:
    assert sorted(["mrs", *GENERATED, *READERS]) == catalogued()
    records = json.loads(shown(mrs_here("data", "list", "--json")))
    assert records["staple"]["restricted"]
    assert records["xcopa"]["languages"]["qu"]["area"] == "South America"
    listed = shown(mrs_here("data", "list"))
    assert "joined-LANG (--views joined)" in listed
    told = (
        "mrs-everyday  (ours, for the task of Zhang et al. 2021)\n  licence: apache-2.0 (mrs-everyday), see the card ("
    )
    assert told in listed


def test_a_page_of_a_data_set(copa: Path, mrs_here: Run, tmp_path: Path) -> None:
    page = tmp_path / "view.html"
    assert shown(mrs_here("data", "view", copa, "--out", page, "--rows", 3)) == f"wrote {page}\n"
    text = page.read_text(encoding="utf-8")
    assert "3 random rows of 4 in validation." in text
    assert text.count("<td>bb") == 3
    assert text.count("<script") == 1
    again = tmp_path / "again.html"
    mrs_here("data", "view", copa, "--out", again, "--rows", 3)
    assert again.read_bytes() == page.read_bytes()
    again.write_text("notes")
    told = f"{again} exists already and is not a page of `mrs data view`; choose another file."
    assert told in refused(mrs_here("data", "view", copa, "--out", again))
    assert again.read_text() == "notes"
    assert shown(mrs_here("data", "view", copa, "--out", page, "--rows", 2)) == f"wrote {page}\n", "written again"
    assert "--rows: expected 1 or more, found 0" in refused(mrs_here("data", "view", copa, "--out", page, "--rows", 0))


def test_texts_of_a_page_stay_texts(mrs_here: Run, tmp_path: Path) -> None:
    lines = [f"<script>alert({number})</script>\tit's <b>bold</b>\n" for number in range(60)]
    (tmp_path / "en.tsv").write_text("".join(lines), encoding="utf-8")
    shown(mrs_here("data", "prepare", "mrs", "--source", tmp_path, "--min-reply-count", 1, "--out", tmp_path / "out"))
    shown(mrs_here("data", "view", tmp_path / "out", "--out", tmp_path / "view.html"))
    text = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert(" in text
    assert "it&#x27;s &lt;b&gt;bold&lt;/b&gt;" in text
