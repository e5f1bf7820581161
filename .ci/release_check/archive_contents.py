"""What lies in the wheel: a licence for every file, nothing large, no secrets, no paths of the machine of the build."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

MAX_FILE = 16_000_000  # bytes; the largest, the weights of the model that ships, has 12.8 million
MAX_WHEEL = 20_000_000
MAX_SDIST = 25_000_000
HEAD = "Files that are not code"
SECRETS = {
    "a token of the hub": rb"\bhf_[A-Za-z0-9]{30,}",
    "a token of GitHub": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})",
    "a token of PyPI": rb"\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "a key of AWS": rb"\bAKIA[0-9A-Z]{16}\b",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
MACHINE = re.compile(rb"(?<![\w./:-])/(?:home|Users|root|work|tmp|builds)/[\w.-]{2,}")


@dataclass(frozen=True)
class Line:
    """One line of NOTICE: files by a pattern of names, their licence (SPDX), and where they are from."""

    pattern: str
    licence: str
    origin: str


def read_notice(text: str, where: str = "NOTICE") -> list[Line]:
    """The table below the heading `HEAD`: `PATTERN | LICENCE | ORIGIN`, in each pattern `*` stands for any letters.

    Raises:
        ValueError: the table is missing, or a line has another form.
    """
    _, found, table = text.partition(f"\n{HEAD}\n")
    rows = [line for line in table.splitlines() if "|" in line]
    if not found or not rows:
        raise ValueError(f"{where}: expected the heading {HEAD!r} and lines PATTERN | LICENCE | ORIGIN below it.")
    lines = []
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) != 3 or not all(cells):
            raise ValueError(f"{where}: expected PATTERN | LICENCE | ORIGIN, found {row!r}.")
        lines.append(Line(*cells))
    return lines


def needs_line(name: str) -> bool:
    """Whether a file of the wheel is something else than our code and the wheel's own metadata."""
    path = PurePosixPath(name)
    return path.suffix != ".py" and path.name != "py.typed" and not path.parts[0].endswith(".dist-info")


def without_licence(names: list[str], lines: list[Line]) -> list[str]:
    """A sentence for each file that no line of NOTICE covers, and for each line that covers none."""
    files = [name for name in names if needs_line(name)]
    told = [
        f"{name}: ships in the wheel, but no line of NOTICE gives its licence and origin; add one below {HEAD!r}."
        for name in files
        if not any(fnmatchcase(name, line.pattern) for line in lines)
    ]
    unused = [line.pattern for line in lines if not any(fnmatchcase(name, line.pattern) for name in files)]
    return told + [f"NOTICE: {pattern} names no file of the wheel; remove the line." for pattern in unused]


def suspicious(name: str, content: bytes) -> list[str]:
    """A sentence for each secret and for a path of one machine in a file."""
    told = [
        f"{name}: holds {what}; remove it, and revoke it." for what, form in SECRETS.items() if re.search(form, content)
    ]
    found = MACHINE.search(content)
    if found:
        path = found[0].decode("ascii", "replace")
        told.append(f"{name}: names {path!r}, a path of one machine, at byte {found.start():,}; write it without.")
    return told


def check_contents(files: Mapping[str, Path], notice: str) -> list[str]:
    """Every problem of the built files: sizes, licences, secrets."""
    told = []
    for name, path in files.items():
        limit = MAX_WHEEL if name.endswith(".whl") else MAX_SDIST
        told += _too_large(name, path.stat().st_size, limit)
    (wheel,) = (path for name, path in files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            told += _too_large(entry.filename, entry.file_size, MAX_FILE)
            told += suspicious(entry.filename, archive.read(entry))
        return told + without_licence(archive.namelist(), read_notice(notice))


def _too_large(name: str, size: int, limit: int) -> list[str]:
    return [f"{name}: {size:,} bytes, expected at most {limit:,}; leave it out, or fetch it."] if size > limit else []
