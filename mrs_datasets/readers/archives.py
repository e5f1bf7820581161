"""Archives as sources: tar (plain, gzip, xz, bzip2) and zip, unpacked into a temporary folder.

Everything that an archive's headers say is checked before the first byte is written, and so is the checksum of a
compressed tar. Sources of the formats: POSIX.1-2017, `pax`; PKWARE APPNOTE 6.3.10.
"""

from __future__ import annotations

import bz2
import copy
import gzip
import lzma
import math
import re
import shutil
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from mrs_suggest.common.errors import InputError

MAX_UNPACKED_BYTES = 64 << 30  # MRS is the largest source: 35 M pairs (Zhang et al. 2021, Table 1), well below this
MAX_MEMBERS = 100_000  # chosen: the sources hold hundreds of files, and and each costs an inode
MAX_DEPTH = 64  # chosen: the sources have five levels, and removing a folder costs a stack frame per level
HEADER_BYTES = 1 << 16  # chosen: the most of one member's header, and four times the most on average; 0.5 to 4 KiB do
ARCHIVE_ENDS = (".zip", ".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2")

_BLOCK = 1 << 20
_TAR_BLOCK = 512
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")  # a member, an empty archive, a formerly split one
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile reads others without a memory limit
_ZIP_ENCRYPTED = 0x1 | 0x40  # general purpose flags, bits 0 and 6 (APPNOTE 4.4.4)
_KINDS = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}
_TAR_KINDS = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
}
# what tarfile, zipfile and the decompressors raise for malformed bytes
_DAMAGE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    lzma.LZMAError,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    OverflowError,
    NotImplementedError,
)


@contextmanager
def unpacked(archive: Path, beside: Path, max_bytes: int = MAX_UNPACKED_BYTES) -> Iterator[Path]:
    """Unpack a tar or zip archive into a new folder in `beside`, yield that folder, and remove it afterwards.

    Args:
        archive: its format is found by its first bytes, not its name.
        beside: an existing folder on the output's disk.
        max_bytes: the sum of all members' sizes; more is refused before anything is written.

    Raises:
        InputError: not an archive, damaged, encrypted, over a limit, too little disk space, or an unsafe member: it
            points outside, is neither file nor folder, or would overwrite another. Nothing is left behind.
    """
    if not hasattr(tarfile, "data_filter"):
        raise InputError(f"{archive}: this Python cannot unpack safely; use 3.11.4 or a later release.")
    target = beside / "unpacked"
    try:
        target.mkdir()
    except OSError as error:
        raise InputError(f"{archive}: cannot unpack the archive to {target} ({error.strerror}).") from None
    try:
        _unpack(archive, target, max_bytes)
        yield target
    finally:
        shutil.rmtree(target, ignore_errors=True)


def describe_nested(folder: Path) -> str | None:
    """The name of the first archive in `folder` or one folder below it, for an error message; None if there is none."""
    for pattern in ("*", "*/*"):
        for path in sorted(folder.glob(pattern)):
            if path.name.lower().endswith(ARCHIVE_ENDS) and path.is_file():
                return path.relative_to(folder).as_posix()
    return None


def _unpack(archive: Path, target: Path, max_bytes: int) -> None:
    contents = _Contents(archive, max_bytes)
    try:
        with archive.open("rb") as file:
            start = file.read(8)
            file.seek(0)
            if start.startswith(_ZIP_STARTS):
                _unpack_zip(file, target, contents)
            else:
                _unpack_tar(_decompressed(file, start), target, contents)
    except tarfile.FilterError as error:
        raise InputError(f"{archive}: the archive is refused, since a member is unsafe ({error}).") from None
    except _DAMAGE as error:
        raise _damaged(archive, error) from None
    except OSError as error:
        if error.errno is None:  # raised by gzip or bz2, not by the system
            raise _damaged(archive, error) from None
        raise InputError(f"{archive}: cannot unpack the archive ({error.strerror}).") from None


def _damaged(archive: Path, error: Exception, member: str = "") -> InputError:
    reason = next(iter(str(error).splitlines()), "it ends too early").rstrip(":.")
    return InputError(
        f"{archive}: not a tar or zip archive, or damaged or truncated ({member}{reason}); expected the official "
        "archive or a folder."
    )


