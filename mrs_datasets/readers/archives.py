"""Archives as sources: tar (plain, gzip, xz, bzip2) and zip, unpacked into a temporary folder.

Everything that an archive's headers say is checked before the first byte is written, and so is the checksum of a
compressed tar. Sources of the formats: POSIX.1-2017, `pax`; PKWARE APPNOTE 6.3.10.
"""

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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple, cast

from mrs_suggest.common.errors import InputError

MAX_UNPACKED_BYTES = 128 << 30  # MRS is the largest source; its catalogue record says why this is enough
MAX_MEMBERS = 100_000  # chosen: the sources have hundreds of files, and each takes an inode
MAX_DEPTH = 64  # chosen: the sources have five levels, and removing a folder takes a stack frame per level
HEADER_BYTES = 1 << 16  # chosen: the most of one member's header, and four times the most on average; 0.5 to 4 KiB do
ARCHIVE_ENDS = (".zip", ".tgz", ".tar", ".tar.gz", ".tar.xz", ".tar.bz2")
YOURSELF = "unpack it yourself and pass the folder"

_BLOCK = 1 << 20
_TAR_BLOCK = 512
_ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")  # a member, an empty archive, a formerly split one
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # zipfile reads others without a memory limit
_ZIP_ENCRYPTED = 0x1 | 0x40  # general purpose flags, bits 0 and 6 (APPNOTE 4.4.4)
_KINDS = {  # file types of zip (from the system's mode) and of tar
    **dict.fromkeys([stat.S_IFLNK, tarfile.SYMTYPE], "a symbolic link"),
    **dict.fromkeys([stat.S_IFCHR, stat.S_IFBLK, tarfile.CHRTYPE, tarfile.BLKTYPE], "a device"),
    **dict.fromkeys([stat.S_IFIFO, tarfile.FIFOTYPE], "a named pipe"),
    stat.S_IFSOCK: "a socket",
    tarfile.LNKTYPE: "a hard link",
}
# Raised by tarfile, zipfile and the decompressors for malformed bytes.
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, struct.error, EOFError, ValueError,
    OverflowError, NotImplementedError,
)  # fmt: skip


@contextmanager
def unpacked(archive: Path, beside: Path, max_bytes: int = MAX_UNPACKED_BYTES) -> Iterator[Path]:
    """Unpack a tar or zip archive into a new folder in `beside`, yield that folder, and remove it afterwards.

    Args:
        archive: its format is found by its first bytes, not its name.
        beside: an existing folder on the output's disk.
        max_bytes: the limit for the sum of all members' sizes.

    Raises:
        InputError: not an archive, damaged, encrypted, over a limit, too little disk space, or an unsafe member: it
            points outside, is neither file nor folder, or would overwrite another. Nothing is left behind.
    """
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
    """The name of the first archive in `folder` or one folder below it, for an error message."""
    near = [path for pattern in ("*", "*/*") for path in sorted(folder.glob(pattern)) if path.is_file()]
    return next((p.relative_to(folder).as_posix() for p in near if p.name.lower().endswith(ARCHIVE_ENDS)), None)


class _File(NamedTuple):
    """A file in an archive: the parts of its path, its name there, its size, and how to open it."""

    parts: tuple[str, ...]
    name: str
    size: int
    open: Callable[[], IO[bytes] | None]


def _unpack(archive: Path, target: Path, max_bytes: int) -> None:
    contents = _Contents(archive, max_bytes)
    try:
        with archive.open("rb") as file, ExitStack() as stack:
            start = file.read(8)
            file.seek(0)
            is_zip = start.startswith(_ZIP_STARTS)
            files = _zip_files(file, contents, stack) if is_zip else _tar_files(file, start, contents, stack)
            free = shutil.disk_usage(target).free
            if contents.size > free:
                raise InputError(
                    f"{archive}: unpacking needs {contents.size:,} bytes of disk next to --out, {free:,} are free; "
                    "free some space or choose another --out."
                )
            for parts in contents.folders:
                target.joinpath(*parts).mkdir(parents=True, exist_ok=True)
            for one in files:
                try:
                    _write(one, target.joinpath(*one.parts))
                except _DAMAGE as error:
                    raise _damaged(archive, error, f"member {_shown(one.name)}: ") from None
    except _DAMAGE as error:
        raise _damaged(archive, error) from None
    except OSError as error:
        if error.errno is None:  # raised by gzip or bz2, not by the system
            raise _damaged(archive, error) from None
        raise InputError(f"{archive}: cannot unpack the archive ({error.strerror}).") from None


