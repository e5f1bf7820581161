"""Prepared folders at URLs: copied once into a local cache, and checked by the hashes of their report."""

import errno
import hashlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from mrs_datasets.prepared.report import REPORT, FileEntry, parse_report
from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io.files import atomic_file, atomic_write, file_sha256, writing
from mrs_suggest.common.io.remote import RemotePath
from mrs_suggest.common.io.remote_errors import NO_BUCKET
from mrs_suggest.common.io.storage import fetch, location, reaching

UNLISTED = ("README.md", "report.html")  # of some folders; the report has no hashes of them
FULL = "free space there, or set HF_HOME to a folder of another disk"


def fetched(url: str) -> Path:
    """The local copy of a prepared folder at a URL; files that were copied before are not copied again.

    The copy is in `HF_HOME/mrs-suggest/data/`, named by the URL and the report's contents, so that a rebuilt folder
    gets a new copy. A file appears there when it is complete and its SHA-256 matches the report.

    Raises:
        InputError: not a prepared folder, it cannot be reached, a file does not match the report, or the disk is full.
    """
    folder = location(url)
    assert isinstance(folder, RemotePath)
    text = _report_text(folder)
    try:
        configs = parse_report(text).get("configs", {})
        files = [entry for splits in configs.values() for facts in splits.values() for entry in facts["files"]]
        if not files:
            raise ValueError("no files are listed")
    except ValueError as error:
        raise InputError(
            f"{folder / REPORT}: does not list the folder's files with their SHA-256 ({error}); prepare it again."
        ) from None
    copy = _copy_of(folder, text)
    with writing(copy, FULL), _one_at_a_time(copy):
        _fetch(folder, copy, files)
        if not (copy / REPORT).is_file():
            for name in UNLISTED:
                with reaching(folder / name):
                    found = (folder / name).read_text() if (folder / name).is_file() else None
                if found is not None:
                    atomic_write(copy / name, found)
            atomic_write(copy / REPORT, text)
    return copy


def fetched_texts(url: str) -> Path:
    """The local copy of a prepared folder, a file, or the files directly in a folder at a URL.

    A file whose size or time has changed since then is copied again.

    Raises:
        InputError: nothing is there, it cannot be reached, or the disk is full.
    """
    place = location(url)
    assert isinstance(place, RemotePath)
    with reaching(place):
        if (place / REPORT).is_file():
            return fetched(url)
        alone = place.is_file()
        inside = list(place.iterdir()) if place.is_dir() else []
        files = [place] if alone else sorted((path for path in inside if path.is_file()), key=str)
        facts = [f"{path.name} {path.size()} {path.stamp()}" for path in files]
    if not files:
        raise InputError(f"{place}: no such file or folder; pass text with one sentence a line, or a prepared folder.")
    copy = _copy_of(place, "\n".join(facts))
    with writing(copy, FULL), _one_at_a_time(copy):
        (copy.parent if alone else copy).mkdir(parents=True, exist_ok=True)
        for path in files:
            target = copy if alone else copy / path.name
            if not target.is_file():
                with reaching(path):
                    fetch(path, target)
    return copy


def cache_folder(kind: str, digest: str) -> Path:
    """Where something is kept with the caches of the hub's libraries, by a hexadecimal digest of what it is made of."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "mrs-suggest" / kind / digest[:16]


@contextmanager
def _one_at_a_time(copy: Path) -> Iterator[None]:
    """Make other processes wait, which then find what this one copied; not in a cache that cannot be written."""
    from huggingface_hub.utils import WeakFileLock

    with ExitStack() as held:
        with suppress(OSError):
            copy.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(WeakFileLock(copy.parent / ".lock"))
        yield


def _copy_of(place: RemotePath, facts: str) -> Path:
    return cache_folder("data", hashlib.sha256(f"{place}\n{facts}".encode()).hexdigest()) / place.name


def _report_text(folder: RemotePath) -> str:
    with reaching(folder):
        try:
            return (folder / REPORT).read_text()
        except RemoteError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or str(error) == NO_BUCKET:
                raise
        except UnicodeDecodeError:
            pass
    raise InputError(f"{folder}: not a prepared folder (no {REPORT} in it); pass the URL that a build wrote.")


def _fetch(folder: RemotePath, copy: Path, files: list[FileEntry]) -> None:
    from tqdm import tqdm

    here = {path.relative_to(copy).as_posix(): path.stat().st_size for path in copy.rglob("*.parquet")}
    left = [entry for entry in files if here.get(entry["path"]) != entry["bytes"]]
    total = sum(entry["bytes"] for entry in left)
    with tqdm(total=total, desc="fetch", unit="B", unit_scale=True, disable=not sys.stderr.isatty()) as bar:
        for entry in left:
            there, target = folder / entry["path"], copy / entry["path"]
            target.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(target) as partial:
                with reaching(there):
                    fetch(there, partial)
                if file_sha256(partial) != entry["sha256"]:
                    raise InputError(
                        f"{there}: does not match its SHA-256 in {REPORT}; it is damaged or from another build: send "
                        "or build the folder again."
                    )
            bar.update(entry["bytes"])
