"""A file or folder in an fsspec storage, with those methods of `pathlib.Path` that a build uses."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io.remote_errors import CHANGED, retried, shown_url, translated

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# There, a file appears only when it was sent completely, a move is a copy, and folders are only parts of names.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "r2"})
READ_ONLY = frozenset({"http", "https"})
BUFFER_BYTES = 1 << 20  # of a file that is read from its beginning to its end
_PLACES_BUFFER_BYTES = 1 << 16  # of one with random access: for the small reads at its end
_STAMPS = ("ETag", "etag", "Last-Modified", "LastModified", "mtime", "updated")  # by the names of the storages


@dataclass(frozen=True, repr=False)
class RemotePath:
    """A file or folder in an fsspec storage. Its methods raise `RemoteError` if the storage cannot be reached.

    Attributes:
        filesystem: of fsspec; it can be pickled, credentials included.
        path: as the file system expects it, without the protocol if it needs none.
        scratch: the local folder in which files are written before they are sent; None: the system's temporary one.
    """

    filesystem: AbstractFileSystem
    path: str
    scratch: Path | None = None

    def __str__(self) -> str:
        """The URL, without credentials."""
        return shown_url(self.filesystem, self.path)

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    @property
    def protocols(self) -> frozenset[str]:
        """All names of its protocol."""
        names = self.filesystem.protocol
        return frozenset({names} if isinstance(names, str) else names)

    @property
    def name(self) -> str:
        return re.split(r"[?#]", self.path)[0].rstrip("/").rsplit("/", 1)[-1]

    @property
    def suffix(self) -> str:
        return Path(self.name).suffix

    @property
    def stem(self) -> str:
        return Path(self.name).stem

    @property
    def parent(self) -> RemotePath:
        return replace(self, path=self.path.rstrip("/").rpartition("/")[0])

    def __truediv__(self, name: str) -> RemotePath:
        path, mark, query = self.path.partition("?") if self.protocols & READ_ONLY else (self.path, "", "")
        return replace(self, path=f"{path.rstrip('/')}/{name}{mark}{query}")

    def with_name(self, name: str) -> RemotePath:
        return self.parent / name

    def with_suffix(self, suffix: str) -> RemotePath:
        return self.with_name(self.stem + suffix)

    def exists(self) -> bool:
        return self._kind() is not None

    def is_file(self) -> bool:
        return self._kind() == "file"

    def is_dir(self) -> bool:
        return self._kind() == "directory"

    def iterdir(self) -> Iterator[RemotePath]:
        names = self._ask("ls", detail=False)
        yield from (replace(self, path=name) for name in names if name.rstrip("/") != self.path.rstrip("/"))

    def files_below(self) -> list[RemotePath]:
        return [replace(self, path=name) for name in self._ask("find")]

    def matches(self) -> list[str]:
        """The paths that match this one as a pattern, sorted."""
        return sorted(map(str, self._ask("glob")))

    def size(self) -> int:
        """Bytes of the file; InputError if the storage does not say."""
        found = self._ask("info")["size"]
        if found is None:
            raise InputError(f"{self}: its server does not give its size; fetch the file and pass its path.")
        return int(found)

    def stamp(self) -> str:
        """A value that changes with the contents, such as the ETag; empty if the storage does not give one."""
        return str(_stamp_of(self._ask("info")) or "")

    def open(self, in_places: bool = False) -> BinaryIO:
        """The file, to be read; `in_places`: with random access, not from start to end."""
        reader = RemoteReader(self, in_places)
        return io.BufferedReader(reader, _PLACES_BUFFER_BYTES if in_places else BUFFER_BYTES)

    def read_text(self, encoding: str = "utf-8") -> str:
        data: bytes = retried(self.filesystem, self.path, lambda: self.filesystem.cat_file(self.path))
        return bytes(data).decode(encoding)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the folder and its parents, if the storage has folders."""
        if not self.protocols & OBJECT_STORES:
            self._ask("makedirs", exist_ok=exist_ok)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.is_file():
            self._ask("rm_file")

    def rmdir(self) -> None:
        if self.is_dir():
            self._ask("rmdir")

    def remove(self) -> None:
        """Remove the file, or the folder with all its contents."""
        self._ask("rm", recursive=True)

    def put(self, source: Path) -> None:
        """Send a local file; it appears whole (if the storage moves files in one step), or not at all."""
        self._appear(lambda path: self.filesystem.put_file(str(source), path))

    def write_text(self, text: str) -> None:
        """Write as UTF-8; the file appears as by `put`."""
        self._appear(lambda path: self.filesystem.pipe_file(path, text.encode()))

    def _appear(self, make: Callable[[str], object]) -> None:
        with translated(self.filesystem, self.path):
            if self.protocols & OBJECT_STORES:
                make(self.path)
                return
            partial = self.with_name(f".{self.name}.partial-{os.getpid()}").path
            try:
                make(partial)
                self.filesystem.mv(partial, self.path)
            except BaseException:
                with suppress(Exception):
                    self.filesystem.rm_file(partial)
                raise

    def _ask(self, method: str, **named: Any) -> Any:
        """A request about this path, without cached listings: another process may have written since."""
        with translated(self.filesystem, self.path):
            self.filesystem.invalidate_cache()
            return getattr(self.filesystem, method)(self.path, **named)

    def _kind(self) -> str | None:
        """`file`, `directory`, or None if it does not exist."""
        try:
            return str(self._ask("info")["type"])
        except RemoteError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise


