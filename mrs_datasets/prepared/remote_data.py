"""Prepared folders at URLs: copied once into a local cache, and checked by the hashes of their report."""

from __future__ import annotations

import errno
import hashlib
import json
import re
import sys
from pathlib import Path
from typing import Any, BinaryIO

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io.files import atomic_file, atomic_write, writing
from mrs_suggest.common.io.remote import BUFFER_BYTES, RemotePath
from mrs_suggest.common.io.remote_errors import NO_BUCKET
from mrs_suggest.common.io.storage import fetch, location, reaching

REPORT = "report.json"
BESIDE = ("README.md", "report.html")  # of some folders, without hashes
_INSIDE = re.compile(r"data/[^/\\]+/[^/\\]+\.parquet")


def fetched(url: str) -> Path:
    """The local copy of a prepared folder at a URL; files that are there already are not fetched again.

    The copy is in `HF_HOME/mrs-suggest/data/`, named by the URL and the report's contents: a folder that was built
    again is another one. A file appears there when it is whole and its SHA-256 is the report's.

    Raises:
        InputError: there is no prepared folder, it cannot be reached, a file is not as its report says, or the disk
            is full.
    """
    folder = location(url)
    assert isinstance(folder, RemotePath)
    report = _report(folder)
    files = _files(folder, report)
    key = hashlib.sha256(f"{folder}\n{report}".encode()).hexdigest()[:16]
    copy = _cache() / key / folder.name
    with writing(copy, "free space there, or set HF_HOME to a folder of another disk"):
        left = [entry for entry in files if not _is_whole(copy / entry["path"], entry["bytes"])]
        _fetch(folder, copy, left)
        if not (copy / REPORT).is_file():
            for name in BESIDE:
                beside = folder / name
                with reaching(beside):
                    text = beside.read_text() if beside.is_file() else None
                if text is not None:
                    atomic_write(copy / name, text)
            atomic_write(copy / REPORT, report)
    return copy


def fetched_texts(url: str) -> Path:
    """The local copy of a prepared folder, a file, or a folder of files at a URL; all files directly in it are copied.

    A file whose size or time differs from when it was copied is copied again.

    Raises:
        InputError: there is nothing, it cannot be reached, or the disk is full.
    """
    place = location(url)
    assert isinstance(place, RemotePath)
    with reaching(place):
        if (place / REPORT).is_file():
            return fetched(url)
        alone = place.is_file()
        files = [place] if alone else sorted((path for path in _inside(place) if path.is_file()), key=str)
        facts = [f"{path.name} {path.size()} {path.stamp()}" for path in files]
    if not files:
        raise InputError(f"{place}: no such file or folder; pass text with one sentence a line, or a prepared folder.")
    key = hashlib.sha256("\n".join([str(place), *facts]).encode()).hexdigest()[:16]
    copy = _cache() / key / place.name
    with writing(copy, "free space there, or set HF_HOME to a folder of another disk"):
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not alone:
            copy.mkdir(exist_ok=True)
        for path in files:
            target = copy if alone else copy / path.name
            if not target.is_file():
                with reaching(path):
                    fetch(path, target)
    return copy


def _inside(folder: RemotePath) -> list[RemotePath]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _cache() -> Path:
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "mrs-suggest" / "data"


def _report(folder: RemotePath) -> str:
    with reaching(folder):
        try:
            return (folder / REPORT).read_text()
        except RemoteError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR) or str(error) == NO_BUCKET:
                raise
        except UnicodeDecodeError:
            pass
    raise InputError(f"{folder}: not a prepared folder (no {REPORT} in it); pass the URL that a build wrote.")


def _files(folder: RemotePath, report: str) -> list[dict[str, Any]]:
    """The entries of the Parquet files in a report: path, bytes, sha256."""
    try:
        configs = json.loads(report)["configs"]
        files = [entry for splits in configs.values() for facts in splits.values() for entry in facts["files"]]
        sound = all(
            _INSIDE.fullmatch(entry["path"]) and ".." not in entry["path"] and entry["bytes"] >= 0 and entry["sha256"]
            for entry in files
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound, files = False, []
    if not sound or not files:
        raise InputError(f"{folder / REPORT}: does not list the folder's files with their SHA-256; prepare it again.")
    return files


def _is_whole(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def _fetch(folder: RemotePath, copy: Path, files: list[dict[str, Any]]) -> None:
    from tqdm import tqdm

    total = sum(entry["bytes"] for entry in files)
    with tqdm(total=total, desc="fetch", unit="B", unit_scale=True, disable=not sys.stderr.isatty()) as bar:
        for entry in files:
            there, here = folder / entry["path"], copy / entry["path"]
            here.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(here) as partial, partial.open("wb") as target:
                with reaching(there), there.open() as source:
                    found = _copied(source, target, bar.update)
                target.flush()
                if found != entry["sha256"]:
                    raise InputError(
                        f"{there}: does not match its SHA-256 in {REPORT}; it is damaged or of another build: send or "
                        "build the folder again."
                    )


def _copied(source: BinaryIO, target: BinaryIO, advance: Any) -> str:
    """Copy all of a file; its SHA-256."""
    digest = hashlib.sha256()
    while block := source.read(BUFFER_BYTES):
        digest.update(block)
        target.write(block)
        advance(len(block))
    return digest.hexdigest()
