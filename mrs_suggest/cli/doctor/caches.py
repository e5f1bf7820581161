"""Where models and data are kept, how large that is, and what `mrs install` put there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from mrs_suggest.cli.doctor.finding import BROKEN, NOTE, OK, Finding
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.hub.installed import DATA_SET, METRIC, Cache
from mrs_suggest.common.io.manifest import require_undamaged

FILES_LOOKED_AT = 20_000  # a hub cache of some hundred models; more would take seconds
LITTLE_SPACE = 5 << 30  # bytes: a multilingual encoder, its run and a data set


def default_caches() -> list[Cache]:
    """The caches of `mrs_suggest.common.hub.installed.caches`, without importing the libraries that own them."""
    from huggingface_hub.constants import HF_HOME

    data = os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets"
    modules = os.environ.get("HF_MODULES_CACHE") or Path(HF_HOME) / "modules"
    return [Cache(Path(data).expanduser(), DATA_SET), Cache(Path(modules).expanduser(), METRIC)]


def check_caches() -> list[Finding]:
    """The caches of the hub, of data sets and of metrics, the space for them, and the model that ships."""
    from huggingface_hub.constants import HF_HUB_CACHE

    data, modules = default_caches()
    findings = [
        _place("models and data of the hub", Path(HF_HUB_CACHE)),
        _place("data sets", data.root),
        _place("metrics", modules.root),
    ]
    findings += [_installed(data, "data sets"), _installed(modules, "metrics"), _space(Path(HF_HUB_CACHE))]
    return findings + [_embedded(name) for name, baseline in read_baselines().items() if baseline.embedded]


def folder_bytes(folder: Path, most_files: int = FILES_LOOKED_AT) -> tuple[int, bool]:
    """The bytes of the files below a folder, links not followed, and whether these are all of its files."""
    total, left = 0, most_files
    for entry in _files(folder):
        if not left:
            return total, False
        total, left = total + entry.stat(follow_symlinks=False).st_size, left - 1
    return total, True


def shown_bytes(size: int) -> str:
    """A size for people.

    >>> shown_bytes(0), shown_bytes(2_500_000), shown_bytes(3 << 30)
    ('0 MB', '3 MB', '3.2 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{-(-size // 1_000_000)} MB"


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    open_folders = [str(folder)]
    while open_folders:
        try:
            with os.scandir(open_folders.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        open_folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        yield entry
        except OSError:  # removed meanwhile, or not ours to read
            continue


def _place(name: str, folder: Path) -> Finding:
    if not folder.exists():
        facts: dict[str, object] = {"path": str(folder), "bytes": 0}
        return Finding("caches", name, OK, f"{folder} (not made yet)", facts)
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding("caches", name, BROKEN, f"{folder} cannot be written; change its rights, or set HF_HOME")
    size, whole = folder_bytes(folder)
    facts = {"path": str(folder), "bytes": size, "complete": whole}
    return Finding("caches", name, OK, f"{folder}, {'' if whole else 'at least '}{shown_bytes(size)}", facts)


def _installed(cache: Cache, what: str) -> Finding:
    name = f"{what} of `mrs install`"
    try:
        listed = cache.listed()
    except InputError as error:
        return Finding("caches", name, BROKEN, str(error))
    gone = [folder for folder in listed if not folder.exists()]
    facts = {"folders": [str(folder) for folder in listed]}
    if gone:
        return Finding("caches", name, BROKEN, f"{gone[0]} is gone; run `mrs install` again", facts)
    return Finding("caches", name, OK, f"{len(listed)} folders" if listed else "none", facts)


def _space(folder: Path) -> Finding:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(there).free
    says = f"{shown_bytes(free)} free for {folder}"
    facts = {"path": str(folder), "free_bytes": free}
    return Finding("caches", "disk", OK if free > LITTLE_SPACE else NOTE, says, facts)


def _embedded(name: str) -> Finding:
    folder = read_baselines()[name].folder
    try:
        count = require_undamaged(folder, verify=True)
    except InputError as error:
        return Finding("models", name, BROKEN, f"{error} Install mrs-suggest again.")
    return Finding("models", name, OK, f"ships with the package; {count} files as they were written")