class RemoteReader(io.RawIOBase):
    """A remote file to be read, whose errors are `RemoteError`s.

    A read that breaks begins again after a wait, at the first byte that was not returned, in a file that is opened
    anew. Across a network, the file's size and ETag (or time) show whether it is still the same: they are compared when
    it is opened anew, and when its end is reached.

    Args:
        in_places: with random access: read no more than was asked for, where fsspec would read ahead.
    """

    def __init__(self, path: RemotePath, in_places: bool) -> None:
        self._path = path
        self._networked = bool(path.protocols & (OBJECT_STORES | READ_ONLY))
        self._exact = in_places and self._networked
        self._file: Any = None
        self._at = self._place = 0  # of this reader, and of the file below it
        self._facts: tuple[Any, object] | None = None  # size and stamp, once the file was opened
        self._whole = not self._exact  # so far, it was read from its start on, without gaps
        self._retried(self._open)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data: bytes = self._retried(lambda: self._read(len(buffer)))
        buffer[: len(data)] = data
        self._at += len(data)
        if not data and len(buffer):
            self._check_end()
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            offset += (self._facts[0] if self._facts else None) or self._path.size()
        self._at = offset + (self._at if whence == io.SEEK_CUR else 0)
        self._whole = self._whole and self._at == 0
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._drop()
        super().close()

    def _retried(self, call: Callable[[], Any]) -> Any:
        return retried(self._path.filesystem, self._path.path, call)

    def _read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._open()
            if self._place != self._at:
                self._file.seek(self._at)
                self._place = self._at
            data = bytes(self._file.read(size))
            self._place += len(data)
            return data
        except BaseException:
            self._drop()
            raise

    def _open(self) -> None:
        filesystem = self._path.filesystem
        named: dict[str, Any] = {"cache_type": "none"} if self._exact else {}
        facts = None
        if self._networked:
            filesystem.invalidate_cache()
            if "http" in self._path.protocols:
                facts = filesystem.info(self._path.path)
                if facts.get("size") and facts.get("partial", True):
                    named["size"] = facts["size"]  # else fsspec would ask again
        self._file, self._place = filesystem.open(self._path.path, "rb", **named), 0
        if self._networked:
            self._check_same(facts or self._file.details)

    def _check_same(self, facts: dict[str, Any]) -> None:
        found = (facts.get("size"), _stamp_of(facts))
        if self._facts not in (None, found):
            raise RemoteError(errno.EIO, CHANGED, str(self._path))
        self._facts = found

    def _check_end(self) -> None:
        """Refuse, by a RemoteError, the end of another file than was opened, or one that comes too early."""
        early = bool(self._facts and self._facts[0] is not None and self._at < self._facts[0])
        if self._networked and (early or self._whole):
            filesystem = self._path.filesystem
            filesystem.invalidate_cache()
            self._check_same(self._retried(lambda: filesystem.info(self._path.path)))
            self._whole = False  # once is enough
        if early:
            raise RemoteError(errno.EIO, "the connection ends before the file does", str(self._path))

    def _drop(self) -> None:
        if self._file is not None:
            with suppress(Exception):
                self._file.close()
            self._file = None


def _stamp_of(facts: dict[str, Any]) -> object:
    return next((facts[name] for name in _STAMPS if facts.get(name)), None)
