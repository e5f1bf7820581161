"""The folder of one run: what may stand in it, what a resumed run must share, and its checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from mrs_core.errors import InputError
from mrs_core.files import atomic_write
from mrs_training.allowlist import CARD, CURVES, MODEL, RECORD, TRAINING_ARGUMENTS
from mrs_training.card import Record

if TYPE_CHECKING:
    from torch import Tensor

IDENTITY = "resume.json"  # what the checkpoints are of
LAST = ("last", "true", "True")


class RunFolder:
    """Where a run writes. The trainer puts its checkpoints there; the export adds the rest.

    Raises:
        InputError: the folder holds a finished run, and neither overwriting nor resuming was asked for, or it holds
            checkpoints of a run that was cut off.
    """

    def __init__(self, folder: Path, overwrite: bool, resume: str | None) -> None:
        self.folder, self._overwrite, self._resume = folder, overwrite, bool(resume)
        there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        own = {name for name in there if name in (RECORD, IDENTITY, "eval") or name.startswith("checkpoint-")}
        if folder.exists() and (not folder.is_dir() or (there and not own)):
            raise InputError(f"--output_dir {folder}: is not empty and no folder of a run; choose another folder.")
        if self._overwrite and not resume:
            return
        if (folder / RECORD).exists() and not resume:
            raise InputError(f"--output_dir {folder}: holds a finished run; choose another folder or pass --overwrite.")
        if not resume and any(folder.glob("checkpoint-*")):
            raise InputError(
                f"--output_dir {folder}: holds checkpoints of a run that was cut off; pass "
                "--resume_from_checkpoint last to go on, or --overwrite to start again."
            )

    def require_same(self, identity: Record) -> None:
        """Refuse to resume with other data or another model than the checkpoints are of.

        Raises:
            InputError: what differs.
        """
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
                f"--resume_from_checkpoint: {self.folder} was begun with something else ({'; '.join(differing)}); pass "
                "the same, or start again with --overwrite true."
            )

    def reopen(self) -> None:
        """From here on the folder is that of a run that is not finished."""
        (self.folder / RECORD).unlink(missing_ok=True)

    def begin(self, identity: Record, model_files: Sequence[str] = ()) -> None:
        """Make the folder ready for the run, now that its input is known to be good.

        Nothing may stay that could be taken for the new run's: an old index holds vectors of the old model.

        Args:
            model_files: patterns of the new model's files, where they are other ones than those of `MODEL`.
        """
        stale = [] if self._resume else [RECORD]  # a resumed run's record stays until the model is replaced
        if self._overwrite and not self._resume:
            stale += [CARD, CURVES, "predictions*", "checkpoint-*", TRAINING_ARGUMENTS]
            stale += [name.partition("/")[0] for name in (*MODEL, *model_files)]
        for path in {path for pattern in stale for path in self.folder.glob(pattern)}:  # two patterns may name one
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(self.folder / IDENTITY, json.dumps(identity, indent=2, ensure_ascii=False) + "\n")

    @staticmethod
    def predictions_name(language: str) -> str:
        """The file of a language's test messages, their replies and the suggestions."""
        return f"predictions.{language}.tsv"


def last_checkpoint(folder: Path, resume: str | None) -> str | None:
    """The checkpoint to go on from: `last` stands for the newest one of the folder.

    Raises:
        InputError: there is none.
    """
    if not resume:
        return None
    if resume not in LAST:
        if not Path(resume).is_dir():
            raise InputError(f"--resume_from_checkpoint {resume}: no such folder.")
        return resume
    whole = (path.parent for path in folder.glob("checkpoint-*/trainer_state.json"))  # the trainer writes it last
    numbered = (path for path in whole if path.name.rpartition("-")[2].isdigit())
    checkpoints = sorted(numbered, key=lambda path: int(path.name.rpartition("-")[2]))
    if not checkpoints:
        raise InputError(
            f"--resume_from_checkpoint last: {folder} has no whole checkpoint; start again with --overwrite true."
        )
    return str(checkpoints[-1])


def require_best_weights(kept: Mapping[str, Tensor], best: Mapping[str, Tensor] | None, checkpoint: str | None) -> None:
    """The trainer only logs an error when it cannot load the best checkpoint, and then keeps the last weights."""
    if best is None:
        raise RuntimeError("The trainer kept no best checkpoint; eval_strategy and save_strategy must be equal.")
    for name, tensor in kept.items():
        if name not in best or not torch.equal(tensor.cpu(), best[name].cpu()):
            raise RuntimeError(f"The weights kept are not those of the best checkpoint {checkpoint} ({name}).")
