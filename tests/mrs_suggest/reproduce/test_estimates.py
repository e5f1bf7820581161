"""The time of a cell follows from finished ones of the same kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mrs_suggest.reproduce.cells import Cell, Setup
from mrs_suggest.reproduce.estimates import Estimates, steps_of
from mrs_suggest.reproduce.table import CellSpec
from tests.mrs_suggest.reproduce.checked_tables import parse_table
from tests.mrs_suggest.reproduce.conftest import TABLE


def note(setting: str = "monolingual", batch: int = 32, **measured: Any) -> dict[str, Any]:
    options = {"model_name_or_path": "tiny", "per_device_train_batch_size": batch, "setting": setting}
    identity = {"trainer": "retrieval", "options": options}
    whole = {"code": 0, "resumed": False, "steps": 100, "training_seconds": 50, "seconds": 60}
    return {"identity": identity, **whole, **measured}


def test_seconds_a_step_of_the_kind_and_the_rest_of_the_setting(tmp_path: Path) -> None:
    notes = [note(), note("zero_shot", seconds=150), note(resumed=True, seconds=1), note(code=2, seconds=1)]
    for number, one in enumerate(notes):
        (tmp_path / "cells" / str(number)).mkdir(parents=True)
        (tmp_path / "cells" / str(number) / "cell.json").write_text(json.dumps(one))
    found = Estimates(tmp_path)
    assert found.seconds(note()["identity"], 200) == 110
    assert found.seconds(note("zero_shot")["identity"], 200) == 200
    assert found.seconds(note("multilingual")["identity"], 200) == 155, "the middle of the kind's"
    assert found.seconds(note(batch=64)["identity"], 200) is None
    assert found.seconds(note()["identity"], None) == 60, "as many steps as before"


def test_steps_are_the_limit_of_the_options(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{}")
    setup = Setup(parse_table("test", TABLE, "test.yaml"), tmp_path, tmp_path)
    assert steps_of(Cell("one", 42, CellSpec(config="a.yaml", options={"max_steps": 7})), setup) == 7
    assert steps_of(Cell("one", 42, CellSpec(config="a.yaml")), setup) is None
    assert steps_of(Cell("one", 42, CellSpec(config="b.yaml")), setup) is None
