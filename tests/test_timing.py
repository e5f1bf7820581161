"""What each record of a benchmark says about its origin."""

import importlib
import json
import re
import shutil
from datetime import date
from pathlib import Path

import pytest


def test_a_record_names_commit_machine_date_versions_and_model(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")
    timing = importlib.import_module("timing")
    model = tmp_path / "model"
    shutil.copytree(repository / "mrs_suggest" / "suggest" / "embedded" / "everyday-retriever", model)
    timing.write_result(str(tmp_path / "bench_x.py"), "X.\n\nOne message.\n", {"n": 1}, ("numpy",), model)
    record = json.loads((tmp_path / "results" / "bench_x.json").read_text())
    assert (record["name"], record["workload"], record["n"]) == ("bench_x", "One message.\n", 1)
    assert re.fullmatch(r"[0-9a-f]{12}(-dirty)?", record["commit"] or "0" * 12)  # none without git
    assert date.fromisoformat(record["date"])
    assert record["machine"]["processor"]
    assert record["machine"]["cores"] >= 1
    assert record["versions"].keys() == {"python", "numpy"}
    weights = next(model.glob("query_*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    assert timing.weights_sha256(model) != record["model_sha256"]
