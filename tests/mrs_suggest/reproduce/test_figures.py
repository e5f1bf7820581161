"""Figures of bars, human preference from filled-in sheets, and training curves."""

import csv
import io
import json
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.annotation_files import make_annotation_files, read_key
from mrs_suggest.reproduce.cells import Setup
from mrs_suggest.reproduce.preference import read_sheets
from mrs_suggest.reproduce.report import make_report, write_report
from mrs_suggest.reproduce.runner import run_cells
from mrs_suggest.reproduce.table import only_tables
from mrs_suggest.training.record import draw_curves
from tests.mrs_suggest.reproduce.checked_tables import parse_table
from tests.mrs_suggest.reproduce.conftest import Ready
from tests.mrs_suggest.reproduce.test_claims import with_scores

TABLE = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")


@pytest.fixture
def done(ready: Ready) -> Setup:
    """Return the setup of the figure alone, with its runs finished."""
    setup, _ = ready(text=TABLE)
    table = only_tables(setup.table, [], ["2"])
    assert set(table.cells) == {"good", "poor"}
    setup = Setup(table, setup.output, setup.configs)
    run_cells(setup, ready("good", "poor", text=TABLE)[1], lambda line: None)
    with_scores(setup, ["en"], ["good", "poor"])
    return setup


def sheets_of(setup: Setup, out: Path, words: str) -> Path:
    """Sheets about both rows' suggestions, filled in: w, t or l of `good` for each item, by every annotator."""
    files = [setup.output / "cells" / f"{cell}-42" / "run" / "predictions.en.tsv" for cell in ("poor", "good")]
    make_annotation_files((files[0], files[1]), out, 2, len(words), 1)
    sides = {str(item.item): item.a_side for item in read_key(out).items}  # of A, which is `poor`
    for path in (out / "annotations").glob("*.csv"):
        rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode("utf-8-sig"), newline="")))
        for row in rows:
            a_side, word = sides[row["item"]], words[int(row["item"]) - 1]
            other = "right" if a_side == "left" else "left"
            row["preference"] = {"w": other, "t": "tie", "l": a_side}[word]
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    return out


def test_a_figure_stays_with_tables_that_have_all_of_its_cells() -> None:
    table = parse_table(TABLE)
    assert set(only_tables(table, ["3"]).figures) == {"2"}
    assert set(only_tables(table, ["1"]).figures) == set()
    assert set(only_tables(table, ["1"], ["2"]).cells) == {"good", "poor", "other"}
    with pytest.raises(InputError, match="--figure 3: test has no such figure; expected 2"):
        only_tables(table, [], ["3"])
    wrong = TABLE.replace("{cell: good, scope: en, paper", "{cell: best, scope: en, paper")
    with pytest.raises(InputError, match="tables figure 2, good: unknown cell 'best'"):
        parse_table(wrong)


def test_bars_and_preference(done: Setup, tmp_path: Path) -> None:
    sheets = read_sheets(sheets_of(done, tmp_path / "sheets", "wwwwwtll"))
    assert sheets["judgements"]["win"]["share"] == 0.25, "A is the other row"
    html, page, record, *pictures = write_report(done, {}, sheets)
    text = page.read_text(encoding="utf-8")
    assert "| good | **.7550**ᵃ ± .0071 | **.1000** ± .0000 |" in text
    assert "| _paper_ | .0543 | .0341 |" in text
    assert "The paper prints no numbers." in text
    assert "| good | 0.625 [" in text
    assert "| tie | 0.125 [" in text
    assert "8 items, 2 annotators, Fleiss' kappa 1.00; p = " in text
    assert [path.name for path in pictures] == ["test-figure-2.png"]
    assert "Human preference" in html.read_text(encoding="utf-8")
    people = json.loads(record.read_text(encoding="utf-8"))["people"]["figure 2"]
    assert people["shares"]["poor"][0] == 0.25
    # Sheets about other suggestions are not shown.
    sheets = read_sheets(sheets_of(done, tmp_path / "other", "wt"))
    path = done.output / "cells" / "good-42" / "run" / "predictions.en.tsv"
    path.write_text(path.read_text().replace("yes it is", "yes it was"))
    assert make_report(done, {}, sheets).people == {"figure 2": None}
    assert "their hashes differ" in write_report(done, {}, sheets)[1].read_text(encoding="utf-8")
    assert "figure 2" not in make_report(done, {}).people


def test_curves_of_runs_by_row(done: Setup, tmp_path: Path) -> None:
    log = [{"step": 1, "loss": 3.0}, {"step": 2, "eval_mrr": 0.5, "loss": 2.0}, {"step": 3, "eval_mrr": 0.4}]
    points = draw_curves(log, 2, tmp_path / "curves.png", {"mrr": "MRR"})
    assert points == {"best_step": 2, "loss": [(1, 3.0), (2, 2.0)], "validation": {"MRR": [(2, 0.5), (3, 0.4)]}}
    table = only_tables(parse_table(TABLE), ["3"])
    setup = Setup(table, done.output, done.configs)
    for cell in ("good-42", "good-43"):
        (setup.output / "cells" / cell / "run" / "curves.json").write_text(json.dumps(points))
    (setup.output / "cells" / "poor-42" / "run" / "curves.json").write_text("damaged")
    paths = write_report(setup, {})
    assert [path.name for path in paths[3:]] == ["test-3.png", "test-3-curves.png", "test-figure-2.png"]
    assert "training loss and validation of every run" in paths[1].read_text(encoding="utf-8")