def _write(file: _File, path: Path) -> None:
    """Write a file; zipfile compares its checksum when the last byte is read."""
    written = 0
    with cast(IO[bytes], file.open()) as source, path.open("xb") as out:
        while block := source.read(_BLOCK):
            written += len(block)
            if written > file.size:
                break
            out.write(block)
    if written != file.size:
        raise zipfile.BadZipFile(f"its size is not the declared {file.size:,} bytes")


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
        folders: all of them, with or without their own member.
    """

    def __init__(self, archive: Path, max_bytes: int) -> None:
        self.archive = archive
        self.max_bytes = max_bytes
        self.size = 0
        self.folders: set[tuple[str, ...]] = set()
        self._files: set[tuple[str, ...]] = set()
        self._members = 0

    def add(self, name: str, size: int, is_folder: bool, kind: str | None) -> tuple[str, ...]:
        """Check a member; return the parts of its path, none of them `..`.

        Args:
            kind: of a member that is neither a file nor a folder.
        """
        parts = tuple(part for part in re.split(r"[/\\]", name) if part not in ("", "."))
        folders = {parts[:depth] for depth in range(1, len(parts) + is_folder)}
        reason = kind or _why_unsafe(name, parts, is_folder)
        if not reason and size < 0:
            reason = "its size is negative"
        taken = not is_folder and parts in self._files | self.folders
        if not reason and (taken or not folders.isdisjoint(self._files)):
            reason = "another member has its path"
        if reason:
            raise InputError(
                f"{self.archive}: the archive is refused, since the member {_shown(name)} is unsafe ({reason}); if you "
                f"trust it, {YOURSELF}."
            )
        self.folders |= folders
        self._members += 1
        if not is_folder:
            self._files.add(parts)
            self.size += size
        if max(self._members, len(self._files) + len(self.folders)) > MAX_MEMBERS:
            raise InputError(
                f"{self.archive}: the archive has more than {MAX_MEMBERS:,} files and folders, the limit; {YOURSELF}."
            )
        self.limit(self.size)
        return parts

    def limit(self, size: int) -> None:
        """Refuse an archive that unpacks to at least `size` bytes, if they are over its limit."""
        if size > self.max_bytes:
            units = ((1 << 30, "GiB"), (1 << 20, "MiB"))
            most = next((f"{self.max_bytes / unit:g} {name}" for unit, name in units if self.max_bytes >= unit), None)
            raise InputError(
                f"{self.archive}: the archive unpacks to more than {most or f'{self.max_bytes:,} bytes'}, the limit "
                f"for this data set; {YOURSELF}."
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


def _tar_files(file: BinaryIO, start: bytes, contents: _Contents, stack: ExitStack) -> list[_File]:
    openers: dict[bytes, Callable[[Any], Any]] = {b"\x1f\x8b": gzip.open, b"\xfd7": lzma.open, b"BZ": bz2.open}
    file = openers.get(start[:2], lambda plain: plain)(file)
    guard = _HeaderGuard(file)
    tar = stack.enter_context(tarfile.open(fileobj=cast(BinaryIO, guard), mode="r:"))  # noqa: SIM115
    files = []
    while (member := tar.next()) is not None:  # getmembers() would decompress all of a bomb to find its last header
        kind = None if member.isfile() or member.isdir() else _KINDS.get(member.type, "not a file or folder")
        kind = "a sparse file" if member.issparse() else kind  # may write more than its size
        parts = contents.add(member.name, member.size, member.isdir(), kind)
        if not member.isdir():
            files.append(_File(parts, member.name, member.size, partial(tar.extractfile, member)))
        guard.allowed = min(guard.allowed + HEADER_BYTES // 4, HEADER_BYTES)  # tarfile keeps what it read
    if guard.last != bytes(_TAR_BLOCK):  # tarfile treats a broken header as the end, and drops all that follows
        raise tarfile.ReadError("the end mark after the last member is missing")
    rest = 0
    while block := file.read(_BLOCK):  # read on behind the end mark, to the compressed stream's checksum
        contents.limit(rest)  # the first block is padding
        rest += len(block)
    guard.allowed = math.inf
    return files


class _HeaderGuard:
    """The bytes of a tar archive, for tarfile, with a limit while headers are read.

    tarfile seeks over the data of members, but reads headers of any length, or a chain of them, completely.

    Attributes:
        allowed: how many bytes may still be read.
        last: the bytes that were read last.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell = file.seek, file.tell
        self._file = file
        self.allowed: float = HEADER_BYTES
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        if not 0 <= size <= self.allowed:
            raise tarfile.ReadError(f"a header is longer than {HEADER_BYTES:,} bytes")
        self.allowed -= size
        self.last = self._file.read(size)
        return self.last


def _zip_files(file: BinaryIO, contents: _Contents, stack: ExitStack) -> list[_File]:
    archive = stack.enter_context(zipfile.ZipFile(file))
    infos = archive.infolist()
    # A wrong length in one entry hides others from zipfile, but not from the count in the end record (APPNOTE 4.3.16);
    # the count has 16 bits, all of them set if it is elsewhere.
    file.seek(max(0, file.seek(0, 2) - (1 << 16) - 22))
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06") + 10
    declared = int.from_bytes(tail[at : at + 2], "little")
    if declared not in (len(infos) & 0xFFFF, 0xFFFF):
        raise zipfile.BadZipFile(f"it lists {len(infos):,} members, but declares {declared:,}")
    files = []
    for info in infos:
        name, kind = info.filename, _KINDS.get(stat.S_IFMT(info.external_attr >> 16))
        is_folder = name.endswith(("/", "\\"))  # some Windows tools write their own separator (APPNOTE 4.4.17)
        parts = contents.add(name, info.file_size, is_folder, kind)
        if info.flag_bits & _ZIP_ENCRYPTED:
            raise InputError(f"{contents.archive}: the archive is encrypted (member {_shown(name)}); {YOURSELF}.")
        if info.compress_type not in _ZIP_METHODS:
            raise InputError(
                f"{contents.archive}: the member {_shown(name)} is compressed by method {info.compress_type}, "
                f"expected deflate or none; {YOURSELF}."
            )
        asked = copy.copy(info)
        asked.file_size += 1  # zipfile stops at the declared size: one byte more reveals a larger member
        if not is_folder:
            files.append(_File(parts, name, info.file_size, partial(archive.open, asked)))
    return files


def _shown(name: str) -> str:
    return repr(name if len(name) <= 100 else name[:99] + "…")
