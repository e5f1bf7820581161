"""A tiny model learns the generated causal questions, and nothing where the premise is hidden."""

import json
from pathlib import Path

import pytest
from mrs_trainers.multiple_choice import main

from mrs_datasets.prepared.prepare import prepare

pytestmark = pytest.mark.integration


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("view", ["full", "nop"])
def test_the_generated_questions_are_learned_unless_something_is_hidden(
    view: str, repository: Path, tmp_path: Path
) -> None:
    prepare("synthetic-copa", ["synthetic"], tmp_path / "data")
    config = repository / "trainers" / "configs" / "multiple_choice" / "synthetic.yaml"
    options = {"config": config, "data": tmp_path / "data", "view": view, "output_dir": tmp_path / "run"}
    steps = {"max_steps": 100 if view == "full" else 50}
    words = [f"--{name}={value}" for name, value in {**options, **steps, "use_cpu": "true"}.items()]
    assert main(words) == 0
    views = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["metrics"]["systems"]
    figures = {name: {code: entry["accuracy"] for code, entry in views[name].items()} for name in views}
    if view == "full":
        assert figures["full"]["qaa"] > 0.9
        assert figures["translation"]["qab"] > 0.9
        assert 0.4 < figures["full"]["qab"] < 0.6, "which shares no word with what was trained on"
    else:
        assert set(figures[view].values()) == {0.5}, "each text is there twice, with either answer"
