"""`run.json`, the record of a trained model: read and written as it is."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import KEY as FILES
from mrs_suggest.models.saved.allowlist import ADAPTER_FOLDER, RECORD

Record = dict[str, Any]  # the JSON of `run.json`


def as_json(record: Record) -> str:
    """The text of a JSON file of the run."""
    return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def read_record(folder: Path) -> Record:
    """The `run.json` of a finished run; InputError if it is missing, or lacks the trainer's name or figures."""
    path = folder / RECORD
    try:
        if path.exists() and not path.is_file():  # such as a pipe, for which reading would wait
            raise ValueError("no file")
        record = json.loads(path.read_text(encoding="utf-8"))
        record["trainer"], record["metrics"]
    except OSError:
        raise InputError(
            f"{folder}: no {RECORD}, so not a finished run; pass the folder that a training run wrote."
        ) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InputError(f"{path}: damaged or not written by a trainer; train the model again.") from None
    return dict(record)


def of_adapter(record: Record, others: Sequence[str]) -> Record:
    """A run's record for the repository of its adapters, where they are at the top level.

    Args:
        others: the run's other files that are published there.
    """
    files = record.get(FILES, {})
    above = f"{ADAPTER_FOLDER}/"
    kept = {name.removeprefix(above): entry for name, entry in files.items() if name.startswith(above)}
    own = {key: value for key, value in record.items() if key != "exports"}  # they stay with the merged model
    return {**own, FILES: kept | {name: files[name] for name in others if name in files}}
