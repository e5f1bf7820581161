"""The figures of a table: means and ranges over seeds, paired intervals, and why a field is empty."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mrs_metrics.significance import paired_bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.choice.analysis import average
from mrs_suggest.evaluation.choice.answers import read_run_answers
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.reproduce.report import printed_tables, write_report
from mrs_suggest.reproduce.results import Results
from mrs_suggest.reproduce.runner import prepare_data, run_cells
from tests.mrs_suggest.reproduce.conftest import TABLE, Ready


def reported(ready: Ready, *only: str, **changes: object) -> tuple[str, dict[str, list[dict[str, object]]], Path]:
    setup, cells = ready(*only, **changes)  # type: ignore[arg-type]
    paths = write_report(setup, run_cells(setup, cells, lambda line: None))
    assert [path.suffix for path in paths[:3]] == [".html", ".md", ".json"]
    assert {path.suffix for path in paths[3:]} == {".png"}
    assert paths[3].read_bytes().startswith(b"\x89PNG")
    return paths[1].read_text(encoding="utf-8"), json.loads(paths[2].read_text(encoding="utf-8")), paths[0]


def test_means_ranges_intervals_and_leads(ready: Ready, capsys: pytest.CaptureFixture[str]) -> None:
    page, record, _ = reported(ready, "teacher", "student")
    assert page.partition("\n## Runs")[0] in capsys.readouterr().out
    assert "3 of 6 runs, scale full, of commit c0ffee." in page
    assert "| TF-IDF | .1250 | .2500 |" in page
    assert "| teacher | .2550 ± .0071 | .5000 ± .0000 |" in page
    assert "| student | .2500 [.1500, .3500] | .5000 |" in page
    teacher = next(one for one in record["figures"] if (one["row"], one["metric"]) == ("teacher", "weighted"))
    assert teacher["values"] == {"42": 0.25, "43": 0.26}
    assert teacher["mean"] == pytest.approx(0.255)
    assert teacher["deviation"] == pytest.approx(0.01 / 2**0.5)
    assert "Mean ± standard deviation over 2 seeds. In brackets: the 95 % interval of a single seed." in page
    # Leads come from the run, or from the suggestions of two.
    within, between, over_a_baseline, unknown = record["leads"]
    assert within["intervals"] == {
        "weighted": {"42": [0.01, 0.03], "43": [0.01, 0.03]},
        "mrr": {"42": [-0.1, 0.1], "43": [-0.1, 0.1]},
    }
    assert over_a_baseline["intervals"] == {key: {"42": value["42"]} for key, value in within["intervals"].items()}
    assert unknown["intervals"] == {}
    assert (
        "| teacher | TF-IDF |  | [+0.0100, +0.0300]; [+0.0100, +0.0300] | [-0.1000, +0.1000]; [-0.1000, +0.1000] |"
        in page
    )
    assert record["printed"]["main"]["leads"].count("\n| ") == 4, "rule, and a row for each lead that has an interval"
    assert "leads" not in record["printed"]["by language"]
    # The student's first reply is right, the teacher's is not; the second one is wrong twice. Equal texts of three
    # words reach 1/6 + 1/3 + 1/2.
    expected = paired_bootstrap_interval([1.0, 0.0], [0.0, 0.0], seed=42)
    assert between["intervals"]["weighted"]["42"] == pytest.approx(list(expected), abs=1e-6)
    assert set(between["intervals"]) == {"weighted"}


@pytest.mark.parametrize(
    ("trainer", "unit"), [("retrieval", "message"), ("understanding", "example"), ("multiple_choice", "question")]
)
def test_the_unit_is_what_the_trainers_intervals_resample(ready: Ready, trainer: str, unit: str) -> None:
    setup, _ = ready(text=TABLE.replace("trainer: retrieval", f"trainer: {trainer}", 1))
    assert Results(setup, {}, {}).unit == unit


def test_what_is_missing_has_its_reason(ready: Ready) -> None:
    page, record, _ = reported(ready, "student")
    assert "| chats |  |  |" in page
    assert "- empty: chats/42: no data: pass --data chats=FOLDER, with en.tsv (pairs of a test)" in page
    assert "- empty: teacher/43: missing" in page
    assert "- empty: the runs store only suggestions of their 'Model'" in page
    assert "- empty: teacher/42: its run has no Model for fr" in page
    assert "| teacher | .2500 [.1500, .3500] |  |" in page, "by language: en, fr"
    assert "| nothing |  |  |" in page
    assert record["not_run"]["chats/42"].startswith("no data")
    quoted = record["printed"]["by language"]["weighted"]
    assert quoted.startswith("|  | en |\n"), "without the column that has no run"
    assert "nothing" not in quoted, "nor a row that has none"
    assert record["printed"]["percent"]["accuracy"].startswith("|  | ht | both | all |"), "no run at all: as it is"


def test_a_record_older_than_its_table_is_named(ready: Ready) -> None:
    setup, _ = ready("teacher")
    grid = replace(setup.table.tables["main"], compared=[["teacher", "student"]])
    table = replace(setup.table, tables={**setup.table.tables, "main": grid})
    _, record, _ = reported(ready, "teacher")
    record["figures"] = [one for one in record["figures"] if one["row"] != "student"]
    with pytest.raises(InputError, match=r"test at scale full: .* newer row 'student' of table main; .*--page`\.$"):
        printed_tables(record, table)


def test_another_test_split_is_not_compared(ready: Ready) -> None:
    setup, cells = ready("student")
    run_cells(setup, cells, lambda line: None)
    path = setup.output / "cells" / "student-42" / "run" / "predictions.en.tsv"
    path.write_text(path.read_text().replace("bye", "goodbye"))
    assert "student/42 and teacher/42 were not tested on the same examples" in write_report(setup, {})[1].read_text()


def test_figures_in_percent_stand_above_the_papers(ready: Ready, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "T.txt").write_text("a line")
    setup, cells = ready("adapted", "planned")
    setup = prepare_data(setup, {"texts": texts}, ["sample", "texts"], False, print)
    problems = run_cells(setup, cells, print)
    assert problems == {"planned/42": "the configuration none.yaml does not exist yet"}
    assert f"--text ht={texts}/T.txt " in (tmp_path / "calls.txt").read_text()
    page, record = (path.read_text(encoding="utf-8") for path in write_report(setup, problems)[1:3])
    assert "|  | ht | both | all |" in page
    assert "| none | 50.0 [40.0, 60.0] | 62.5 |  |" in page, "the mean over two languages; of et there is nothing"
    assert "| _paper_ | 49.4 |  |  |" in page
    assert "| USE |  |  |  |" in page
    assert "- empty: adapted/42: its run has no full for et" in page
    assert "- empty: planned/42: the configuration none.yaml does not exist yet" in page
    assert "- empty: it has no checkpoint" in page
    figure = next(one for one in json.loads(record)["figures"] if (one["row"], one["column"]) == ("none", "ht"))
    assert (figure["mean"], figure["paper"]) == (0.5, 49.4)
    # A mean over languages has an interval where the run has its answers.
    run = setup.output / "cells" / "adapted-42" / "run"
    written = json.loads((run / "run.json").read_text())
    full = {"full": written["metrics"]["systems"]["full"]}
    (run / "run.json").write_text(json.dumps({**written, "trainer": "multiple_choice", "metrics": {"systems": full}}))
    for code, right in (("ht", 2), ("qu", 3)):
        rows = [f"{n}\t0\t{int(n >= right)}\t1\t2" for n in range(4)]
        (run / f"predictions.{code}.tsv").write_text("\n".join(["idx\tgold\tpredicted\tscore1\tscore2", *rows]) + "\n")
    low, high = average(read_run_answers(run, read_record(run))["full"], ["ht", "qu"])[1:]  # type: ignore[index]
    page = write_report(setup, problems)[1].read_text(encoding="utf-8")
    assert f"| none | 50.0 [40.0, 60.0] | 62.5 [{100 * low:.1f}, {100 * high:.1f}] |  |" in page
