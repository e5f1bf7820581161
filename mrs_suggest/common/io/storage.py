"""Files and folders on this machine or in a remote storage, behind the few operations that a build needs.

A `Location` is a `pathlib.Path`, or a `RemotePath` if it was given as a URL that fsspec knows. The functions accept
either, and raise an OSError (for a remote location a RemoteError) if it cannot be read or written. Remote files are
written in the location's local scratch folder, and sent when they are complete.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, cast

from mrs_suggest.common.errors import InputError, RemoteError, first_line
from mrs_suggest.common.io.files import atomic_file, atomic_folder, atomic_write, require_replaceable, to_disk, writing
from mrs_suggest.common.io.remote import BUFFER_BYTES, OBJECT_STORES, READ_ONLY, RemotePath
from mrs_suggest.common.io.remote_errors import NO_BUCKET, masked

if TYPE_CHECKING:
    import pyarrow as pa

UNFINISHED = ".mrs-unfinished"  # is in a remote folder while it is being filled
S3_EXTRA = "; run `pip install '.[s3]'` in a clone (docs/install.md)"
_URL = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")  # `simplecache::s3://`, too
_MAGIC = re.compile(r"[*?\[]")

Location: TypeAlias = Path | RemotePath


def is_url(text: str) -> bool:
    """Whether a text is a URL of an fsspec storage, not a local path.

    >>> is_url("s3://bucket/out"), is_url("file:///data/out"), is_url("data/out"), is_url("odd::name")
    (True, True, False, False)
    """
    return bool(_URL.match(text))


def location(text: str, scratch: Path | None = None) -> Location:
    """A local path, or a remote one if `text` is a URL.

    Raises:
        InputError: fsspec does not know the protocol, lacks a package for it, or the URL is not valid for it.
    """
    if not is_url(text):
        return Path(text)
    from fsspec.core import url_to_fs

    protocol = re.split("://|::", text, maxsplit=1)[0]
    try:
        filesystem, path = url_to_fs(text)
    except ImportError as error:
        raise InputError(
            f"{masked(text)}: {protocol}:// needs a package that is not installed ({masked(first_line(error))})"
            f"{S3_EXTRA if protocol in ('s3', 's3a') else ''}."
        ) from None
    except ValueError as error:
        if "Protocol not known" not in str(error):
            raise InputError(f"{masked(text)}: is not a valid URL ({masked(first_line(error))}).") from None
        raise InputError(
            f"{masked(text)}: fsspec does not know the protocol {protocol!r}; pass a local path, or a URL such as "
            "s3://BUCKET/PATH (with the package s3fs) or gs://BUCKET/PATH (gcsfs)."
        ) from None
    except Exception as error:  # storages connect here, each with its own errors
        raise InputError(f"{masked(text)}: cannot be reached ({masked(first_line(error))}).") from None
    return RemotePath(filesystem, path, scratch)


def require_writable(folder: Location) -> None:
    """Refuse a remote folder that cannot be written to."""
    if isinstance(folder, Path):
        return
    if folder.protocols & READ_ONLY:
        raise InputError(f"{folder}: HTTP is read-only; pass a local folder, or one of a storage such as s3://.")
    if not folder.name or (folder.protocols & OBJECT_STORES and "/" not in folder.path.strip("/")):
        raise InputError(f"{folder}: does not name a folder; pass one in it, such as {str(folder).rstrip('/')}/NAME.")
    if _MAGIC.search(folder.path):
        raise InputError(f"{folder}: a remote folder may have no *, ? or [ in its name; choose another name.")
    with reaching(folder):
        _require_bucket(folder)


def find_files(pattern: str) -> list[Location]:
    """The remote files of a URL, sorted by name; its path may have a pattern (`*`, `?`, `[...]`)."""
    where = location(pattern)
    assert isinstance(where, RemotePath)
    if where.protocols & READ_ONLY and "*" in where.path:
        raise InputError(f"{where}: an HTTP server cannot list files; pass the URL of each.")
    with reaching(where):
        is_pattern = _MAGIC.search(where.path) and not where.protocols & READ_ONLY
        names = where.matches() if is_pattern else [where.path]
        found: list[Location] = [path for path in (replace(where, path=name) for name in names) if path.is_file()]
        if not found:
            _require_bucket(where)
    return found


def _require_bucket(path: RemotePath) -> None:
    """Refuse a bucket that does not exist, by a RemoteError."""
    if not path.protocols & OBJECT_STORES:
        return
    bucket = replace(path, path=path.path.lstrip("/").partition("/")[0])
    try:
        if not bucket.exists():
            raise RemoteError(errno.ENOENT, NO_BUCKET, str(path))
    except RemoteError as error:
        if error.errno != errno.EACCES:  # who may not see the bucket may still use its contents
            raise


def same_file(a: Location, b: Location) -> bool:
    return a.resolve() == b.resolve() if isinstance(a, Path) and isinstance(b, Path) else a == b


def size(path: Location) -> int:
    return path.stat().st_size if isinstance(path, Path) else path.size()


def stamp(path: Location) -> str:
    """A value that changes with a file's contents and is known without reading them; empty if the storage gives none.

    For a local file: inode and times. The time of the last change to the inode is among them, since a download may give
    a file its old modification time.
    """
    if not isinstance(path, Path):
        return path.stamp()
    facts = path.stat()
    return f"{facts.st_ino} {facts.st_mtime_ns} {facts.st_ctime_ns}"


def open_stream(path: Location) -> BinaryIO:
    """A file, to be read from start to end."""
    return path.open("rb", buffering=BUFFER_BYTES) if isinstance(path, Path) else path.open()


def sha256_of(path: Location) -> str:
    """SHA-256 of a file's contents, 64 hex digits."""
    with open_stream(path) as file:
        return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()


