"""The folder and the record of one run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import torch

from mrs_core.arguments import as_plain
from mrs_core.errors import InputError
from mrs_core.files import atomic_write, umask
from mrs_core.manifest import KEY as FILES
from mrs_core.manifest import list_files
from mrs_core.predictions import Prediction, write_predictions
from mrs_core.provenance import commit, hardware, versions
from mrs_core.publication import Publication
from mrs_evaluation.language_data import LanguageData
from mrs_models.adapters import base_of
from mrs_models.response_index import ResponseIndexes
from mrs_training.allowlist import ADAPTER as ADAPTER_FILES
from mrs_training.allowlist import FAMILIES, INDEXES, STAYS
from mrs_training.card import model_card
from mrs_training.curves import draw_curves
from mrs_training.reply.settings import Plan

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainerState

IDENTITY = "resume.json"  # what the checkpoints are of
RECORD = "run.json"  # written last: a folder that has it holds a finished run
TRAINING_ARGUMENTS = "training_args.bin"  # the trainer's, pickled
# What either family's model is made of, so that no file of an old model is read as one of the new.
MODEL_FILES = [
    "*.safetensors", "*config*.json", "modules.json", "generator.json", "tokenizer*", "special_tokens_map.json",
    "vocab*", "merges.txt", "*.model", "query_*", "document_*", "[0-9]_*", TRAINING_ARGUMENTS,
]  # fmt: skip
ADAPTER = "adapter"  # the folder of the adapters alone, where a run trained some
LAST = ("last", "true", "True")


class RunFolder:
    """Where a run writes. The trainer puts its checkpoints there; `finish` adds the rest.

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

    def require_same(self, identity: dict[str, Any]) -> None:
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

    def begin(self, identity: dict[str, Any]) -> None:
        """Make the folder ready for the run, now that its input is known to be good.

        Nothing may stay that could be taken for the new run's: an old index holds vectors of the old model.
        """
        stale = [] if self._resume else [RECORD]  # a resumed run's record stays until the model is replaced
        if self._overwrite and not self._resume:
            stale += ["README.md", "curves.png", "predictions*.tsv", ResponseIndexes.FOLDER, ADAPTER, "checkpoint-*"]
            stale += MODEL_FILES
        for path in {path for pattern in stale for path in self.folder.glob(pattern)}:  # two patterns may name one file
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write(self.folder / IDENTITY, _json(identity))

    @staticmethod
    def predictions_name(language: str) -> str:
        """The file of a language's test messages, their replies and the suggestions."""
        return f"predictions.{language}.tsv"

    def finish(
        self,
        record: dict[str, Any],
        parts: list[LanguageData],
        suggestions: dict[str, list[list[str]]],
        log_history: list[dict[str, Any]],
    ) -> None:
        """Write predictions, curves, card, and last the record; the model is there already."""
        for part in parts:
            rows = zip(part.test["message"][:], part.test["reply"][:], suggestions[part.language], strict=True)
            path = self.folder / self.predictions_name(part.language)
            write_predictions(path, (Prediction(m, r, tuple(s)) for m, r, s in rows))
        with suppress(OSError):
            (self.folder / "eval").rmdir()  # the trainer's, empty
        draw_curves(log_history, record["best_step"], self.folder / "curves.png")
        _readable(self.folder)
        write_record(self.folder, record)


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the card, and last `run.json` with the hashes of the model's files, which are there already."""
    record = {**record, FILES: list_files(folder, model_files(folder))}
    atomic_write(folder / "README.md", model_card(record))
    atomic_write(folder / RECORD, _json(record))


