"""From data to sheets and back: texts survive, faults are named, figures are those of the answers."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.audit.files import CUT, MOST_CHARACTERS, Key, make_audit, read_key
from mrs_datasets.audit.questions import ANSWERS, KINDS
from mrs_datasets.audit.reading import read_judgements, summarize
from mrs_metrics.accuracy import weighted_wilson_interval, wilson_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import read_sheet, restored
from tests.audit_sheets import InMemory, change, in_memory, judge, load, numbered, page_of, save, sheet_of
from tests.cases import cases

PAPER, WIDE = KINDS["paper"], KINDS["wide"]
QUESTIONS = [question.name for question in WIDE.questions]
TEXTS = st.text(max_size=40) | st.text("=+-@'\t\r\n\",;<>&/ 1a\x00\u2028\u202e", max_size=12)
PAIRS = st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8, unique=True)


@pytest.fixture
def data() -> InMemory:
    return in_memory(
        {
            ("en", "train"): numbered("en", 80),
            ("en", "test"): numbered("en test", 10),
            ("ja", "train"): numbered("ja", 10),
        }
    )


def figures(folder: Path, partial: bool = False) -> dict[str, Any]:
    key = read_key(folder)
    return summarize(key, read_judgements(folder, key, partial))


def refusal(folder: Path, partial: bool = False) -> str:
    with pytest.raises(InputError) as caught:
        figures(folder, partial)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@settings(max_examples=25)
@given(pairs=PAIRS, seed=st.integers(0, 9))
def test_arbitrary_texts_come_back(tmp_path_factory: pytest.TempPathFactory, pairs: Any, seed: int) -> None:
    out = tmp_path_factory.mktemp("audit") / "out"
    key = make_audit(in_memory({("en", "train"): pairs}), out, PAPER, seed=seed)
    rows = [row for _, row in read_sheet(sheet_of(out), PAPER.columns)]
    assert {(restored(row["message"]), restored(row["reply"])) for row in rows} == set(pairs)
    given = {item.item: ANSWERS[item.row % 3] for item in key.items}
    judge(sheet_of(out), lambda row, _: given[int(row["item"])])
    (judged,) = read_judgements(out, read_key(out))
    assert judged.answers == {item: {"toxic": answer} for item, answer in given.items()}
    held = re.search(r'<script type="application/json" id="data">(.*?)</script>', page_of(out).read_text("utf-8"))
    assert held is not None
    assert json.loads(held[1])["items"] == [
        {"item": int(row["item"]), **{name: row[name] for name in ("language", "message", "reply")}} for row in rows
    ]


def test_a_text_that_no_cell_holds_is_cut(tmp_path: Path) -> None:
    data = in_memory({("en", "train"): [("x" * 200_000, "y" * MOST_CHARACTERS)]})
    key = make_audit(data, tmp_path / "out", PAPER)
    (row,) = load(sheet_of(tmp_path / "out"))
    assert key.cut == 1
    assert row["message"] == "x" * MOST_CHARACTERS + CUT
    assert row["reply"] == "y" * MOST_CHARACTERS
    judge(sheet_of(tmp_path / "out"), lambda *_: "no")
    assert figures(tmp_path / "out")["shares"][0]["no"] == 1


def test_the_page_runs_nothing_but_its_own_script(tmp_path: Path) -> None:
    hostile = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>"
    data = in_memory({("en", "train"): [(hostile, hostile)]}, name=hostile)
    make_audit(data, tmp_path / "out", WIDE)
    text = page_of(tmp_path / "out").read_text("utf-8")
    assert hostile not in text
    assert "<img" not in text
    assert text.count("<script") == 2
    policy = re.search(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src &#x27;none&#x27;;")
    assert not re.search(r"https?://|src\s*=\s*[\"']|@import|\burl\(", text)


def answered(data: InMemory, out: Path, annotators: int = 1) -> Key:
    """An audit of 20 English and all 10 Japanese pairs, where every tenth row of the data is toxic."""
    key = make_audit(data, out, WIDE, examples=20, annotators=annotators)
    rows = {item.item: item.row for item in key.items}
    for annotator in range(1, annotators + 1):
        path = sheet_of(out, annotator)
        judge(path, lambda row, q: "yes" if q == "toxic" and rows[int(row["item"])] % 10 == 0 else "no", QUESTIONS)
    return key


def test_shares_are_those_of_the_answers(data: InMemory, tmp_path: Path) -> None:
    key = answered(data, tmp_path / "out")
    found = figures(tmp_path / "out")
    toxic = {row["language"]: row for row in found["shares"] if row["question"] == "toxic"}
    yes = {code: sum(i.row % 10 == 0 for i in key.items if i.language == code) for code in ("en", "ja")}
    assert yes["ja"] == 1
    for code, n in (("en", 20), ("ja", 10)):
        assert (toxic[code]["yes"], toxic[code]["judged"], toxic[code]["share"]) == (yes[code], n, yes[code] / n)
        assert toxic[code]["interval"] == list(wilson_interval(yes[code], n))
    assert toxic["all"]["share"] == pytest.approx(0.9 * yes["en"] / 20 + 0.1 * 1 / 10)
    expected = weighted_wilson_interval([yes["en"], 1], [20, 10], [0.9, 0.1])
    assert toxic["all"]["interval"] == pytest.approx(list(expected))
    assert found["agreement"] == found["differences"] == []
    assert found["paper"]["interval"][1] == pytest.approx(0.0126, abs=1e-4)


def test_agreement_majority_and_differences(data: InMemory, tmp_path: Path) -> None:
    pytest.importorskip("statsmodels", reason="needs statsmodels, of the extra [analysis]")
    out = tmp_path / "out"
    key = answered(data, out, annotators=3)
    first = key.items[0].item
    for annotator, answer in ((1, "yes"), (2, "unsure"), (3, "no")):
        rows = load(sheet_of(out, annotator))
        next(row for row in rows if row["item"] == str(first))["private"] = answer
        save(sheet_of(out, annotator), rows)
    found = figures(out)
    private = next(row for row in found["agreement"] if row["question"] == "private")
    assert private["same"] == pytest.approx(1 - 3 / 90)
    assert (private["judged_by_two"], private["judged_by_all"]) == (30, 30)
    assert next(row for row in found["agreement"] if row["question"] == "toxic")["kappa"] == pytest.approx(1)
    assert next(row for row in found["agreement"] if row["question"] == "no reply")["kappa"] is None
    (difference,) = found["differences"]
    assert (difference["item"], difference["question"]) == (first, "private")
    assert difference["answers"] == {"1": "yes", "2": "unsure", "3": "no"}
    row = next(row for row in found["shares"] if (row["question"], row["language"]) == ("private", "en"))
    assert (row["yes"], row["undecided"], row["share"], row["at_most"]) == (0, 1, 0, 1 / 20)
    assert "kappa:fleiss" in found["signature"]


@settings(max_examples=30)
@given(
    place=st.floats(0, 1), length=st.integers(0, 30), other=st.binary(max_size=12) | st.text(max_size=6).map(str.encode)
)
def test_a_damaged_sheet_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, place: float, length: int, other: bytes
) -> None:
    out = tmp_path_factory.mktemp("audit") / "out"
    make_audit(in_memory({("en", "train"): [("=1", "a\n,b"), ("'x", '"')]}), out, PAPER)
    judge(sheet_of(out), lambda *_: "no")
    whole = sheet_of(out).read_bytes()
    start = round(place * len(whole))
    sheet_of(out).write_bytes(whole[:start] + other + whole[start + length :])
    try:
        (judged,) = read_judgements(out, read_key(out))
    except InputError:
        return
    assert set(judged.answers) == {1, 2}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        *cases(__file__, "test_bad_rows_are_named"),
        ({"item": "9" * 5000}, "row 5: the column 'item' has '9999"),
        ({"sheet": f"audit 00000000, annotator {'9' * 5000}"}, "row 5: the column 'sheet' has 'audit 0000"),
    ],
)
def test_bad_rows_are_named(data: InMemory, tmp_path: Path, cells: dict[str, str], expected: str) -> None:
    answered(data, tmp_path / "out")
    change(sheet_of(tmp_path / "out"), 3, **cells)
    assert expected in refusal(tmp_path / "out")


def test_rows_removed_added_and_doubled(data: InMemory, tmp_path: Path) -> None:
    answered(data, tmp_path / "out")
    path = sheet_of(tmp_path / "out")
    rows = load(path)
    save(path, rows[2:])
    assert re.search(
        r"annotator-1.csv: item \d+ is missing \(and 1 more\); restore the rows", refusal(tmp_path / "out")
    )
    save(path, [*rows, rows[4]])
    assert f"row 32: item {rows[4]['item']} appears twice" in refusal(tmp_path / "out")
    save(path, [*rows, {**rows[4], "item": "31"}])
    assert "row 32: the column 'item' has '31'" in refusal(tmp_path / "out")
    save(path, [{name: cell for name, cell in row.items() if name != "private"} for row in rows])
    assert "row 1: expected the columns item, language, message, reply, toxic" in refusal(tmp_path / "out")


def test_sheets_missing_untouched_and_doubled(data: InMemory, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answered(data, out, annotators=2)
    judged = sheet_of(out, 2).read_bytes()
    copy = out / "sheets" / "annotator-2 (1).csv"
    copy.write_bytes(judged)
    assert "annotator-2 (1).csv and annotator-2.csv are both sheets of annotator 2; keep one" in refusal(out)
    judge(sheet_of(out, 2), lambda *_: "", QUESTIONS)
    pytest.importorskip("statsmodels", reason="needs statsmodels, of the extra [analysis]")
    assert figures(out)["annotators"] == 2, "the untouched one is left out beside it"
    copy.unlink()
    assert "annotator-2.csv has no answers; complete it, or pass --partial" in refusal(out)
    assert (figures(out, partial=True)["annotators"], figures(out, partial=True)["annotators_missing"]) == (1, 1)
    sheet_of(out, 2).unlink()
    assert "annotator-2.csv is missing; put the completed sheet there, or pass --partial" in refusal(out)
    assert figures(out, partial=True)["annotators_missing"] == 1
    sheet_of(out, 1).unlink()
    assert "has no sheet with answers" in refusal(out, partial=True)


def test_some_answers(data: InMemory, tmp_path: Path) -> None:
    """Somebody who reads no Japanese leaves it out."""
    answered(data, tmp_path / "out")
    judge(sheet_of(tmp_path / "out"), lambda row, q: "" if row["language"] == "ja" else row[q], QUESTIONS)
    assert "(and 39 more)" in refusal(tmp_path / "out")
    rows = [row for row in figures(tmp_path / "out", partial=True)["shares"] if row["question"] == "private"]
    assert [(row["language"], row["judged"], row["share"]) for row in rows] == [
        ("en", 20, 0), ("ja", 0, None), ("all", 20, 0),
    ]  # fmt: skip
    assert rows[2]["interval"] == pytest.approx(rows[0]["interval"])