def fetch(path: Location, target: Path) -> None:
    """Copy a file to a local path, where it appears whole."""
    with atomic_file(target) as partial, partial.open("wb") as file, open_stream(path) as source:
        shutil.copyfileobj(source, file, BUFFER_BYTES)


def open_arrow(path: Location) -> pa.NativeFile:
    """A file with random access for Arrow; a local one is not memory-mapped."""
    import pyarrow as pa

    return pa.OSFile(str(path), "rb") if isinstance(path, Path) else pa.PythonFile(path.open(in_places=True), "r")


@contextmanager
def local_file(path: Location, purpose: str = "0") -> Iterator[Path]:
    """A local temporary path for `path`: next to it, or in its scratch folder; it is removed after the block.

    Args:
        purpose: distinguishes several such files of one path. Processes, also of several machines, have their own.
    """
    name = f".{path.name}.partial-{purpose}-{platform.node()}-{os.getpid()}"
    temporary = scratch_folder(path) / name
    try:
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def publish(temporary: Path, path: Location) -> None:
    """Turn a complete file of `local_file` into `path`: renamed once it is on the disk, or sent."""
    if isinstance(path, Path):
        to_disk(temporary)
        temporary.replace(path)
    else:
        path.put(temporary)


def write_text(path: Location, text: str) -> None:
    """Write a text as UTF-8; the file appears whole."""
    atomic_write(path, text) if isinstance(path, Path) else path.write_text(text)


def read_object(path: Location) -> dict[str, Any] | None:
    """The JSON object in a file; None if it is missing or broken."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def files_below(folder: Location) -> list[Location]:
    """All files in a folder and in those inside it."""
    return (
        [path for path in folder.rglob("*") if path.is_file()] if isinstance(folder, Path) else [*folder.files_below()]
    )


def remove(path: Location) -> None:
    """Remove a file, or a folder with all its contents; a missing remote one is not an error."""
    if isinstance(path, Path):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    elif path.exists():
        path.remove()


def scratch_folder(path: Location) -> Path:
    """The local folder for temporary files of `path`: its parent, or the scratch folder."""
    return path.parent if isinstance(path, Path) else path.scratch or Path(tempfile.gettempdir())


def is_unfinished(target: Location) -> bool:
    """Whether `atomic_target` was interrupted while it filled a remote folder; never true of a local one."""
    return not isinstance(target, Path) and (target / UNFINISHED).is_file()


def require_free(target: Location, overwrite: bool, marker: str) -> None:
    """Refuse to overwrite a folder, as `require_replaceable`; an unfinished remote folder may be replaced."""
    if not is_unfinished(target):
        require_replaceable(target, overwrite, marker)


@contextmanager
def atomic_target(target: Location, overwrite: bool, marker: str, advice: str = "try again") -> Iterator[Path]:
    """Yield a new empty local folder, which becomes `target` when the block ends without an error.

    A local target works as with `atomic_folder`. For a remote one the old contents are removed, then the files are
    sent, `marker` last. Meanwhile the folder holds `UNFINISHED`; on an error, what was sent is removed.

    Raises:
        InputError: as `require_free`, the disk was full in the block, or the storage refuses.
    """
    if isinstance(target, Path):
        with atomic_folder(target, overwrite, marker) as folder:
            yield folder
        return
    require_free(target, overwrite, marker)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.partial-", dir=scratch_folder(target)) as name:
        folder = Path(name)
        yield folder
        with writing(target, f"check the storage, and {advice}"):
            _send(folder, target, marker)


def _send(folder: Path, target: RemotePath, marker: str) -> None:
    """Replace a remote folder's contents by a local folder's, `marker` last; on an error, nothing is left there."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    try:
        target.mkdir()
        (target / UNFINISHED).write_text("")
        for entry in target.iterdir():
            if entry.name != UNFINISHED:
                remove(entry)
        for path in sorted(files, key=lambda path: path == folder / marker):
            there = target / path.relative_to(folder).as_posix()
            there.parent.mkdir()
            there.put(path)
        (target / UNFINISHED).unlink()
    except BaseException:
        with suppress(OSError):
            remove(target)
        raise


@contextmanager
def reaching(path: Location) -> Iterator[None]:
    """Turn a storage's error into an InputError."""
    try:
        yield
    except RemoteError as error:
        advice = "" if "; " in str(error) else "; check the URL and your rights"  # some reasons have their own
        raise InputError(f"{path}: cannot be reached ({error}){advice}.") from None
