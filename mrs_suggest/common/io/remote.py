"""A file or folder in an fsspec storage, with the methods of `pathlib.Path` that a build uses."""

from __future__ import annotations

import errno
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from mrs_suggest.common.errors import RemoteError
from mrs_suggest.common.io.remote_errors import Location, retried, translated
from mrs_suggest.common.io.remote_errors import masked as masked
from mrs_suggest.common.io.remote_reader import RemoteReader, stamp_of

# There, a file appears only when it was sent completely, a move is a copy, and folders are only parts of names.
OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "r2"})
READ_ONLY = frozenset({"http", "https"})
BUFFER_BYTES = 1 << 20  # of a file that is read from its beginning to its end
_PLACES_BUFFER_BYTES = 1 << 16  # of one with random access: for the small reads at its end


@dataclass(frozen=True, repr=False)
class RemotePath(Location):
    """A file or folder in an fsspec storage; its methods are those of `pathlib.Path` with the same names.

    All of them raise `RemoteError` if the storage cannot be reached.

    Attributes:
        filesystem, path: as in `Location`.
        scratch: the local folder in which files are written before they are sent; None: the system's temporary one.
    """

    scratch: Path | None = None

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

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
        with translated(self):
            self.filesystem.invalidate_cache()
            names = self.filesystem.ls(self.path, detail=False)
        yield from (replace(self, path=name) for name in names if name.rstrip("/") != self.path.rstrip("/"))

    def files_below(self) -> list[RemotePath]:
        """All files in the folder and in those inside it."""
        with translated(self):
            self.filesystem.invalidate_cache()
            return [replace(self, path=name) for name in self.filesystem.find(self.path)]

    def matches(self) -> list[str]:
        """The paths that match this one as a pattern, sorted."""
        with translated(self):
            self.filesystem.invalidate_cache()
            return sorted(map(str, self.filesystem.glob(self.path)))

    def stamp(self) -> str:
        """What changes with the contents, such as the ETag; empty if the storage tells nothing of the kind."""
        with translated(self):
            return str(stamp_of(self.filesystem.info(self.path)) or "")

    def open(self, in_places: bool = False) -> BinaryIO:
        """The file, to be read.

        Args:
            in_places: with random access, not from start to end.
        """
        networked = bool(self.protocols & (OBJECT_STORES | READ_ONLY))
        # fsspec's default read-ahead would read several times as much as is needed in places.
        reader = RemoteReader(self, exact=in_places and networked, stamped=networked)
        return io.BufferedReader(reader, _PLACES_BUFFER_BYTES if in_places else BUFFER_BYTES)

    def read_text(self, encoding: str = "utf-8") -> str:
        data: bytes = retried(self, lambda: self.filesystem.cat_file(self.path))
        return bytes(data).decode(encoding)

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Make the folder and its parents, if the storage has folders."""
        if not self.protocols & OBJECT_STORES:
            with translated(self):
                self.filesystem.makedirs(self.path, exist_ok=exist_ok)

    def unlink(self, missing_ok: bool = False) -> None:
        if not missing_ok or self.is_file():
            with translated(self):
                self.filesystem.rm_file(self.path)

    def rmdir(self) -> None:
        if self.is_dir():
            with translated(self):
                self.filesystem.rmdir(self.path)

    def remove(self) -> None:
        """Remove the file, or the folder with all its contents."""
        with translated(self):
            self.filesystem.rm(self.path, recursive=True)

    def put(self, source: Path) -> None:
        """Send a local file; it appears whole (as far as the storage's move allows), or not at all."""
        self._appear(lambda path: self.filesystem.put_file(str(source), path))

    def write_text(self, text: str) -> None:
        """Write as UTF-8; the file appears as by `put`."""
        self._appear(lambda path: self.filesystem.pipe_file(path, text.encode()))

    def _appear(self, make: Callable[[str], object]) -> None:
        with translated(self):
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
            with translated(self):
                self.filesystem.invalidate_cache()  # another process may have written since
                return str(self.filesystem.info(self.path)["type"])
        except RemoteError as error:
            if error.errno in (errno.ENOENT, errno.ENOTDIR):
                return None
            raise
