"""Tables of a whole benchmark: means over rows and columns, generated data, given checkpoints; XGLUE's own table."""

import json
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce.cells import States, all_cells
from mrs_suggest.reproduce.report import write_report
from mrs_suggest.reproduce.runner import prepare_data, run_cells
from mrs_suggest.reproduce.table import with_checkpoints
from tests.mrs_suggest.reproduce.checked_tables import parse_table
from tests.mrs_suggest.reproduce.conftest import Ready

TABLE = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")


def test_means_over_rows_and_columns(ready: Ready) -> None:
    setup, cells = ready(text=TABLE)
    assert run_cells(setup, cells, print) == {}
    page, record = (path.read_text(encoding="utf-8") for path in write_report(setup, {})[1:3])
    assert "| one | 50.0 [40.0, 60.0] | 75.0 [70.0, 80.0] | 62.5 |" in page
    assert "| two | 50.0 ± 0.0 |  | 50.0 ± 0.0 |" in page
    assert "| all |  |  | 56.2 |" in page, "of the seed that both have"
    assert "| _paper_ |  |  | 75.8 |" in page
    assert "- empty: first/42: its run has no full for et" in page
    figures = {(one["table"], one["row"], one["column"]): one for one in json.loads(record)["figures"]}
    assert figures["main", "all", "AVG"]["values"] == {"42": 0.5625}
    assert figures["more", "one", "mean"]["mean"] is None
    assert figures["more", "other", "a"]["place"]["metric"] == "mrr"
    assert figures["main", "two", "qu"]["missing"] == "not an experiment"


def test_a_row_with_another_metric_has_not_the_main_ones_interval(ready: Ready, tmp_path: Path) -> None:
    text = TABLE.replace("system: Model, metric: mrr", "system: full, metric: precision")
    setup, cells = ready(text=text)
    run_cells(setup, cells, print)
    path = setup.output / "cells" / "first-42" / "run" / "run.json"
    written = json.loads(path.read_text())
    written["metrics"]["tasks"] = {"full": {"ht": {"accuracy": 0.5, "precision": 0.25, "interval": [0.4, 0.6]}}}
    path.write_text(json.dumps(written))
    assert "| other | .2500 |  |  |" in write_report(setup, {})[1].read_text(encoding="utf-8")


def test_the_tiny_scale_generates_its_data_and_changes_a_cells_own_options(
    ready: Ready, preparing: None, tmp_path: Path
) -> None:
    setup, cells = ready("first", text=TABLE, scale="tiny")
    for _ in range(2):
        found = prepare_data(setup, {}, ["sample", "tasks"], False, print)
    assert (tmp_path / "calls.txt").read_text().splitlines() == [
        f"data prepare synthetic --source synthetic --out {tmp_path}/out/data/tasks --overwrite"
    ]
    assert f"--rate 2 --own {tmp_path}/out/data/tasks/x" in " ".join(cells["first/42"].command(found))
    assert States(found, cells).unavailable("first/42") == ""
    assert "no data: pass --data tasks=FOLDER" in States(setup, cells).unavailable("first/42")
    full, cells = ready("first", text=TABLE)
    assert "--rate 1" in " ".join(cells["first/42"].command(full))
    assert prepare_data(full, {}, ["sample", "tasks"], False, print).data == {"tasks": None}
    assert States(full, cells).unavailable("first/42") == "", "the full scale has no use for them"


def test_a_given_checkpoint_stands_for_a_run(ready: Ready, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"one")
    table = with_checkpoints(parse_table(TABLE), {"start": str(model)})
    assert set(table.cells) == {"first", "second"}
    setup, _ = ready(text=TABLE, checkpoints=(model,))
    setup = type(setup)(table, setup.output, setup.configs, checkpoints=(model,))
    cells = all_cells(table)
    assert f"--model_name_or_path {model} " in " ".join(cells["second/43"].command(setup))
    before = States(setup, cells).identity("first/42")
    (model / "model.safetensors").write_bytes(b"two")
    assert States(setup, cells).identity("first/42") != before, "by its contents"
    with pytest.raises(InputError, match="--checkpoint first=.*others start from .start"):
        with_checkpoints(parse_table(TABLE), {"first": "x"})
