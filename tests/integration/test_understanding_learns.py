"""A tiny model learns the generated miniatures of XGLUE's tasks, by far better than the most frequent label."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from mrs_trainers.understanding import main

from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.xglue import aggregate, score_task
from mrs_suggest.training.understanding.tasks import UNDERSTANDING_TASKS

pytestmark = pytest.mark.integration

MARGIN = 0.5


def majority(folder: Path, name: str) -> float:
    """The score in English of always saying the most frequent label or tag of training."""
    task, data = UNDERSTANDING_TASKS[name], open_prepared(str(folder))
    known: list[Any] = data.load(task.config("en"), "train")[task.gold][:]
    gold: list[Any] = data.load(task.config("en"), "test")[task.gold][:]
    tags = isinstance(known[0], list)
    most = Counter(tag for tags in known for tag in tags) if tags else Counter(known)
    ((label, _),) = most.most_common(1)
    said: list[Any] = [[label] * len(one) if tags else label for one in gold]
    return aggregate(score_task(name, said, gold, "en"))["score"]


@pytest.mark.usefixtures("one_process")
@pytest.mark.parametrize("name", ["NER", "NC"])
def test_a_tiny_model_beats_the_most_frequent_label(name: str, repository: Path, tmp_path: Path) -> None:
    prepare("synthetic-xglue", ["synthetic"], tmp_path / "data")
    config = repository / "trainers" / "configs" / "understanding" / "synthetic.yaml"
    options = {"config": config, "data": tmp_path / "data", "task": name.lower(), "output_dir": tmp_path / "run"}
    words = [f"--{key}={value}" for key, value in {**options, "num_train_epochs": 4, "use_cpu": "true"}.items()]
    assert main([*words, "--languages", "en", "de"]) == 0
    figures = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))["metrics"]["tasks"][name]
    assert figures["en"]["score"] > majority(tmp_path / "data", name) + MARGIN
    if name == "NER":
        assert figures["de"]["score"] > MARGIN, "names are the same in all languages"
