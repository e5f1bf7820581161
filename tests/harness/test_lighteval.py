"""The tasks through `lighteval`: its figures are ours to the last digit."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.harness.agreement import require_ours
from tests.harness.conftest import Harness

pytestmark = pytest.mark.harness
TASKS = ("mrs:es", "mrs_samples:es", "mrs_xcopa:et", "mrs_xcopa_nop:et", "mrs_xcopa_noq:et", "mrs_staple:pt")
MODULE = "mrs_suggest.integrations.lighteval.tasks"


def test_figures_are_ours_to_the_last_digit(harness: Harness, places: dict[str, str], tmp_path: Path) -> None:
    settings = "batch_size=4,generation_parameters={max_new_tokens:24,temperature:1.0,seed:1}"
    done = harness(
        "lighteval", "accelerate", f"model_name={places['MODEL']},{settings}", ",".join(f"{task}|2" for task in TASKS),
        "--custom-tasks", MODULE, "--output-dir", str(tmp_path), "--save-details", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    (path,) = tmp_path.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    require_ours(
        TASKS,
        lambda task: next(tmp_path.rglob(f"details_{task}|2_*.parquet")),
        lambda task, name: results[f"{task}|2"][name],
    )

    (samples,) = tmp_path.rglob("details_mrs:es|2_*.parquet")
    examples = pq.read_table(samples).to_pylist()[0]["doc"]["fewshot_samples"]
    assert [example["choices"][0].count("\n") for example in examples] == [2, 2]  # three replies each


def test_a_language_that_the_data_lack_is_told_of(harness: Harness, places: dict[str, str], tmp_path: Path) -> None:
    done = harness(
        "lighteval", "accelerate", f"model_name={places['MODEL']}", "mrs:ja|0", "--custom-tasks", MODULE,
        cwd=tmp_path, COLUMNS="400",
    )  # fmt: skip
    assert done.returncode != 0
    assert "no config 'ja'; it has es es-responses" in done.stdout + done.stderr
