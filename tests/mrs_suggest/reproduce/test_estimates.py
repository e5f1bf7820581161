"""Time and memory of a cell follow from finished ones of the same kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.reproduce.cells import Cell, Setup
from mrs_suggest.reproduce.estimates import Estimates, steps_of
from mrs_suggest.reproduce.table import CellSpec, parse_table
from tests.mrs_suggest.reproduce.conftest import TABLE


def note(setting: str = "monolingual", batch: int = 32, **measured: Any) -> dict[str, Any]:
    options = {"model_name_or_path": "tiny", "per_device_train_batch_size": batch, "setting": setting}
    identity = {"trainer": "retrieval", "options": options}
    whole = {"code": 0, "resumed": False, "steps": 100, "training_seconds": 50, "seconds": 60, "peak_mib": 3}
    return {"identity": identity, **whole, **measured}


def test_seconds_a_step_of_the_kind_and_the_rest_of_the_setting(tmp_path: Path) -> None:
    for number, one in enumerate([note(), note("zero_shot", seconds=150), note(peak_mib=5, resumed=True, seconds=1)]):
        (tmp_path / "cells" / str(number)).mkdir(parents=True)
        (tmp_path / "cells" / str(number) / "cell.json").write_text(json.dumps(one))
    found = Estimates(tmp_path)
    assert found.seconds(note()["identity"], 200) == 110
    assert found.seconds(note("zero_shot")["identity"], 200) == 200
    assert found.seconds(note("multilingual")["identity"], 200) == 155, "the middle of the kind's"
    assert found.seconds(note(batch=64)["identity"], 200) is None
    assert found.seconds(note()["identity"], None) is None
    assert (found.peak(note()["identity"]), found.peak(note(batch=64)["identity"])) == (5 << 20, None)


def test_a_failed_run_tells_nothing(tmp_path: Path) -> None:
    found = Estimates(tmp_path)
    found.add(note(code=2))
    assert found.peak(note()["identity"]) is None


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"max_steps": 7}, 7),
        ({"languages": ["en"], "num_train_epochs": 2, "per_device_train_batch_size": 10}, 12),
        ({"languages": ["en"], "per_device_train_batch_size": 10, "gradient_accumulation_steps": 3}, 6),
        ({"languages": ["en"], "max_train_examples": 20, "per_device_train_batch_size": 10}, 6),
        ({"languages": ["ru"]}, None),
        ({"languages": ["en"], "parallel": ["x.tsv"]}, None),
    ],
)
def test_steps_follow_from_rows_and_batches(
    prepared: PreparedData, tmp_path: Path, options: dict[str, Any], steps: int | None
) -> None:
    (tmp_path / "a.yaml").write_text("{}")
    setup = Setup(parse_table("test", TABLE, "test.yaml"), tmp_path, tmp_path, data={"chats": prepared.folder})
    assert steps_of(Cell("one", 42, CellSpec("a.yaml", options, data="chats")), setup) == steps


def test_steps_are_unknown_without_data_configuration_or_such_a_trainer(prepared: PreparedData, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{}")
    setup = Setup(parse_table("test", TABLE, "test.yaml"), tmp_path, tmp_path, data={"chats": None})
    assert steps_of(Cell("one", 42, CellSpec("a.yaml", data="chats")), setup) is None
    assert steps_of(Cell("one", 42, CellSpec("b.yaml")), setup) is None
    assert steps_of(Cell("one", 42, CellSpec("a.yaml", trainer="understanding")), setup) is None
