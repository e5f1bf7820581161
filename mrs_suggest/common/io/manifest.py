"""Whether a model's files are those that were written, by the sizes and SHA-256 in `run.json`, key `files`.

Sizes are always compared; hashes too if all files together have at most `HASHED_AT_LOAD` bytes, and above that on
request (`--verify`, `mrs models download`, `mrs models publish`).
"""

import json
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from typing import TypedDict

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256

RECORD = "run.json"
KEY = "files"
HASHED_AT_LOAD = 256 << 20  # ours: .3 s on one core; loading such a model takes several seconds (docs/concepts/runs.md)


class FileEntry(TypedDict):
    bytes: int
    sha256: str


def list_files(folder: Path, paths: Iterable[Path]) -> dict[str, FileEntry]:
    """The entry `files` of `run.json`: path below the folder -> `bytes` and `sha256`, sorted by path."""
    return {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in sorted(paths)
    }


def has_hashes(folder: Path) -> bool:
    """Whether the record of a model's folder has the hashes of its files; a damaged record is refused."""
    return _read_files(folder) is not None


def require_undamaged(folder: Path, verify: bool = False) -> int:
    """Compare a model's files with those of its record.

    Args:
        verify: compare hashes whatever the files' sizes are, and refuse a record without hashes.

    Returns:
        How many files were compared; 0 without a record, or with one that has no hashes.

    Raises:
        InputError: the record is damaged, or a file is missing or differs from the one that was written.
    """
    files = _read_files(folder)
    if files is None:
        if verify:
            raise InputError(f"{folder}: has no {RECORD} with the hashes of its files, so nothing can be compared.")
        return 0
    hashed = verify or sum(entry["bytes"] for entry in files.values()) <= HASHED_AT_LOAD
    for name, entry in files.items():
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path}: missing; {again(folder)}.")
        size = path.stat().st_size
        if size != entry["bytes"]:
            raise InputError(f"{path}: expected {entry['bytes']:,} bytes, found {size:,}; {again(folder)}.")
        if hashed and file_sha256(path) != entry["sha256"]:
            raise InputError(f"{path}: damaged, its SHA-256 is not the one in {RECORD}; {again(folder)}.")
    return len(files)


def again(path: Path) -> str:
    """How to get a damaged model again, depending on its path: the end of a sentence, without its full stop."""
    for part in path.parts:
        if part.startswith("models--") and part.count("--") >= 2:  # the hub's cache
            return f"run `mrs models download --force {part.removeprefix('models--').replace('--', '/', 1)}`"
    if "embedded" in path.parts and "mrs_suggest" in path.parts:
        return "install mrs-suggest again"
    return "copy it again from an intact copy, or train it again"


def _read_files(folder: Path) -> dict[str, FileEntry] | None:
    path = folder / RECORD
    if not path.is_file():
        return None
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        files: dict[str, FileEntry] | None = record.get(KEY)
        for name, entry in files.items() if files is not None else ():
            place = PurePosixPath(name)
            inside = not place.is_absolute() and ".." not in place.parts
            if not inside or not isinstance(entry["bytes"], int) or not isinstance(entry["sha256"], str):
                raise ValueError
        return files
    except (OSError, ValueError, AttributeError, TypeError, KeyError, RecursionError):
        raise InputError(f"{path}: damaged; {again(folder)}.") from None