def model_files(folder: Path) -> list[Path]:
    """All files that `mrs suggest` and the libraries read of a run's model, its response indexes and its adapters."""
    found = [path for pattern in (*MODEL_FILES, ResponseIndexes.FOLDER, ADAPTER) for path in folder.glob(pattern)]
    files = {file for path in found for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()}
    return sorted(file for file in files if file.name != TRAINING_ARGUMENTS)


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> dict[str, Any]:
    """The `run.json` of a finished run.

    Raises:
        InputError: there is none, or it is no JSON object with figures.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        record["metrics"]["systems"]["Model"]["pooled"], record["metrics"]["signatures"]
    except OSError:
        raise InputError(
            f"{folder}: no {RECORD}, so no finished run; pass the folder that a training run wrote."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: damaged or not written by a trainer; train the model again.") from None
    return dict(record)


def publication(folder: Path, record: dict[str, Any], repo_id: str, card: str) -> Publication:
    """What is published of a run: model, response indexes, record, curves, and the card for that repository.

    `mrs_training.allowlist` names the files, by the family that the record tells. Checkpoints stay at home, and
    predictions too: they hold the test split's texts.

    Raises:
        InputError: the record's family is unknown, or the folder has no weights.
    """
    family = str(record.get("trainer"))
    if family not in FAMILIES:
        raise InputError(
            f"{folder / RECORD}: expected the trainer to be {' or '.join(FAMILIES)}, found {family!r}; train the "
            "model again."
        )
    what = Publication("model", repo_id, folder, FAMILIES[family], STAYS, instead={"README.md": card.encode()})
    return _with_weights(what)


def adapter_publication(folder: Path, repo_id: str, card: str) -> Publication:
    """What is published of a run's adapters alone: they, the response indexes or generator's settings, and the card.

    Raises:
        InputError: the run trained no adapters, or their base is no model of the hub, where others could find it.
    """
    own = folder / ADAPTER
    base, _ = base_of(own)
    if Path(base).exists() or base.count("/") != 1:
        raise InputError(
            f"{own}: the base {base} is a folder of this machine; publish it, and train with its name on the hub."
        )
    others = Publication("model", repo_id, folder, (*INDEXES, "curves.png")).files()
    record = _json(_of_adapter(read_record(folder))).encode()
    instead = {**others, RECORD: record, "README.md": card.encode()}
    return _with_weights(Publication("model", repo_id, own, ADAPTER_FILES, STAYS, instead=instead))


def _with_weights(what: Publication) -> Publication:
    if not any(PurePath(name).match("*model*.safetensors") for name in what.files()):
        raise InputError(f"{what.folder}: holds no weights (*.safetensors), so no model; train it again.")
    return what


def _of_adapter(record: dict[str, Any]) -> dict[str, Any]:
    """A run's record for the repository of its adapters, which are at the top there."""
    above, indexes = f"{ADAPTER}/", f"{ResponseIndexes.FOLDER}/"
    files = record.get(FILES)
    if files is None:  # of an older run
        return record
    kept = {name.removeprefix(above): entry for name, entry in files.items() if name.startswith((above, indexes))}
    return {**record, FILES: kept}


def _readable(folder: Path) -> None:
    """Weights are written for their owner alone; give them the rights that any new file has."""
    mode = 0o666 & ~umask()
    for path in folder.rglob("*.safetensors"):
        path.chmod(mode)


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


def _without_places(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments without the folders above local paths: the record is published, and those name people and machines."""
    plain = {
        key: f".../{Path(value).name}" if isinstance(value, str) and Path(value).is_absolute() else value
        for key, value in arguments.items()
    }
    base = str(plain.get("model_name_or_path", "tiny"))
    if base != "tiny" and not base.startswith(".") and Path(base).is_dir():
        plain["model_name_or_path"] = f"./{base}"  # so that nobody takes it for a name on the hub
    return plain


def run_record(
    *,
    trainer: str,
    options: Sequence[Any],
    seed: int,
    data: dict[str, Any],
    plan: Plan,
    state: TrainerState,
    figures: dict[str, Any],
    milliseconds: dict[str, float],
    seconds: float,
) -> dict[str, Any]:
    """Everything that is needed to repeat a run and to write its card."""
    best = state.best_model_checkpoint
    return {
        "trainer": trainer,
        "arguments": _without_places({key: value for part in options for key, value in as_plain(part).items()}),
        "seed": seed,
        "commit": commit(),
        "versions": versions(),
        "hardware": hardware(),
        "data": data,
        "plan": {
            "setting": plan.setting,
            "train": [source.config for source in plan.sources],
            "sampling_alpha": plan.sampling_alpha,
            "validation": list(plan.validation),
            "test": list(plan.test),
        },
        "steps": state.global_step,
        "epochs": state.epoch,
        "best_step": int(best.rpartition("-")[2]) if best else None,
        "best_metric": state.best_metric,
        "seconds": round(seconds, 1),
        "milliseconds": milliseconds,
        "metrics": figures,
    }
