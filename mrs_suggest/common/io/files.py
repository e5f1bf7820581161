"""Output that appears whole or not at all, and contents named by their hash."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError, reason_of

if TYPE_CHECKING:
    from mrs_suggest.common.io.remote import RemotePath

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # no space left: on the disk, in the quota, or at the file size limit


@contextmanager
def writing(path: object, advice: str = "free space there, or choose another folder") -> Iterator[None]:
    """Turn a disk error in the block into a sentence that names `path` and ends with what to do."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({reason_of(error)}); {advice}.") from None


def require_replaceable(target: Path | RemotePath, overwrite: bool, marker: str | None) -> None:
    """Refuse, by an InputError, to overwrite a folder of the user; the arguments are those of `atomic_folder`."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if marker and not (target / marker).is_file():
        raise InputError(
            f"refusing to overwrite: {target} exists already and does not look like mrs-suggest output (no {marker}); "
            "choose another folder."
        )
    if not overwrite:
        raise InputError(f"{target} exists already; choose another folder, delete it, or pass --overwrite.")


def require_regular(path: Path) -> None:
    """Refuse, by an InputError, a pipe, a device or a socket, where reading may wait forever, or a folder with one."""
    for each in (path, *(path.rglob("*") if path.is_dir() else ())):
        if each.exists() and not each.is_file() and not each.is_dir():
            raise InputError(
                f"{each}: is a pipe, device or socket, not a file or folder; save its contents in a file and pass that."
            )


def require_new_file(path: Path, overwrite: bool) -> None:
    """Refuse, by an InputError, a file that exists, unless `overwrite`; before anything is computed."""
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already; choose another file, or pass --overwrite.")


@contextmanager
def atomic_folder(target: Path, overwrite: bool = False, marker: str | None = None) -> Iterator[Path]:
    """Yield a new empty folder next to `target`; rename it to `target` when the block ends without an error.

    Args:
        marker: a file that every folder of this kind has; anything else is never replaced.

    On any error, Ctrl-C included, the new folder is removed and `target` is as it was.

    Raises:
        InputError: `target` exists (and is not an empty folder) and `overwrite` is false, its parent is not a writable
            folder, or the disk was full in the block.
    """
    target = Path(os.path.realpath(target))  # follow links, so that a link stays a link
    require_replaceable(target, overwrite, marker)
    made = [folder for folder in target.parents if not folder.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f".{target.name}.partial-", dir=target.parent))
    except OSError as error:
        raise InputError(f"{target.parent}: cannot write there ({error.strerror}); choose another folder.") from None
    try:
        yield partial
        partial.chmod(0o777 & ~umask())
        if target.exists():
            old = partial.with_name(partial.name.replace(".partial-", ".old-"))
            target.rename(old)
            try:
                partial.rename(target)
            except BaseException:
                old.rename(target)
                raise
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        else:
            partial.rename(target)
    except BaseException as error:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:  # innermost first; one that is in use by now stays
            with suppress(OSError):
                folder.rmdir()
        if isinstance(error, OSError) and error.errno in FULL:
            with writing(target):
                raise
        raise


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary name next to `path`, for a file that becomes it when the block ends without an error."""
    partial = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        yield partial
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def atomic_write(path: Path, text: str) -> None:
    """Write `text` as UTF-8 under a temporary name, then rename it to `path`."""
    with atomic_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="\n")


def to_disk(path: Path) -> None:
    """Wait until a file, or a folder's entries, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's contents, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(paths: Iterable[Path]) -> str:
    """SHA-256 (first 16 hex digits) over the contents of the files in the order of their names."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(bytes.fromhex(file_sha256(path)))
    return total.hexdigest()[:16]


def umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
