"""`mrs annotate`: from two prediction files to annotation files, and from annotations to figures."""

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binomtest

from mrs_suggest.common.io.sheets import restored
from mrs_suggest.evaluation.annotation_files import COLUMNS
from tests.cases import cases
from tests.command import Result, refused

pytestmark = pytest.mark.integration

Rows = list[dict[str, str]]
LINES = 12


@pytest.fixture
def run(mrs_here: Callable[..., Result]) -> Callable[..., Result]:
    """A function that runs `mrs annotate`."""
    return lambda *arguments: mrs_here("annotate", *arguments)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Predictions of A and B for `LINES` messages; the texts name the system."""
    return (
        predictions(tmp_path / "a.tsv", [(f"message {i}", f"a{i} one", f"a{i} two", "=A3") for i in range(LINES)]),
        predictions(tmp_path / "b.tsv", [(f"message {i}", f"b{i} one", f"b{i} two", "+B3") for i in range(LINES)]),
    )


@pytest.fixture
def made(run: Callable[..., Result], files: tuple[Path, Path], tmp_path: Path) -> Path:
    """A folder of three annotation files."""
    code, _, err = run("make", *files, "--out", tmp_path / "round")
    assert (code, err) == (0, "")
    return tmp_path / "round"


def predictions(path: Path, rows: list[tuple[str, ...]]) -> Path:
    path.write_text("".join("\t".join([m, "reference", *s]) + "\n" for m, *s in rows), encoding="utf-8")
    return path


def load(path: Path) -> Rows:
    return list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))


def save(path: Path, rows: Rows, encoding: str = "utf-8-sig", columns: tuple[str, ...] = COLUMNS, **form: Any) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, **form)
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(text.getvalue().encode(encoding))


def file_of(folder: Path, annotator: int) -> Path:
    return folder / "annotations" / f"annotator-{annotator}.csv"


def side_of_a(row: dict[str, str]) -> str:
    """Found in the texts, not in the key."""
    return "left" if re.search(r"\ba\d+ one", row["suggestions left"]) else "right"


def annotate(folder: Path, number: int, verdicts: list[str]) -> None:
    """Fill in one file: A, B or a tie of each message."""
    rows = load(file_of(folder, number))
    for row in rows:
        a = side_of_a(row)
        chosen = verdicts[int(row["message"].split()[-1])]
        row["preference"] = {"A": a, "B": "right" if a == "left" else "left"}.get(chosen, "tie")
    save(file_of(folder, number), rows)


def annotate_all(folder: Path) -> None:
    """A wins 6 items by 3:0, 2 by 2:1; one item each: B 3:0, B 2 and a tie, all ties, one of each."""
    verdicts = ["AAA"] * 6 + ["AAB", "BAA", "BBB", "BtB", "ttt", "ABt"]
    for number in range(3):
        annotate(folder, number + 1, [verdict[number] for verdict in verdicts])


def figures(run: Callable[..., Result], folder: Path, *options: object) -> dict[str, Any]:
    pytest.importorskip("statsmodels", reason="needs statsmodels, of the extra [analysis]")
    code, out, err = run("read", folder, "--json", *options)
    assert (code, err) == (0, "")
    return json.loads(out)


# --- mrs annotate make


def test_annotation_files_are_blind_and_whole(made: Path) -> None:
    assert sorted(p.name for p in made.iterdir()) == ["annotations", "key.json"]
    assert len(list((made / "annotations").iterdir())) == 4  # three files and the instructions
    orders, sides = [], []
    for number in (1, 2, 3):
        assert file_of(made, number).read_bytes().startswith(b"\xef\xbb\xbfitem,message,suggestions left,")
        rows = load(file_of(made, number))
        orders.append([row["item"] for row in rows])
        sides.append({row["item"]: side_of_a(row) for row in rows})
        for row in rows:
            i = row["message"].split()[-1]
            shown = sorted([row["suggestions left"], row["suggestions right"]])
            assert shown == [f"• a{i} one\n• a{i} two\n• =A3", f"• b{i} one\n• b{i} two\n• +B3"]
            assert row["preference"] == ""
    assert sorted(orders[0], key=int) == [str(i + 1) for i in range(LINES)]
    assert orders[0] != orders[1] != orders[2] != orders[0]
    assert sides[0] == sides[1] == sides[2]
    assert list(sides[0].values()).count("left") == LINES // 2
    text = "".join(path.read_text("utf-8-sig") for path in (made / "annotations").iterdir())
    assert not re.search(r"a\.tsv|b\.tsv|\breference|seed", text)


def test_different_files_are_refused(run: Callable[..., Result], files: tuple[Path, Path], tmp_path: Path) -> None:
    a, b = files
    out = tmp_path / "out"
    other = predictions(tmp_path / "other.tsv", [("elsewhere", "x")] * LINES)
    assert "example 1: the messages differ" in (sentence := refused(run("make", a, other, "--out", out)))
    assert "no message is in both files" in sentence
    lines = b.read_text().splitlines(keepends=True)
    moved = tmp_path / "moved.tsv"
    moved.write_text("".join([*lines[:3], lines[4], lines[3], *lines[5:]]))
    assert "example 4: the messages differ" in (sentence := refused(run("make", a, moved, "--out", out)))
    assert f"{LINES} messages are in both files" in sentence
    moved.write_text("".join(lines[:5]))
    assert f"{LINES} lines" in (sentence := refused(run("make", a, moved, "--out", out)))
    assert "has 5" in sentence
    assert "cannot read" in refused(run("make", a, tmp_path / "nowhere.tsv", "--out", out))
    assert "--examples 13" in refused(run("make", a, b, "--out", out, "--examples", 13))
    for option in ("--examples", "--annotators"):
        assert f"{option}: expected 1 or more, found 0." in refused(run("make", a, b, "--out", out, option, 0))
    assert "--seed: expected 0 or more, found -1." in refused(run("make", a, b, "--out", out, "--seed", -1))
    assert not out.exists()


def test_nothing_is_replaced_unasked(
    run: Callable[..., Result], files: tuple[Path, Path], made: Path, tmp_path: Path
) -> None:
    before = file_of(made, 1).read_bytes()
    assert "exists already" in refused(run("make", *files, "--out", made, "--seed", 3))
    assert file_of(made, 1).read_bytes() == before
    assert run("make", *files, "--out", made, "--seed", 3, "--overwrite")[0] == 0
    assert file_of(made, 1).read_bytes() != before
    # what an annotator wrote is not lost, nor a folder that was not made here
    annotate(made, 2, ["A"] * LINES)
    assert "filled in" in refused(run("make", *files, "--out", made, "--overwrite"))
    assert load(file_of(made, 2))[0]["preference"]
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("x")
    assert "not look like mrs-suggest output" in refused(run("make", *files, "--out", tmp_path / "home", "--overwrite"))


# --- mrs annotate read


def test_figures_by_hand(run: Callable[..., Result], made: Path, files: tuple[Path, Path]) -> None:
    annotate_all(made)
    got = figures(run, made)
    assert (got["system_a"], got["system_b"]) == tuple(map(str, files))
    assert (got["items"], got["annotators"], got["no_majority"], got["same_suggestions"]) == (12, 3, 1, 0)
    # A: 18 + 4 + 1 judgements of 36, B: 2 + 3 + 2 + 1
    assert {k: v["share"] for k, v in got["judgements"].items()} == pytest.approx(
        {"win": 23 / 36, "tie": 5 / 36, "loss": 8 / 36}
    )
    assert {k: v["share"] for k, v in got["majority"].items()} == pytest.approx(
        {"win": 8 / 12, "tie": 2 / 12, "loss": 2 / 12}
    )
    for kind in ("judgements", "majority"):
        for outcome in got[kind].values():
            assert outcome["interval"][0] < outcome["share"] < outcome["interval"][1]
    # Net preferences times 3: six 3, two 1, -3, -2, 0, 0, sum 15; p is the share of the 2**10 swaps that reach it
    values = [3] * 6 + [1, 1, -3, -2]
    sums = [0]
    for value in values:
        sums = [total + sign * value for total in sums for sign in (1, -1)]
    assert got["p"] == sum(abs(total) >= 15 for total in sums) / 1024
    # Fleiss 1971: mean agreement P of the items' pairs, against the squared shares
    agreement = (8 * 1 + 3 * (1 / 3) + 0) / 12
    chance = (23**2 + 5**2 + 8**2) / 36**2
    assert got["kappa"] == pytest.approx((agreement - chance) / (1 - chance))
    # Krippendorff 2011 counts agreement alike; by chance, pairs of different judgements of all 36
    assert got["alpha"]["nominal"] == pytest.approx(1 - (1 - agreement) / ((36 - 36 * chance) / 35))
    assert got["alpha"]["ordinal"] == pytest.approx(0.5823, abs=1e-4)
    assert "annotators:3|items:12|" in got["signature"]
    expected = binomtest(8, 12).proportion_ci(method="exact")
    assert got["majority"]["win"]["interval"] == pytest.approx([expected.low, expected.high])
    shares = [(row["file"], row["win"], row["tie"], row["loss"]) for row in got["by_annotator"]]
    assert shares[0] == ("annotator-1.csv", 8 / 12, 1 / 12, 3 / 12)


def test_what_spreadsheet_programs_do_to_a_file(run: Callable[..., Result], made: Path) -> None:
    annotate_all(made)
    expected = figures(run, made)
    # semicolons, no mark, sorted rows, other line ends in cells, swallowed apostrophes, words in capitals, empty rows
    rows = sorted(load(file_of(made, 1)), key=lambda row: int(row["item"]))
    for row in rows:
        row["preference"] = f" {row['preference'].upper()}"
        row["message"] = restored(row["message"])
        row["suggestions left"] = row["suggestions left"].replace("\n", "\r\n")
    save(file_of(made, 1), [*rows, dict.fromkeys(COLUMNS, "")], "utf-8", delimiter=";", lineterminator="\n")
    # tabs, columns moved, one more
    rows = [{**row, "remark": "hm"} for row in load(file_of(made, 2))]
    save(file_of(made, 2), rows, columns=("preference", "remark", *COLUMNS[:4]), delimiter="\t")
    assert figures(run, made) == expected


def change(folder: Path, column: str, value: str, row: int = 0) -> None:
    rows = load(file_of(folder, 2))
    rows[row][column] = value
    save(file_of(folder, 2), rows)


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        *cases(__file__, "test_bad_rows_name_file_and_row"),
        pytest.param("item", "9" * 5000, "row 5: the column 'item' has '9999", id="long number"),
    ],
)
def test_bad_rows_name_file_and_row(
    run: Callable[..., Result], made: Path, column: str, value: str, expected: str
) -> None:
    annotate_all(made)
    change(made, column, value, row=3)
    assert f"{file_of(made, 2)}, {expected}" in refused(run("read", made))


def test_sides_exchanged_and_missing_or_double_rows_are_refused(run: Callable[..., Result], made: Path) -> None:
    annotate_all(made)
    rows = load(file_of(made, 3))
    for row in rows:
        row["suggestions left"], row["suggestions right"] = row["suggestions right"], row["suggestions left"]
    save(file_of(made, 3), rows)
    assert "was altered" in refused(run("read", made))
    annotate_all(made)
    rows = load(file_of(made, 2))
    save(file_of(made, 2), rows[2:])
    assert re.search(r"annotator-2.csv: item \d+ is missing \(and 1 more\)", refused(run("read", made)))
    save(file_of(made, 2), [*rows, rows[4]])
    assert f"row {LINES + 2}: item {rows[4]['item']} appears twice" in refused(run("read", made))


def test_fewer_annotators(run: Callable[..., Result], made: Path) -> None:
    annotate_all(made)
    whole = figures(run, made)
    last = file_of(made, 3).read_bytes()
    file_of(made, 3).unlink()
    assert f"{file_of(made, 3)} is missing: 2 of 3 annotators" in refused(run("read", made))
    got = figures(run, made, "--partial")
    assert (got["annotators"], got["annotators_missing"]) == (2, 1)
    assert got["by_annotator"] == whole["by_annotator"][:2]
    # of two annotators, both must agree: 7 items on A, 1 on B, 1 on a tie; 3 without a majority
    assert [got["majority"][outcome]["share"] * LINES for outcome in ("win", "tie", "loss")] == pytest.approx([7, 4, 1])
    assert got["no_majority"] == 3
    file_of(made, 2).unlink()
    alone = figures(run, made, "--partial")
    assert (alone["annotators"], alone["kappa"]) == (1, None)
    assert "left out" in run("read", made, "--partial")[1]
    file_of(made, 1).unlink()
    assert "no file with judgements" in refused(run("read", made, "--partial"))
    file_of(made, 1).write_bytes(
        last
    )  # one annotator's answers under another's name cannot be told apart, but twice can
    file_of(made, 3).write_bytes(last)
    assert f"{file_of(made, 3)} is a copy of annotator-1.csv" in refused(run("read", made, "--partial"))


def test_what_is_no_annotation_file(run: Callable[..., Result], made: Path) -> None:
    annotate_all(made)
    good = file_of(made, 1).read_bytes()
    file_of(made, 1).write_bytes("item,préférence\n".encode("latin-1"))
    assert "not UTF-8 text" in refused(run("read", made))
    for content in (b"", b"a,b\n1,2\n", b"\x00"):
        file_of(made, 1).write_bytes(content)
        assert "annotator-1.csv" in refused(run("read", made))
    file_of(made, 1).write_bytes(good + b'"' + b"x" * 200_000)
    assert "annotator-1.csv" in refused(run("read", made))
    file_of(made, 1).write_bytes(good)
    (made / "annotations" / "annotator-1 (1).csv").write_bytes(good)
    assert "annotator-1 (1).csv: not an annotation file made here" in refused(run("read", made))
