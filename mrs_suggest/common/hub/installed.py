"""The folders that `mrs install` put into the caches, so that `mrs install --remove` removes exactly these.

Each cache has its own list, `mrs-suggest/installed.json` in it, with the installed folders relative to the cache. A
folder is removed only if it is where `datasets` or `evaluate` would have put it, in a cache in use now, and not behind
a link.
"""

import json
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write

LIST = Path("mrs-suggest") / "installed.json"
_NAME = r"[^/]+"
DATA_SET = re.compile(rf"{_NAME}/{_NAME}/\d+\.\d+\.\d+/[0-9a-f]{{16}}")  # name, config, version, hash
METRIC = re.compile(rf"evaluate_modules/metrics/evaluate-metric--{_NAME}/[0-9a-f]{{64}}")


@dataclass(frozen=True)
class Cache:
    """A cache of the libraries. `layout`: the paths of the libraries' folders in it, four names deep."""

    root: Path
    layout: re.Pattern[str]

    @property
    def manifest(self) -> Path:
        """The list of what was installed there."""
        return self.root / LIST

    def listed(self) -> list[Path]:
        """The folders of the list; InputError if it is damaged, or `mrs install` cannot have put one there."""
        if not self.manifest.is_file():
            return []
        try:
            names = json.loads(self.manifest.read_text(encoding="utf-8"))["folders"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise InputError(
                f"{self.manifest}: the list of installed folders is damaged; delete it and install again."
            ) from None
        for name in names:
            if self.name_of(self.root / name) != name:
                raise InputError(
                    f"{self.manifest}: names {name!r}, where `mrs install` puts nothing; nothing was removed. Delete "
                    "that line, or delete the list to leave all folders where they are."
                )
        return [self.root / name for name in names]

    def name_of(self, folder: Path) -> str | None:
        """A folder relative to the cache, if an installed one may be there; None for any other, and for links."""
        root = os.path.realpath(self.root)
        # The path to the cache may contain links, since people move caches; below it we never create one.
        place = Path(os.path.realpath(folder.parents[3]), *folder.parts[-4:]) if len(folder.parts) > 4 else folder
        name = os.path.relpath(place, root)
        inside = bool(self.layout.fullmatch(name)) and not {".", ".."} & set(name.split("/"))
        return name if inside and os.path.realpath(place) == os.path.join(root, name) else None

    def write(self, folders: Iterable[Path]) -> None:
        self.manifest.parent.mkdir(parents=True, exist_ok=True)
        names = [os.path.relpath(os.path.realpath(folder), os.path.realpath(self.root)) for folder in folders]
        atomic_write(self.manifest, json.dumps({"folders": names}, indent=2, ensure_ascii=False) + "\n")


def caches() -> list[Cache]:
    """The caches of data sets and of metric modules, by the libraries' current settings."""
    import datasets.config
    import evaluate.config

    return [
        Cache(Path(datasets.config.HF_DATASETS_CACHE).expanduser(), DATA_SET),
        Cache(Path(evaluate.config.HF_MODULES_CACHE).expanduser(), METRIC),
    ]


def installed_folders() -> list[Path]:
    """The folders that were installed into the current caches and are still there; InputError for a damaged list."""
    return [folder for cache in caches() for folder in cache.listed()]


def record_installed(folders: Iterable[Path]) -> None:
    """Replace the list of each cache that holds the folders; folders that are only on the old list are removed."""
    known = caches()
    found: dict[Cache, list[Path]] = {}
    for folder in folders:
        cache = next((cache for cache in known if cache.name_of(folder)), None)
        if cache is None:
            raise ValueError(f"{folder} is not in a cache that the libraries use.")
        found.setdefault(cache, []).append(folder)
    for cache, new in found.items():
        names = {cache.name_of(folder) for folder in new}
        for folder in cache.listed():
            if cache.name_of(folder) not in names:
                remove_cached(folder)
        cache.write(new)


def uninstall() -> list[Path]:
    """Remove every installed folder, parents that become empty, and the lists; return the removed folders."""
    removed = [folder for folder in installed_folders() if folder.exists()]
    for folder in removed:
        remove_cached(folder)
    for cache in caches():
        cache.manifest.unlink(missing_ok=True)
        with suppress(OSError):
            cache.manifest.parent.rmdir()
    return removed


def remove_cached(folder: Path) -> None:
    """Remove a folder, the library's lock files for it, and its parents if nothing else is in them."""
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
