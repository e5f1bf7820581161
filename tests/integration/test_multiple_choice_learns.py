"""A tiny model learns the generated causal questions."""

import json
from pathlib import Path

import pytest
from mrs_trainers.multiple_choice import main

from mrs_datasets.prepared.prepare import prepare

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("one_process")
def test_the_generated_questions_are_learned(repository: Path, tmp_path: Path) -> None:
    prepare("synthetic-copa", ["synthetic"], tmp_path / "data")
    config = repository / "trainers" / "configs" / "multiple_choice" / "synthetic.yaml"
    options = {"config": config, "data": tmp_path / "data", "output_dir": tmp_path / "run", "max_steps": 100}
    assert main([f"--{name}={value}" for name, value in {**options, "use_cpu": "true"}.items()]) == 0
    views = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["metrics"]["systems"]
    figures = {name: {code: entry["accuracy"] for code, entry in views[name].items()} for name in views}
    assert figures["full"]["qaa"] > 0.9
    assert figures["translation"]["qab"] > 0.9
    assert 0.4 < figures["full"]["qab"] < 0.6, "which shares no word with what was trained on"
