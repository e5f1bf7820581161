"""Folders in the cache of `datasets` that are written once: what is known about texts, and their rows of tokens."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from datasets import config
from huggingface_hub.utils import WeakFileLock

from mrs_suggest.common.io.files import atomic_folder, writing

RULES = 2  # version of the rules for texts and rows, and of their files: increment it if any changes
UNUSED = 90  # days after which a folder that no run has opened is deleted


def kept(key: str, write: Callable[[Path], None]) -> Path:
    """The folder of a key: one process of a node writes it, the others wait, and later ones find it.

    Whoever writes a folder deletes those that nobody has opened for `UNUSED` days, and what killed processes left.

    Raises:
        InputError: the folder cannot be written.
    """
    name = hashlib.sha256(f"{RULES} {key}".encode("utf-8", "surrogateescape")).hexdigest()[:32]
    folder = Path(config.HF_DATASETS_CACHE).expanduser() / "mrs-rows" / name
    if not folder.is_dir():
        with writing(folder, "set HF_DATASETS_CACHE to another folder"):
            folder.parent.mkdir(parents=True, exist_ok=True)
            with WeakFileLock(folder.with_suffix(".lock")):
                if not folder.is_dir():
                    oldest = time.time() - UNUSED * 24 * 60 * 60
                    for other in folder.parent.iterdir():
                        with suppress(FileNotFoundError):  # another process deletes it, too
                            if other.name.startswith(f".{name}.partial-") or other.stat().st_mtime < oldest:
                                shutil.rmtree(other, ignore_errors=True)
                    with atomic_folder(folder) as new:
                        write(new)
    with suppress(OSError):  # a cache that can only be read
        os.utime(folder)
    return folder
