"""A file or folder in an fsspec storage, with the methods of `pathlib.Path` that a build uses."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from mrs_core.errors import InputError, RemoteError, first_line

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

# There, a file appears only when it was sent completely, a move is a copy, and folders are only parts of names.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "r2"})
READ_ONLY = frozenset({"http", "https"})
BUFFER_BYTES = 1 << 20  # of a file that is read from its beginning to its end
_PLACES_BUFFER_BYTES = 1 << 16  # of one with random access: for the small reads at its end
_CREDENTIALS = re.compile(r"(://)[^/\s'\"]*@")
_QUERY = re.compile(r"(://[^\s?'\"]*)\?[^\s'\")]*")


@dataclass(frozen=True, repr=False)
class RemotePath:
    """A file or folder in an fsspec storage; its methods are those of `pathlib.Path` with the same names.

    All of them raise `RemoteError` if the storage cannot be reached.

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
        return masked(str(self.filesystem.unstrip_protocol(self.path)))

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
        return replace(self, path=f"{self.path.rstrip('/')}/{name}")

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
        with _translated(self):
            self.filesystem.invalidate_cache()
            names = self.filesystem.ls(self.path, detail=False)
        yield from (replace(self, path=name) for name in names if name.rstrip("/") != self.path.rstrip("/"))

    def files_below(self) -> list[RemotePath]:
        """All files in the folder and in those inside it."""
        with _translated(self):
            self.filesystem.invalidate_cache()
            return [replace(self, path=name) for name in self.filesystem.find(self.path)]

    def matches(self) -> list[str]:
        """The paths that match this one as a pattern, sorted."""
        with _translated(self):
            self.filesystem.invalidate_cache()
            return sorted(map(str, self.filesystem.glob(self.path)))

    def size(self) -> int:
        """Bytes of the file.

        Raises:
            InputError: the storage does not say.
        """
        with _translated(self):
            found = self.filesystem.info(self.path)["size"]
        if found is None:
            raise InputError(f"{self}: its server does not give its size; fetch the file and pass its path.")
        return int(found)

    def open(self, in_places: bool = False) -> BinaryIO:
        """The file, to be read.

        Args:
            in_places: with random access, not from start to end.
        """
        return io.BufferedReader(_Reader(self, in_places), _PLACES_BUFFER_BYTES if in_places else BUFFER_BYTES)

    def read_text(self, encoding: str = "utf-8") -> str:
        with _translated(self):
            data = bytes(self.filesystem.cat_file(self.path))
        return data.decode(encoding)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the folder and its parents, if the storage has folders."""
        if not self.protocols & OBJECT_STORES:
            with _translated(self):
                self.filesystem.makedirs(self.path, exist_ok=exist_ok)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.is_file():
            with _translated(self):
                self.filesystem.rm_file(self.path)

    def rmdir(self) -> None:
        if self.is_dir():
            with _translated(self):
                self.filesystem.rmdir(self.path)

    def remove(self) -> None:
        """Remove the file, or the folder with all its contents."""
        with _translated(self):
            self.filesystem.rm(self.path, recursive=True)

    def put(self, source: Path) -> None:
        """Send a local file; it appears whole (as far as the storage's move allows), or not at all."""
        self._appear(lambda path: self.filesystem.put_file(str(source), path))

    def write_text(self, text: str) -> None:
        """Write as UTF-8; the file appears as by `put`."""
        self._appear(lambda path: self.filesystem.pipe_file(path, text.encode()))

    def _appear(self, make: Callable[[str], object]) -> None:
        with _translated(self):
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

    def _kind(self) -> str | None:
        """`file`, `directory`, or None if it does not exist."""
        try:
            with _translated(self):
                self.filesystem.invalidate_cache()  # another process may have written since
                return str(self.filesystem.info(self.path)["type"])
        except RemoteError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise


def masked(text: str) -> str:
    """A text without possible secrets in its URLs.

    >>> masked("ftp://me:secret@host/a: 403 at https://host/b?token=c")
    'ftp://***@host/a: 403 at https://host/b?***'
    """
    return _QUERY.sub(r"\1?***", _CREDENTIALS.sub(r"\1***@", text))


class _Reader(io.RawIOBase):
    """A remote file, whose errors are `RemoteError`s."""

    def __init__(self, path: RemotePath, in_places: bool = False) -> None:
        self._path = path
        # fsspec's default read-ahead would read several times as much as is needed.
        exact = in_places and path.protocols & (OBJECT_STORES | READ_ONLY)
        with _translated(path):
            self._file = path.filesystem.open(path.path, "rb", **({"cache_type": "none"} if exact else {}))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        with _translated(self._path):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        with _translated(self._path):
            return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        if not self.closed and hasattr(self, "_file"):
            with suppress(Exception):
                self._file.close()
        super().close()


@contextmanager
def _translated(path: RemotePath) -> Iterator[None]:
    """Turn whatever a storage raises into a `RemoteError`: each storage has its own errors."""
    try:
        yield
    except RemoteError:
        raise
    except Exception as error:
        true = _cause(error)
        raise RemoteError(_number(true), _reason(true), str(path)) from None


def _cause(error: Exception) -> BaseException:
    """The real reason for fsspec's "not found" over HTTP: no connection or no permission, perhaps."""
    cause = error.__cause__
    if cause is None or not isinstance(error, FileNotFoundError) or isinstance(cause, FileNotFoundError):
        return error
    refused = getattr(cause, "status", None) not in (None, 404, 410)
    return cause if refused or isinstance(cause, OSError) else error


def _number(error: BaseException) -> int:
    known = {FileNotFoundError: errno.ENOENT, NotADirectoryError: errno.ENOTDIR, FileExistsError: errno.EEXIST}
    number = getattr(error, "errno", None)
    found = next((value for kind, value in known.items() if isinstance(error, kind)), errno.EIO)
    return number if isinstance(number, int) else found


def _reason(error: BaseException) -> str:
    if isinstance(error, FileNotFoundError):
        return os.strerror(errno.ENOENT)
    if "range requests" in str(error):
        return "its server does not send parts of a file; fetch it and pass its path"
    if isinstance(error, OSError) and error.strerror:
        return masked(str(error.strerror))
    return masked(first_line(error))
