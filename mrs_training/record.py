"""`run.json`: what repeats a run of any task, its figures, and the hashes of the model's files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_core.arguments import as_plain
from mrs_core.errors import InputError
from mrs_core.files import atomic_write
from mrs_core.manifest import KEY as FILES
from mrs_core.manifest import list_files
from mrs_core.provenance import commit, hardware, versions
from mrs_training.allowlist import ADAPTER_FOLDER, CARD, RECORD
from mrs_training.card import Record
from mrs_training.family import Family
from mrs_training.options import TINY, RunArguments

if TYPE_CHECKING:
    from transformers import TrainerState, TrainingArguments


def run_record(
    *,
    trainer: str,
    options: Sequence[RunArguments | TrainingArguments],
    seed: int,
    facts: Record,
    state: TrainerState,
    figures: Record,
    milliseconds: dict[str, float],
    seconds: float,
) -> Record:
    """Everything that is needed to repeat a run and to write its card.

    Args:
        trainer: the family's name.
        options: the trainer's own and the library's, each a dataclass.
        facts: what the task tells of its data, `data` at least; each key becomes one of the record.
        figures: what the evaluation found; empty where there was none.
        milliseconds: to answer, by system.
    """
    best = state.best_model_checkpoint
    return {
        "trainer": trainer,
        "arguments": _without_places({key: value for part in options for key, value in as_plain(part).items()}),
        "seed": seed,
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
    }


def _without_places(arguments: Record) -> Record:
    """Arguments without the folders above local paths: the record is published, and those name people and machines."""
    plain = {
        key: f".../{Path(value).name}" if isinstance(value, str) and Path(value).is_absolute() else value
        for key, value in arguments.items()
    }
    base = str(plain.get("model_name_or_path", TINY))
    if base != TINY and not base.startswith(".") and Path(base).is_dir():
        plain["model_name_or_path"] = f"./{base}"  # so that nobody takes it for a name on the hub
    return plain


def write_record(folder: Path, record: Record, family: Family) -> None:
    """Write the card, and last `run.json` with the hashes of the model's files, which are there already."""
    record = {**record, FILES: list_files(folder, family.model_files(folder))}
    atomic_write(folder / CARD, family.card(record))
    atomic_write(folder / RECORD, as_json(record))


def as_json(record: Record) -> str:
    """The text of `run.json`."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> Record:
    """The `run.json` of a finished run.

    Raises:
        InputError: there is none, or it is no JSON object with a trainer's name and figures.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        record["trainer"], record["metrics"]
    except OSError:
        raise InputError(
            f"{folder}: no {RECORD}, so no finished run; pass the folder that a training run wrote."
        ) from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: damaged or not written by a trainer; train the model again.") from None
    return dict(record)


def of_adapter(record: Record, others: Sequence[str]) -> Record:
    """A run's record for the repository of its adapters, which are at the top there.

    Args:
        others: files of the run that go there besides.
    """
    files = record.get(FILES)
    if files is None:  # of an older run
        return record
    above = f"{ADAPTER_FOLDER}/"
    kept = {name.removeprefix(above): entry for name, entry in files.items() if name.startswith(above)}
    return {**record, FILES: kept | {name: files[name] for name in others if name in files}}
