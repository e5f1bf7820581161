"""Wheel and source distribution of a commit, built twice: they must be the same files, byte for byte."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

SETTINGS = ({"PYTHONHASHSEED": "1", "TZ": "UTC"}, {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"})


class BuildError(Exception):
    """A command of the build failed; the message is a sentence."""


def run(*command: object, cwd: Path, env: Mapping[str, str] | None = None) -> bytes:
    """The output of a command.

    Raises:
        BuildError: it failed; the message ends with its last line.
    """
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True)
    if done.returncode:
        lines = (done.stderr + done.stdout).decode("utf-8", "replace").strip().splitlines() or ["no output"]
        raise BuildError(f"`{' '.join(words)}` failed in {cwd}: {lines[-1].rstrip('.')}.")
    return done.stdout


def epoch_of(repository: Path) -> int:
    """Seconds since 1970 of the last commit: the time that all files of a build have (SOURCE_DATE_EPOCH)."""
    return int(run("git", "log", "-1", "--format=%ct", cwd=repository))


def export(repository: Path, folder: Path) -> None:
    """Write the files of the last commit into a new folder, with the rights that git keeps and no others."""
    with tarfile.open(fileobj=io.BytesIO(run("git", "archive", "--format=tar", "HEAD", cwd=repository))) as tar:
        tar.extractall(folder, filter="data")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def build_twice(repository: Path, work: Path) -> tuple[dict[str, Path], list[str]]:
    """Build in two folders: once the wheel from the source distribution, once both from the tree.

    Args:
        work: an empty folder.

    Returns:
        File name -> its path, of the first build; and a sentence for each file that differs.
    """
    epoch = epoch_of(repository)
    built = []
    for number, settings in enumerate(SETTINGS, start=1):
        source, out = work / f"tree-{number}" / "mrs-suggest", work / f"dist-{number}"
        source.mkdir(parents=True)
        export(repository, source)
        which = [] if number == 1 else ["--sdist", "--wheel"]  # without: the wheel is built from the sdist
        env = {**settings, "SOURCE_DATE_EPOCH": str(epoch)}
        run(sys.executable, "-m", "build", "--no-isolation", *which, "--outdir", out, source, cwd=work, env=env)
        shutil.rmtree(source)
        for archive in out.glob("*.tar.gz"):
            normalise(archive, epoch)
        built.append({path.name: path for path in sorted(out.iterdir())})
    return built[0], differences(*built)


def differences(first: Mapping[str, Path], second: Mapping[str, Path]) -> list[str]:
    """A sentence for each file that only one build has or that differs."""
    told = [f"{name}: only one of two builds made it." for name in sorted(first.keys() ^ second.keys())]
    for name in sorted(first.keys() & second.keys()):
        one, other = first[name].read_bytes(), second[name].read_bytes()
        if one != other:
            told.append(
                f"{name}: two builds of one commit differ (SHA-256 {sha256(one)[:12]} and {sha256(other)[:12]}; the "
                f"second was built from the tree, the first from the sdist); compare {first[name]} with {second[name]}."
            )
    return told


def normalise(archive: Path, epoch: int) -> None:
    """Write a source distribution again with sorted members, one time for all and no owners.

    setuptools takes SOURCE_DATE_EPOCH for wheels, but not for the tar file of a source distribution.
    """
    content = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            plain = tarfile.TarInfo(member.name)
            plain.type, plain.size, plain.mtime = member.type, member.size, epoch
            plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(plain, old.extractfile(member) if member.isfile() else None)
    with archive.open("wb") as file, gzip.GzipFile("", "wb", compresslevel=9, fileobj=file, mtime=epoch) as packed:
        packed.write(content.getvalue())


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
