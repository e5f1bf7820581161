"""What a base model's folder or repository says of it: its licence, and what it started from itself."""

from __future__ import annotations

import json
from typing import Any

from mrs_suggest.models.checkpoint_loading import stated_license
from mrs_suggest.models.starting_points import checkpoint_file
from mrs_suggest.training.options import FROM_SCRATCH

CARD, RECORD = "README.md", "run.json"


def base_license(name: str, revision: str | None = None) -> str | None:
    """The licence that the card of a checkpoint states, as the hub names it; None if it states none.

    Args:
        name: a folder or a hub id; the small model from scratch has no card.
    """
    if name in FROM_SCRATCH:
        return None
    path = checkpoint_file(name, CARD, revision)
    found = stated_license(path) if path else None
    return found if isinstance(found, str) and found.strip() else None


def started_from(name: str, revision: str | None = None) -> list[str]:
    """What a trained model started from, the nearest first, as NAME or NAME@REVISION; none where no record tells it.

    Args:
        name: a folder or a hub id, whose `run.json` is read; the small model from scratch has none.
    """
    path = checkpoint_file(name, RECORD, revision) if name not in FROM_SCRATCH else None
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path else {}
        base, base_revision = record["arguments"]["model_name_or_path"], record["arguments"].get("model_revision")
        before = record.get("started_from", [])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # not a record of a run
        return []
    nearest = f"{base}@{base_revision}" if base_revision else str(base)
    return [nearest, *map(str, before if isinstance(before, list) else [])]
