"""A remote file that is read on where a connection broke, and refused if it became another one meanwhile."""

from __future__ import annotations

import errno
import io
from contextlib import suppress
from typing import Any

from mrs_suggest.common.errors import RemoteError
from mrs_suggest.common.io.remote_errors import CHANGED, Location, retried

_STAMPS = ("ETag", "etag", "Last-Modified", "LastModified", "mtime", "updated")  # as storages call them
_ENDS = "the connection ends before the file does"


class RemoteReader(io.RawIOBase):
    """A remote file to be read, whose errors are `RemoteError`s.

    A read that breaks begins again at the first byte that was not returned, in a file that is opened anew, after a
    wait, and at most `remote_errors.TRIES` times. That the file is still the same is told by its size and ETag (or its
    time): when it is opened anew, and when its end is reached.

    Args:
        exact: read no more than was asked for; otherwise fsspec reads ahead.
        stamped: the storage is across a network, and tells sizes and ETags (or times).
    """

    def __init__(self, path: Location, exact: bool, stamped: bool) -> None:
        self._path, self._exact, self._stamped = path, exact, stamped
        self._file: Any = None
        self._at = self._place = 0  # of this reader, and of the file below it
        self._opened = False
        self._size: int | None = None
        self._stamp: object = None
        self._whole = not exact  # so far, it was read from its start on, without gaps
        retried(path, self._open)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = retried(self._path, lambda: self._read(len(buffer)))
        buffer[: len(data)] = data
        self._at += len(data)
        if not data and len(buffer):
            self._check_end()
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            if self._size is None:
                self._size = self._path.size()
            offset += self._size
        self._at = offset + (self._at if whence == io.SEEK_CUR else 0)
        self._whole = self._whole and self._at == 0
        return self._at

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            self._drop()
        super().close()

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
        """Open the file, for the first time or again."""
        filesystem = self._path.filesystem
        named: dict[str, Any] = {}
        facts: dict[str, Any] = {}
        if self._exact:
            named["cache_type"] = "none"
        if self._stamped:
            filesystem.invalidate_cache()
        if self._stamped and "http" in self._path.protocols:
            facts = self._facts()
            if facts.get("size") and facts.get("partial", True):
                named["size"] = facts["size"]  # for which fsspec would ask again
        self._file, self._place = filesystem.open(self._path.path, "rb", **named), 0
        if self._stamped:
            facts = facts or dict(self._file.details)
            if self._opened:
                self._require_same(facts)
            self._size, self._stamp = facts.get("size"), stamp_of(facts)
        self._opened = True

    def _facts(self) -> dict[str, Any]:
        self._path.filesystem.invalidate_cache()
        return dict(self._path.filesystem.info(self._path.path))

    def _require_same(self, facts: dict[str, Any]) -> None:
        if (facts.get("size"), stamp_of(facts)) != (self._size, self._stamp):
            raise RemoteError(errno.EIO, CHANGED, str(self._path))

    def _check_end(self) -> None:
        """Refuse an end that is not the file's own.

        Raises:
            RemoteError: the file is another one than when it was opened, or there should be more.
        """
        early = self._size is not None and self._at < self._size
        if self._stamped and (early or self._whole):
            self._require_same(retried(self._path, self._facts))
            self._whole = False  # once is enough
        if early:
            raise RemoteError(errno.EIO, _ENDS, str(self._path))

    def _drop(self) -> None:
        if self._file is not None:
            with suppress(Exception):
                self._file.close()
            self._file = None


def stamp_of(facts: dict[str, Any]) -> object:
    """What changes with the contents."""
    return next((facts[name] for name in _STAMPS if facts.get(name)), None)