class _Contents:
    """The contents by the archive's headers, checked member by member.

    Attributes:
        size: of all files so far, in bytes.
    """

    def __init__(self, archive: Path, max_bytes: int) -> None:
        self.archive = archive
        self.max_bytes = max_bytes
        self.size = 0
        self._members = 0
        self._files: set[tuple[str, ...]] = set()
        self._folders: set[tuple[str, ...]] = set()  # also those without a member of their own

    def add(self, name: str, size: int, is_folder: bool, kind: str | None) -> tuple[str, ...]:
        """Check a member; return the parts of its path, none of them `..`.

        Args:
            kind: what the member is, if neither a file nor a folder.
        """
        parts = tuple(part for part in re.split(r"[/\\]", name) if part not in ("", "."))
        reason = kind or _why_unsafe(name, parts, is_folder)
        if not reason and size < 0:
            reason = "its size is negative"
        if not reason and self._clashes(parts, is_folder):
            reason = "another member has its path"
        if reason:
            raise InputError(
                f"{self.archive}: the archive is refused, since the member {_shown(name)} is unsafe ({reason}); if you "
                "trust it, unpack it yourself and pass the folder."
            )
        self._members += 1
        if max(self._members, len(self._files) + len(self._folders)) > MAX_MEMBERS:
            raise InputError(
                f"{self.archive}: the archive has more than {MAX_MEMBERS:,} files and folders, the limit; unpack it "
                "yourself and pass the folder."
            )
        self.size += 0 if is_folder else size
        self.require_below(self.size)
        return parts

    def _clashes(self, parts: tuple[str, ...], is_folder: bool) -> bool:
        """Record a member's path; return whether it would overwrite a file, or clash with a needed folder or file."""
        folders = {parts[:depth] for depth in range(1, len(parts) + is_folder)}
        clash = not folders.isdisjoint(self._files)
        if not is_folder:
            clash = clash or parts in self._files or parts in self._folders
            self._files.add(parts)
        self._folders |= folders
        return clash

    def require_below(self, size: int) -> None:
        """Refuse an archive that unpacks to at least `size` bytes, if they are over its limit."""
        if size > self.max_bytes:
            raise InputError(
                f"{self.archive}: the archive unpacks to more than {_amount(self.max_bytes)}, the limit for this data "
                "set; unpack it yourself and pass the folder."
            )

    def require_disk(self, target: Path) -> None:
        """Refuse an archive that does not fit on the disk."""
        free = shutil.disk_usage(target).free
        if self.size > free:
            raise InputError(
                f"{self.archive}: unpacking needs {self.size:,} bytes of disk beside --out, {free:,} are free; free "
                "some space or choose another --out."
            )


def _why_unsafe(name: str, parts: tuple[str, ...], is_folder: bool) -> str | None:
    """Why a name is unsafe; None if it is harmless on every system."""
    if name.startswith(("/", "\\")):
        return "its path is absolute"
    if ".." in parts:
        return "its path leads to a parent folder"
    if any(re.match("[A-Za-z]:", part) for part in parts):
        return "its path names a drive"
    if "\0" in name or not (parts or is_folder):
        return "its name is empty or contains a null character"
    if len(parts) > MAX_DEPTH:
        return f"it is more than {MAX_DEPTH} folders deep"
    return None


