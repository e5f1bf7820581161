"""What tests read in the folder of a run: its record, and what a checkpoint has logged."""

import json
from pathlib import Path
from typing import Any

CLOCKS = ("runtime", "per_second")


def record(folder: Path) -> dict[str, Any]:
    """`run.json`."""
    found: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return found


def log(folder: Path, step: int) -> list[dict[str, Any]]:
    """The log up to a checkpoint, without its clocks."""
    state = json.loads((folder / f"checkpoint-{step}" / "trainer_state.json").read_text(encoding="utf-8"))
    return [{key: value for key, value in entry.items() if not key.endswith(CLOCKS)} for entry in state["log_history"]]


def curve(folder: Path, name: str, step: int) -> list[Any]:
    """The values of one figure in that log."""
    return [entry[name] for entry in log(folder, step) if name in entry]
