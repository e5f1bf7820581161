"""The trackers of `--report_to`: tensorboard, wandb, trackio and mlflow, inside the run's folder.

The libraries' own callbacks send the training loss and our validation figures, with the step, while a run trains. Here
they also get the run's options, and the test figures once at its end; and where no environment variable of theirs says
otherwise, they write below `trackers/` in the folder of the run and send nothing elsewhere. Only the first
rank reports.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from transformers import TrainerCallback, TrainerState
from transformers.integrations import MLflowCallback, TensorBoardCallback, TrackioCallback, WandbCallback

from mrs_suggest.models.saved.record import TRACKERS as FOLDER
from mrs_suggest.models.saved.record import Record

if TYPE_CHECKING:
    from transformers import Trainer

# Of a record's metrics: what is not a figure of a system of this run.
NOT_TOLD = ("differences", "paper", "pools", "signatures")
OFFLINE = "offline"


class Tracked(TrainerCallback):
    """Mixin, placed before the library's callback: the run stays open until its test figures are known.

    `add_options` adds the run's own options to the library's, under `options/NAME`, `add_figures` the figures of the
    end; `close` closes the tracker's run.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._options = options

    def on_train_begin(self, args: Any, state: TrainerState, control: Any, *rest: Any, **kwargs: Any) -> None:
        super().on_train_begin(args, state, control, *rest, **kwargs)
        if state.is_world_process_zero:
            cast(Any, self).add_options(self._options)

    def on_train_end(self, *args: Any, **kwargs: Any) -> None:
        """Leave open what the library would close."""


class TensorBoard(Tracked, TensorBoardCallback):
    """Event files in `trackers/tensorboard`."""

    def add_options(self, values: Mapping[str, Any]) -> None:
        self.tb_writer.add_text("options", json.dumps(values, indent=2, ensure_ascii=False))

    def add_figures(self, figures: Mapping[str, float], step: int) -> None:
        for name, value in figures.items():
            self.tb_writer.add_scalar(name, value, step)

    def close(self) -> None:
        if self.tb_writer is not None:
            self.tb_writer.close()


class Wandb(Tracked, WandbCallback):
    """A run in `trackers/wandb`; offline, unless WANDB_MODE or a login says otherwise."""

    def add_options(self, values: Mapping[str, Any]) -> None:
        self._wandb.config.update({f"options/{name}": value for name, value in values.items()}, allow_val_change=True)

    def add_figures(self, figures: Mapping[str, float], step: int) -> None:
        self._wandb.run.summary.update(dict(figures))

    def close(self) -> None:
        if self._wandb.run is not None:
            self._wandb.finish()


class Trackio(Tracked, TrackioCallback):
    """A database in `trackers/trackio`."""

    def add_options(self, values: Mapping[str, Any]) -> None:
        self._trackio.config.update({f"options/{name}": value for name, value in values.items()}, allow_val_change=True)

    def add_figures(self, figures: Mapping[str, float], step: int) -> None:
        self._trackio.log({**figures, "train/global_step": step})

    def close(self) -> None:
        if self._initialized:
            self._trackio.finish()
            self._initialized = False


class Mlflow(Tracked, MLflowCallback):
    """An SQLite database, `trackers/mlflow.db`."""

    def add_options(self, values: Mapping[str, Any]) -> None:
        self._ml_flow.log_params(
            {f"options/{name}": str(value)[: self._MAX_PARAM_VAL_LENGTH] for name, value in values.items()}
        )

    def add_figures(self, figures: Mapping[str, float], step: int) -> None:
        named = {name.replace("@", "_at_"): value for name, value in figures.items()}  # not a character of its names
        self._ml_flow.log_metrics(named, step=step)

    def close(self) -> None:
        if self._auto_end_run and self._ml_flow.active_run():
            self._ml_flow.end_run()


TRACKERS: Mapping[str, type[Any]] = {"tensorboard": TensorBoard, "wandb": Wandb, "trackio": Trackio, "mlflow": Mlflow}


class Trackers:
    """The trackers of a run.

    Args:
        trainer: its callbacks of the libraries are replaced.
    """

    def __init__(self, trainer: Trainer, values: Mapping[str, Any]) -> None:
        names = [name for name in TRACKERS if name in (trainer.args.report_to or ())]
        self._trainer, self._found = trainer, [TRACKERS[name](values) for name in names]
        for tracker in self._found:
            trainer.remove_callback(type(tracker).__bases__[1])  # the library's
            trainer.add_callback(tracker)

    def make_folder(self, run: Path) -> None:
        """The folder in which trackers that make none themselves write."""
        if self._found:
            (run / FOLDER).mkdir(parents=True, exist_ok=True)

    def open_without_training(self) -> None:
        trainer: Any = self._trainer
        if self._found:
            trainer.callback_handler.on_train_begin(trainer.args, trainer.state, trainer.control)

    def add_figures(self, record: Record) -> None:
        for tracker in self._found:
            tracker.add_figures(final_figures(record), record["steps"])

    def close(self) -> None:
        """Close all; a process that did not open them does nothing."""
        if self._trainer.is_world_process_zero():
            for tracker in self._found:
                tracker.close()


def final_figures(record: Record) -> dict[str, float]:
    """The numbers of a record's metrics, each named by its place: `test/Model/es/weighted`; and the best on validation.

    >>> final_figures({"best_metric": 0.5, "seconds": 2.0, "metrics": {"systems": {"Model": {"es": {"mrr": 0.25}}}}})
    {'best_metric': 0.5, 'seconds': 2.0, 'test/Model/es/mrr': 0.25}
    """
    found = {name: float(record[name]) for name in ("best_metric", "best_step", "seconds") if record.get(name)}

    def walk(value: Any, name: str) -> None:
        if isinstance(value, Mapping):
            for key, one in value.items():
                if key not in NOT_TOLD:
                    walk(one, name if key == "systems" else f"{name}/{key}")
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            found[name] = float(value)

    walk(record["metrics"], "test")
    return found


@contextmanager
def inside(folder: Path, names: Sequence[str], project: str) -> Iterator[None]:
    """Within it, the trackers write below that folder: environment variables say so, where none says otherwise."""
    place = (folder / FOLDER).absolute()
    values = {
        "tensorboard": {"TENSORBOARD_LOGGING_DIR": str(place / "tensorboard")},
        "wandb": {"WANDB_DIR": str(place), "WANDB_PROJECT": project, "WANDB_SILENT": "true"},
        "trackio": {"TRACKIO_DIR": str(place / "trackio")},
        "mlflow": {"MLFLOW_TRACKING_URI": f"sqlite:///{place / 'mlflow.db'}", "MLFLOW_EXPERIMENT_NAME": project},
    }
    wanted = {key: value for name in names for key, value in values.get(name, {}).items()}
    if "wandb" in names and not _logged_in():
        wanted["WANDB_MODE"] = OFFLINE
    ours = {key: value for key, value in wanted.items() if key not in os.environ}
    os.environ.update(ours)
    try:
        yield
    finally:
        for key in ours:
            os.environ.pop(key, None)


def _logged_in() -> bool:
    """Whether wandb would find a key where it looks for one; without one it would ask, or fail."""
    if "WANDB_API_KEY" in os.environ:
        return True
    host = urlsplit(os.environ.get("WANDB_BASE_URL", "https://api.wandb.ai")).hostname or ""
    try:
        return netrc(os.environ.get("NETRC")).authenticators(host) is not None
    except (OSError, NetrcParseError):
        return False
