"""The folder and the record of one run: its contents, what must match when resuming, how to reproduce it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.arguments import as_plain
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.provenance import commit, hardware, versions
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.models.checkpoint_loading import stated_license
from mrs_suggest.models.saved.record import CARD, EXPORTS, OF_RUN, RECORD, Record, as_json
from mrs_suggest.models.starting_points import FROM_SCRATCH, TINY, checkpoint_file
from mrs_suggest.training.options import RunArguments

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainerState, TrainingArguments

IDENTITY = "resume.json"  # identifies the run of the checkpoints
TIMES = "MRS_ESTIMATE"  # the environment variable that names a file for the seconds of `--estimate`
LAST = ("last", "true", "True")
COLOURS = ("#3caea3", "#ed553b", "#f6d55c", "#173f5f")  # of the validation figures


class RunFolder:
    """Where a run writes. The trainer puts its checkpoints there; the export adds the rest.

    Raises:
        InputError: the folder holds a finished run, and neither overwriting nor resuming was asked for, or it holds
            checkpoints of an interrupted run.
    """

    def __init__(self, folder: Path, overwrite: bool, resume: str | None) -> None:
        self.folder, self._overwrite, self._resume = folder, overwrite, bool(resume)
        there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        own = {name for name in there if name in (RECORD, IDENTITY, "eval") or name.startswith("checkpoint-")}
        if folder.exists() and (not folder.is_dir() or (there and not own)):
            raise InputError(f"--output_dir {folder}: is not empty and does not hold a run; choose another.")
        if overwrite or resume:
            return
        if (folder / RECORD).exists():
            raise InputError(f"--output_dir {folder}: holds a finished run; choose another folder or pass --overwrite.")
        if any(folder.glob("checkpoint-*")):
            raise InputError(
                f"--output_dir {folder}: holds checkpoints of an interrupted run; pass "
                "--resume_from_checkpoint last to continue it, or --overwrite to start again."
            )

    def require_same(self, identity: Record) -> None:
        """Refuse, by an InputError, to resume with other data, another model or other options than the checkpoints'."""
        path = self.folder / IDENTITY
        if not self._resume or not path.is_file():
            return
        try:
            before = dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError):
            return
        differing = [
            f"{key} {before.get(key)} before, {value} now"
            for key, value in identity.items()
            if before.get(key) != value
        ]
        if differing:
            raise InputError(
                f"--resume_from_checkpoint: {self.folder} was started differently ({'; '.join(differing)}); pass "
                "the same, or start again with --overwrite true."
            )

    def begin(self, identity: Record) -> None:
        """Make the folder ready for the run, now that its input is known to be good.

        Nothing may stay that could be mistaken for the new run's: an old index holds vectors of the old model.
        """
        stale = [] if self._resume else [RECORD]  # a resumed run's record stays until the model is replaced
        if self._overwrite and not self._resume:
            stale += [name.partition("/")[0] for name in OF_RUN]
        stale += [name.partition("/")[0] for name in EXPORTS]  # of the weights that training replaces
        found = {path for pattern in stale for path in self.folder.glob(pattern)}  # two patterns may match one path
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(self.folder / IDENTITY, as_json(identity))


def last_checkpoint(folder: Path, resume: str | None) -> str | None:
    """The checkpoint to continue from (`last`: the newest one in the folder); InputError if it does not exist."""
    if not resume:
        return None
    if resume not in LAST:
        if not Path(resume).is_dir():
            raise InputError(f"--resume_from_checkpoint {resume}: no such folder.")
        return resume
    checkpoints = whole_checkpoints(folder)
    if not checkpoints:
        raise InputError(
            f"--resume_from_checkpoint last: {folder} has no complete checkpoint; start again with --overwrite true."
        )
    return str(checkpoints[-1])


def whole_checkpoints(folder: Path) -> list[Path]:
    """The complete checkpoints of a run's folder, in the order of their steps."""
    whole = (path.parent for path in folder.glob("checkpoint-*/trainer_state.json"))  # the trainer writes it last
    numbered = (path for path in whole if path.name.rpartition("-")[2].isdigit())
    return sorted(numbered, key=lambda path: int(path.name.rpartition("-")[2]))


def require_best_weights(kept: Mapping[str, Tensor], best: Mapping[str, Tensor], checkpoint: str) -> None:
    """The trainer only logs an error when it cannot load the best checkpoint, and then keeps the last weights."""
    import torch  # here, since a record is also read and written without it

    for name, tensor in kept.items():
        if name not in best or not torch.equal(tensor.cpu(), best[name].cpu()):
            raise RuntimeError(f"The weights kept are not those of the best checkpoint {checkpoint} ({name}).")