def _unpack_tar(file: BinaryIO, target: Path, contents: _Contents) -> None:
    guard = _HeaderGuard(file)
    with tarfile.open(fileobj=cast(BinaryIO, guard), mode="r:") as tar:
        members = []
        while (member := tar.next()) is not None:  # getmembers() would decompress all of a bomb to find its last header
            kind = None if member.isfile() or member.isdir() else _TAR_KINDS.get(member.type, "not a file or folder")
            kind = "a sparse file" if member.issparse() else kind  # may write more than its size
            contents.add(member.name, member.size, member.isdir(), kind)
            members.append(member)
            guard.allowed = min(guard.allowed + HEADER_BYTES // 4, HEADER_BYTES)  # tarfile keeps what it read
        if guard.last != bytes(_TAR_BLOCK):  # tarfile treats a broken header as the end, and drops all that follows
            raise tarfile.ReadError("the end mark after the last member is missing")
        rest = 0
        while block := file.read(_BLOCK):  # read on behind the end mark, to the compressed stream's checksum
            contents.require_below(rest)  # the first block is padding
            rest += len(block)
        contents.require_disk(target)
        guard.allowed = math.inf
        tar.extractall(target, members, filter="data")


class _HeaderGuard:
    """The bytes of a tar archive, for tarfile, with a limit while headers are read.

    tarfile seeks over the data of members, but reads headers of any length, or a chain of them, completely.

    Attributes:
        allowed: how many bytes may still be read.
        last: what was read last.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.allowed: float = HEADER_BYTES
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.allowed:
            raise tarfile.ReadError(f"a header is longer than {HEADER_BYTES:,} bytes")
        self.allowed -= size
        self.last = self._file.read(size)
        return self.last

    def seek(self, offset: int) -> int:
        return self._file.seek(offset)

    def tell(self) -> int:
        return self._file.tell()


def _decompressed(file: BinaryIO, start: bytes) -> BinaryIO:
    """The file or its decompressed contents, depending on its first bytes."""
    if start.startswith(b"\x1f\x8b"):
        return cast(BinaryIO, gzip.open(file))
    if start.startswith(b"\xfd7zXZ\0"):
        return cast(BinaryIO, lzma.open(file))
    if start.startswith(b"BZh"):
        return cast(BinaryIO, bz2.open(file))
    return file


def _unpack_zip(file: BinaryIO, target: Path, contents: _Contents) -> None:
    with zipfile.ZipFile(file) as archive:
        members = []
        _require_all_entries(file, len(archive.infolist()))
        for info in archive.infolist():
            name, kind = info.filename, _KINDS.get(stat.S_IFMT(info.external_attr >> 16))
            is_folder = name.endswith(("/", "\\"))  # some Windows tools write their own separator (APPNOTE 4.4.17)
            parts = contents.add(name, info.file_size, is_folder, kind)
            if info.flag_bits & _ZIP_ENCRYPTED:
                raise InputError(
                    f"{contents.archive}: the archive is encrypted (member {_shown(name)}); unpack it yourself and "
                    "pass the folder."
                )
            if info.compress_type not in _ZIP_METHODS:
                raise InputError(
                    f"{contents.archive}: the member {_shown(name)} is compressed by method {info.compress_type}, "
                    "expected deflate or none; unpack it yourself and pass the folder."
                )
            members.append((info, target.joinpath(*parts), is_folder))
        contents.require_disk(target)
        for info, path, is_folder in members:
            (path if is_folder else path.parent).mkdir(parents=True, exist_ok=True)
            if not is_folder:
                try:
                    _write_member(archive, info, path)
                except _DAMAGE as error:
                    raise _damaged(contents.archive, error, f"member {_shown(info.filename)}: ") from None


def _require_all_entries(file: BinaryIO, found: int) -> None:
    """Compare with the count in the end record (APPNOTE 4.3.16): a wrong length in one entry hides others from zipfile.

    Raises:
        BadZipFile: there are more or fewer. The record has 16 bits, all of them set if the count is elsewhere.
    """
    file.seek(max(0, file.seek(0, 2) - (1 << 16) - 22))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06") + 10
    declared = int.from_bytes(tail[at : at + 2], "little")
    if declared not in (found & 0xFFFF, 0xFFFF):
        raise zipfile.BadZipFile(f"it lists {found:,} members, {declared:,} are announced")


def _write_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> None:
    """Write a file of a zip archive; zipfile compares its checksum when the last byte is read."""
    asked = copy.copy(info)
    asked.file_size += 1  # zipfile stops at the declared size: one byte more reveals a larger member
    written = 0
    with archive.open(asked) as source, path.open("xb") as out:
        while block := source.read(_BLOCK):
            written += len(block)
            if written > info.file_size:
                break
            out.write(block)
    if written != info.file_size:
        raise zipfile.BadZipFile(f"its size is not the declared {info.file_size:,} bytes")


def _shown(name: str) -> str:
    return repr(name if len(name) <= 100 else name[:99] + "…")


def _amount(size: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:,} bytes"
