"""The file by which `transformers.pipeline` recognises the folder of a retriever.

It reads `config.json` before anything else. A generator has its own; a retriever, whose encoders lie in subfolders, has
this one, which sentence-transformers does not read.
"""

from __future__ import annotations

import json
from pathlib import Path

MODEL_TYPE = "mrs-retriever"
_FILE = "config.json"


def save_config(folder: Path) -> None:
    """Write the file into the folder of a retriever."""
    (folder / _FILE).write_text(f"{json.dumps({'model_type': MODEL_TYPE})}\n", encoding="utf-8")