def run_record(
    *,
    trainer: str,
    options: RunArguments,
    training: TrainingArguments,
    facts: Record,
    state: TrainerState,
    figures: Record,
    milliseconds: dict[str, float],
    seconds: float,
) -> Record:
    """Everything that is needed to reproduce a run and to write its card.

    Args:
        facts: of the task's data, `data` at least; each key becomes one of the record.
        figures: of the evaluation; empty without one.
    """
    best, base = state.best_model_checkpoint, (options.model_name_or_path, options.model_revision)
    known = options.model_name_or_path not in FROM_SCRATCH
    return {
        "trainer": trainer,
        "arguments": plain_arguments([options, training]),
        "seed": training.seed,
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware(),
        **facts,
        "steps": state.global_step,
        "epochs": state.epoch,
        "best_step": int(best.rpartition("-")[2]) if best else None,
        "best_metric": state.best_metric,
        "seconds": round(seconds, 1),
        "milliseconds": milliseconds,
        "metrics": figures,
        "started_from": started_from(*base) if known else [],
        "base_license": base_license(*base) if known else None,
    }


def plain_arguments(options: Sequence[RunArguments | TrainingArguments]) -> Record:
    """Options as the record, which is published, has them: without tokens, and without the folders above local paths,
    which name people or machines."""
    plain = {
        key: [without_place(entry) for entry in value] if isinstance(value, list) else without_place(value)
        for part in options
        for key, value in as_plain(part).items()
    }
    base = str(plain.get("model_name_or_path", TINY))
    if base not in FROM_SCRATCH and not base.startswith(".") and Path(base).is_dir():
        plain["model_name_or_path"] = f"./{base}"  # so that it cannot be mistaken for a hub id
    return plain


def without_place(value: Any) -> Any:
    """An absolute path, alone or after NAME=, without the folders above it; URLs without secrets; the rest as it is."""
    if not isinstance(value, str):
        return value
    value = masked(value) if "://" in value else value
    named, equals, path = ("", "", value) if Path(value).is_absolute() else value.partition("=")
    return f"{named}{equals}.../{Path(path).name}" if Path(path).is_absolute() else value


# --- the model that training started from


def base_license(name: str, revision: str | None = None) -> str | None:
    """The licence that the card of a checkpoint (a folder or a hub id) states, as the hub names it; None if none."""
    path = checkpoint_file(name, CARD, revision)
    found = stated_license(path) if path else None
    return found if isinstance(found, str) and found.strip() else None


def started_from(name: str, revision: str | None = None) -> list[str]:
    """The models that a trained model (a folder or a hub id) started from by its `run.json`, the nearest first, as NAME
    or NAME@REVISION."""
    path = checkpoint_file(name, RECORD, revision)
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path else {}
        base, base_revision = record["arguments"]["model_name_or_path"], record["arguments"].get("model_revision")
        before = record.get("started_from", [])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # not a record of a run
        return []
    nearest = f"{base}@{base_revision}" if base_revision else str(base)
    return [nearest, *map(str, before if isinstance(before, list) else [])]


# --- the curves


def draw_curves(
    log_history: Sequence[Mapping[str, float]], best_step: int | None, path: Path, shown: Mapping[str, str]
) -> dict[str, Any]:
    """Draw training loss (left) and validation figures (right) over the steps into a PNG.

    Args:
        best_step: the kept checkpoint's step, marked by a line.
        shown: figures on validation, such as `mrr` -> their labels.

    Returns:
        What is drawn, as data: `loss`, `validation` by label, each as (step, value), and `best_step`.
    """
    loss = [(entry["step"], entry["loss"]) for entry in log_history if "loss" in entry]
    validation = {
        label: [(entry["step"], entry[f"eval_{key}"]) for entry in log_history if f"eval_{key}" in entry]
        for key, label in shown.items()
    }
    with drawing(path, 1, 2, figsize=(10, 3.8)) as (_, (left, right)):
        left.plot(*zip(*loss, strict=True) if loss else ([], []), color="#20639b", marker=".", label="training loss")
        left.set(xlabel="step", ylabel="loss", title="Training loss")
        for (label, points), colour in zip(validation.items(), cycle(COLOURS), strict=False):
            if points:
                right.plot(*zip(*points, strict=True), marker=".", color=colour, label=label)
        right.set(xlabel="step", ylim=(0, None), title="Validation")
        for axis in (left, right):
            axis.grid(alpha=0.3)
            if best_step is not None:
                axis.axvline(best_step, color="black", linestyle=":", linewidth=1, label=f"kept: step {best_step}")
            if axis.get_legend_handles_labels()[0]:
                axis.legend(frameon=False, fontsize=8)
    return {"best_step": best_step, "loss": loss, "validation": validation}
