"""What `--report_to` writes, read back with the trackers' own libraries; nothing leaves the run's folder."""

import importlib.util
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_suggest.models.saved.families import publication
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.training.trackers import TRACKERS, final_figures
from tests.integration.conftest import Train

pytestmark = pytest.mark.integration
HERE = [name for name in TRACKERS if importlib.util.find_spec(name)]
TOKEN = "hf_" + "x" * 34


@pytest.fixture
def reported(train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that reports to every tracker that is installed."""
    for name in ("WANDB_API_KEY", "WANDB_DIR", "WANDB_MODE", "TRACKIO_DIR", "TENSORBOARD_LOGGING_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NETRC", str(tmp_path / "no-netrc"))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlflow").as_uri())  # the database takes 8 s to make
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    return train("run", "--report_to", *HERE, "--hub_token", TOKEN, "--project", "tests")


def test_trackers_have_options_validation_and_test_figures(reported: Path, tmp_path: Path) -> None:
    assert list((tmp_path / "elsewhere").iterdir()) == []
    record = read_record(reported)
    history = [row for row in _state(reported)["log_history"] if "eval_mrr_en" in row]
    expected = {row["step"]: row["eval_mrr_en"] for row in history}
    figures = final_figures(record)
    assert figures["test/Model/en/weighted"] == record["metrics"]["systems"]["Model"]["en"]["weighted"]
    for name, check in CHECKS.items():
        if name in HERE:
            check(reported, expected, figures)
    places = (reported / "trackers", tmp_path / "mlflow")
    written = [path for place in places for path in place.rglob("*") if path.is_file()]
    written = [path for path in written if not path.name.endswith(("-wal", "-shm"))]  # SQLite's, which come and go
    assert written
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]
    published = publication(reported, record, "org/name", "card").files()
    assert "model.safetensors" in " ".join(published)
    assert not [name for name in published if "trackers" in name]


def _state(folder: Path) -> dict:
    checkpoint = max(folder.glob("checkpoint-*"), key=lambda path: int(path.name.rpartition("-")[2]))
    return dict(json.loads((checkpoint / "trainer_state.json").read_text(encoding="utf-8")))


def _tensorboard(folder: Path, expected: dict[int, float], figures: dict[str, float]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder / "trackers" / "tensorboard"))
    events.Reload()
    assert {one.step: one.value for one in events.Scalars("eval/mrr_en")} == pytest.approx(expected)
    assert {one.step for one in events.Scalars("train/loss")} == {1, 2}
    for name, value in figures.items():
        assert [one.value for one in events.Scalars(name)] == pytest.approx([value])
    (options,) = events.Tensors("options/text_summary")
    assert b'"pooling"' in options.tensor_proto.string_val[0]


def _wandb(folder: Path, expected: dict[int, float], figures: dict[str, float]) -> None:
    (path,) = (folder / "trackers" / "wandb").glob("offline-run-*/*.wandb")
    written = path.read_bytes()  # records that only its own program reads
    for name in ("options/pooling", "eval/mrr_en", "test/Model/en/weighted"):
        assert name.encode() in written
    assert repr(figures["test/Model/en/weighted"]).encode() in written


def _trackio(folder: Path, expected: dict[int, float], figures: dict[str, float]) -> None:
    with sqlite3.connect(folder / "trackers" / "trackio" / "tests.db") as database:
        rows = [json.loads(row[0]) for row in database.execute("select metrics from metrics")]
    found = {row["train/global_step"]: row["eval/mrr_en"] for row in rows if "eval/mrr_en" in row}
    assert found == pytest.approx(expected)
    assert [row["test/Model/en/mrr"] for row in rows if "test/Model/en/mrr" in row] == [figures["test/Model/en/mrr"]]


def _mlflow(folder: Path, expected: dict[int, float], figures: dict[str, float]) -> None:
    from mlflow import MlflowClient

    client = MlflowClient((folder.parent / "mlflow").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("tests").experiment_id])
    history = client.get_metric_history(run.info.run_id, "eval_mrr_en")
    assert {one.step: one.value for one in history} == pytest.approx(expected)
    assert run.data.metrics["test/Model/en/weighted"] == pytest.approx(figures["test/Model/en/weighted"])
    assert "options/pooling" in run.data.params
    assert run.info.status == "FINISHED"


Check = Callable[[Path, dict[int, float], dict[str, float]], None]
CHECKS: dict[str, Check] = {"tensorboard": _tensorboard, "wandb": _wandb, "trackio": _trackio, "mlflow": _mlflow}


def test_a_missing_package_is_told_with_its_extra(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    without = lambda name, *rest: None if name == "wandb" else found(name, *rest)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", without)
    told = refused("--report_to", "wandb")
    assert told.startswith("--report_to wandb needs the package 'wandb', which is not installed")
    assert told.endswith("run `pip install '.[wandb]'` in a clone (docs/install.md).")
