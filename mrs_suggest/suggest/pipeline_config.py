"""The file by which `transformers.pipeline` recognises the folder of a retriever.

It reads `config.json` before anything else. A generator has its own; a retriever, whose encoders lie in subfolders, has
this one, which sentence-transformers does not read.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

MODEL_TYPE = "mrs-retriever"
_FILE = "config.json"


def save_config(folder: Path, **more: object) -> None:
    """Write the file into the folder of a retriever, with further entries."""
    (folder / _FILE).write_text(f"{json.dumps({'model_type': MODEL_TYPE, **more})}\n", encoding="utf-8")


@cache
def register_config() -> type[PreTrainedConfig]:
    """Make the `config.json` of retrievers known to `AutoConfig`; return its class."""
    from transformers import AutoConfig, PreTrainedConfig

    class RetrieverConfig(PreTrainedConfig):
        """The `config.json` of a retriever; it only marks the folder."""

        model_type = MODEL_TYPE

    AutoConfig.register(MODEL_TYPE, RetrieverConfig, exist_ok=True)
    return RetrieverConfig
