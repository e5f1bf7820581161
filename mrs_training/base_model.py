"""The licence that a base model's card states."""

from __future__ import annotations

from pathlib import Path

import yaml

from mrs_core import hub
from mrs_training.options import TINY

CARD = "README.md"


def base_license(name: str, revision: str | None = None) -> str | None:
    """The licence that the card of a checkpoint states, as the hub names it; None if it states none.

    Args:
        name: a folder or a hub id; the small model from scratch has no card.
    """
    if name == TINY:
        return None
    from huggingface_hub import ModelCard

    path = Path(name) / CARD if Path(name).is_dir() else hub.cached_file("model", name, CARD, revision)
    try:
        text = path.read_text(encoding="utf-8") if path else ""
        found = ModelCard(text, ignore_metadata_errors=True).data.to_dict().get("license")
    except (OSError, ValueError, yaml.YAMLError):  # an unreadable card states nothing
        return None
    return found if isinstance(found, str) and found.strip() else None
