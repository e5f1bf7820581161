"""Folders in the cache of `datasets` that are written once: what is known about texts, and their rows of tokens."""

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

from datasets import config
from huggingface_hub.utils import WeakFileLock

from mrs_suggest.common.io.files import atomic_folder, writing

RULES = 4  # version of the rules for texts and rows, and of their files: increment it if any changes


def cached_folder(key: str, write: Callable[[Path], None]) -> Path:
    """The folder of a key: one process of a node writes it, the others wait, and later ones find it.

    Raises:
        InputError: the folder cannot be written.
    """
    name = hashlib.sha256(f"{RULES} {key}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    folder = Path(config.HF_DATASETS_CACHE).expanduser() / "mrs-rows" / name
    if folder.is_dir():
        return folder
    with writing(folder, "set HF_DATASETS_CACHE to another folder"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with WeakFileLock(folder.with_suffix(".lock")):
            if not folder.is_dir():
                for left in folder.parent.glob(f".{name}.partial-*"):  # by a killed process
                    shutil.rmtree(left, ignore_errors=True)
                with atomic_folder(folder) as new:
                    write(new)
    return folder
