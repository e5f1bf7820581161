"""The folders with models and data, the shipped models, and the hub."""

from __future__ import annotations

import os
import shutil
import time
import urllib.error
import urllib.request
from itertools import islice
from pathlib import Path
from urllib.parse import urlsplit

from mrs_suggest.cli.doctor.finding import BROKEN, NOTE, OK, Finding
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.hub.installed import DATA_SET, METRIC, Cache
from mrs_suggest.common.io.manifest import require_undamaged

MOST_FILES = 20_000  # that are counted: a hub cache of some hundred models; more would take seconds
LITTLE_SPACE = 5 << 30  # bytes: a multilingual encoder, its run and a data set
SECONDS = 3.0  # of waiting for the hub


def default_caches() -> list[Cache]:
    """The caches of `mrs_suggest.common.hub.installed.caches`, without importing the libraries that own them."""
    from huggingface_hub.constants import HF_HOME

    data = os.environ.get("HF_DATASETS_CACHE") or Path(HF_HOME) / "datasets"
    modules = os.environ.get("HF_MODULES_CACHE") or Path(HF_HOME) / "modules"
    return [Cache(Path(data).expanduser(), DATA_SET), Cache(Path(modules).expanduser(), METRIC)]


def caches() -> list[Finding]:
    """The caches of the hub, of data sets and of metrics, with their sizes, and the space on the disk."""
    from huggingface_hub.constants import HF_HUB_CACHE

    data, modules = default_caches()
    hub = Path(HF_HUB_CACHE)
    free = shutil.disk_usage(next(path for path in (hub, *hub.parents) if path.exists())).free
    return [
        _place("models and data of the hub", hub),
        _place("data sets", data.root),
        _place("metrics", modules.root),
        _installed("data sets of `mrs install`", data),
        _installed("metrics of `mrs install`", modules),
        Finding("caches", "disk", OK if free > LITTLE_SPACE else NOTE, f"{shown_bytes(free)} free for {hub}"),
    ]


def shipped_models() -> list[Finding]:
    """The models that are part of the package, by the hashes of their files."""
    found = []
    for name, baseline in read_baselines().items():
        if baseline.embedded:
            try:
                count = require_undamaged(baseline.folder, verify=True)
                found.append(Finding("models", name, OK, f"part of the package; {count} files with the right hash"))
            except InputError as error:
                found.append(Finding("models", name, BROKEN, f"{error} Install mrs-suggest again."))
    return found


def shown_bytes(size: int) -> str:
    """A size for people.

    >>> shown_bytes(0), shown_bytes(2_500_000), shown_bytes(3 << 30)
    ('0 MB', '3 MB', '3.2 GB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{-(-size // 1_000_000)} MB"


def _place(name: str, folder: Path) -> Finding:
    if not folder.exists():
        return Finding("caches", name, OK, f"{folder} (does not exist yet)")
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Finding("caches", name, BROKEN, f"{folder} is not writable; change its permissions, or set HF_HOME")
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    sizes = [path.lstat().st_size for path in islice(files, MOST_FILES)]
    more = "at least " if len(sizes) == MOST_FILES else ""
    return Finding("caches", name, OK, f"{folder}, {more}{shown_bytes(sum(sizes))}")


def _installed(name: str, cache: Cache) -> Finding:
    try:
        listed = cache.listed()
    except InputError as error:
        return Finding("caches", name, BROKEN, str(error))
    gone = [folder for folder in listed if not folder.exists()]
    if gone:
        return Finding("caches", name, BROKEN, f"{gone[0]} is gone; run `mrs install` again")
    return Finding("caches", name, OK, f"{len(listed)} folders" if listed else "none")


def hub() -> list[Finding]:
    """Whether the hub (`HF_ENDPOINT`) answers, and whether there is a token, which is never shown."""
    from huggingface_hub import constants, get_token

    token = "present" if get_token() else "none; `hf auth login` sets one, for private repositories and for publishing"
    parts = urlsplit(constants.ENDPOINT)
    address = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    if constants.HF_HUB_OFFLINE:
        state, says = NOTE, f"HF_HUB_OFFLINE is set: no requests to {address}"
    else:
        state, says = _reached(constants.ENDPOINT, address)
    return [Finding("hub", "connection", state, says), Finding("hub", "token", OK, token)]


def _reached(url: str, address: str) -> tuple[str, str]:
    started = time.monotonic()
    try:
        request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "mrs-suggest"})
        with urllib.request.urlopen(request, timeout=SECONDS):
            pass
    except urllib.error.HTTPError as error:  # it answers; an endpoint's first page may need a login
        error.close()
        if error.code >= 500:
            return NOTE, f"{address} answers with error {error.code}; try later"
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or type(error).__name__
        advice = "cached files still work, and HF_HUB_OFFLINE=1 avoids the wait"
        return NOTE, f"{address} cannot be reached ({reason}); {advice}"
    return OK, f"{address} answers in {time.monotonic() - started:.1f} s"
