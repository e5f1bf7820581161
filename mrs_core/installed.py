"""What `mrs install` put into the caches, so that `mrs uninstall` removes exactly that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from mrs_core.errors import InputError
from mrs_core.files import write_whole


def manifest_path() -> Path:
    """The list of installed folders, beside the caches that hold them."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "mrs-suggest" / "installed.json"


def installed_folders() -> list[Path]:
    """The folders that were installed and not removed since.

    Raises:
        InputError: the list is damaged.
    """
    path = manifest_path()
    if not path.is_file():
        return []
    try:
        return [Path(folder) for folder in json.loads(path.read_text(encoding="utf-8"))["folders"]]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: the list of installed folders is damaged; delete it and install again.") from None


def record_installed(folders: Iterable[Path]) -> None:
    """Replace the list; folders of an earlier install that are not in the new one are removed."""
    new = [Path(folder) for folder in folders]
    for folder in installed_folders():
        if folder not in new:
            remove_cached(folder)
    manifest_path().parent.mkdir(parents=True, exist_ok=True)
    write_whole(manifest_path(), json.dumps({"folders": [str(folder) for folder in new]}, indent=2) + "\n")


def uninstall() -> list[Path]:
    """Remove every installed folder, parents that are empty then, and the list; return what was removed."""
    removed = [folder for folder in installed_folders() if folder.exists()]
    for folder in removed:
        remove_cached(folder)
    manifest_path().unlink(missing_ok=True)
    with suppress(OSError):
        manifest_path().parent.rmdir()
    return removed


def remove_cached(folder: Path) -> None:
    """Remove a folder, the lock files that the library left for it, and its parents where nothing else is in them."""
    shutil.rmtree(folder, ignore_errors=True)
    parents = list(folder.parents)
    for parent, pattern in ((parents[0], f"{folder.name}*.lock"), (parents[min(3, len(parents) - 1)], "*.lock")):
        for lock in parent.glob(pattern):
            if folder.name in lock.name:
                lock.unlink(missing_ok=True)
    for parent in parents[:3]:  # version, config, data set; or metric module
        if {path.name for path in parent.iterdir()} - {"__init__.py", "__pycache__"} if parent.is_dir() else True:
            break
        shutil.rmtree(parent)
