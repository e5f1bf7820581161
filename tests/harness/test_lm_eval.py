"""The tasks through `lm_eval`: its figures are ours to the last digit."""

import json
from pathlib import Path

import pytest

from mrs_suggest.integrations.lm_eval.__main__ import main
from tests.harness.agreement import require_ours
from tests.harness.conftest import Harness

pytestmark = pytest.mark.harness
TASKS = ("mrs_es", "mrs_samples_es", "mrs_xcopa_et", "mrs_xcopa_nop_et", "mrs_xcopa_noq_et", "mrs_staple_pt")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """The task files."""
    assert main(["--out", str(tmp_path / "tasks")]) == 0
    return str(tmp_path / "tasks")


def test_figures_are_ours_to_the_last_digit(
    harness: Harness, places: dict[str, str], folder: str, tmp_path: Path
) -> None:
    done = harness(
        "lm_eval", "run", "--model", "hf", "--model_args", f"pretrained={places['MODEL']}",
        "--include_path", folder, "--tasks", *TASKS, "--num_fewshot", "2", "--device", "cpu",
        "--batch_size", "4", "--gen_kwargs", "max_gen_toks=24",
        "--output_path", str(tmp_path), "--log_samples", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = tmp_path.rglob("results_*.json")
    results = json.loads(path.read_text(encoding="utf-8"))["results"]
    require_ours(
        TASKS,
        lambda task: next(tmp_path.rglob(f"samples_{task}_2*.jsonl")),
        lambda task, name: results[task][f"{name},none"],
    )

    (samples,) = tmp_path.rglob("samples_mrs_es_2*.jsonl")
    first = json.loads(samples.read_text(encoding="utf-8").splitlines()[0])
    prompt = first["arguments"]["gen_args_0"]["arg_0"]
    assert prompt.count("Message:") == 3  # two examples, with three replies each
    assert prompt.split("\n\n")[0].count("\n") == 4


def test_missing_data_are_told_of(harness: Harness, places: dict[str, str], folder: str, tmp_path: Path) -> None:
    arguments = ("run", "--model", "dummy", "--include_path", folder, "--tasks")
    done = harness("lm_eval", *arguments, "mrs_ja", cwd=tmp_path)
    assert done.returncode != 0
    assert f"{places['MRS_DATA']}: no train split of 'ja'; the folder has es es-responses." in done.stderr
