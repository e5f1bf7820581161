"""The folder of a build's finished work, locked for one build at a time, and leftovers of killed builds.

The lock works on this machine only: if the folder is remote, it is in the scratch folder, and does not lock out builds
on other machines.
"""

from __future__ import annotations

import glob
import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mrs_core import files
from mrs_core.errors import InputError, RemoteError
from mrs_core.storage import Location, files_below, remove, scratch_folder, write_text

MARKER = "settings.json"  # every work folder has one
LOCK = "lock"
RESUME = "continue with --resume"


class WorkFolder:
    """The folder of a build's finished work: `STAGE/NAME.json` says that a shard is done, and has its counts.

    Args:
        folder: beside the data set that is built.
        identity: settings and inputs; work of a different build is not resumed.
        changeable: keys of `identity` that may differ, each with the stages that are then done again.

    Attributes:
        scratch: the local folder for temporary files; the work folder itself if that is local.
        changed: what differs in the changeable keys; empty if nothing does.

    Raises:
        InputError: there is work of an earlier build and neither `resume` nor `overwrite`, it is of a different build,
            another process is using it, or the folder was not made here.
    """

    def __init__(
        self,
        folder: Location,
        identity: Mapping[str, object],
        resume: bool,
        overwrite: bool,
        changeable: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.scratch = own_scratch(folder)
        self.folder = folder = folder if isinstance(folder, Path) else replace(folder, scratch=self.scratch)
        self.changed = ""
        self._lock: IO[str] | None = None
        if self.scratch != folder:
            self._begin_scratch()
        marker = folder / MARKER
        if folder.exists() and not (folder.is_dir() and (marker.is_file() or all(map(_is_begun, folder.iterdir())))):
            raise InputError(f"{folder}: has no {MARKER}, so it was not made here; choose another --out.")
        if folder.exists():
            self._lock_out_others()
        if folder.exists() and not resume:
            if not overwrite:
                raise InputError(f"{folder}: holds an interrupted build; pass --resume to continue it, or --overwrite.")
            self.remove()
        plain = json.loads(json.dumps(identity))
        if marker.is_file():
            self._take_up(plain, changeable or {})
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(parents=True, exist_ok=True)
            self._lock_out_others()
            write_text(marker, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
        for path in files_below(folder):
            if _is_partial(path):
                path.unlink()

    def _begin_scratch(self) -> None:
        """Make a scratch folder for a remote work folder, or empty the one of a killed build."""
        with files.writing(self.scratch, "choose another --scratch"):
            self.scratch.mkdir(parents=True, exist_ok=True)
            self._lock_out_others()
            for path in self.scratch.iterdir():
                if path.name != LOCK:
                    remove(path)

    def _take_up(self, identity: Mapping[str, object], changeable: Mapping[str, Sequence[str]]) -> None:
        """Compare with the identity of the existing work; remove the stages that must be done again."""
        try:
            before = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
        except ValueError:
            before = None
        same = {key: identity[key] for key in changeable} if isinstance(before, dict) else {}
        if not isinstance(before, dict) or {**before, **same} != identity:
            raise InputError(
                f"--resume: {self.folder} was begun with other {_differing(before, identity, same)}; pass the "
                "same, or --overwrite instead of --resume."
            )
        if before != identity:
            self.changed = _differing(before, identity, {})
            for key, stages in changeable.items():
                for stage in stages if before.get(key) != identity[key] else ():
                    if (self.folder / stage).exists():
                        remove(self.folder / stage)

    def _lock_out_others(self) -> None:
        """Hold a lock until this process ends, or the work is removed.

        Raises:
            InputError: another process holds it.
        """
        if fcntl is None or self._lock:
            return
        self._lock = (self.scratch / LOCK).open("w")
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            self._lock = None
            raise InputError(f"{self.folder}: another build is running there; wait for it, or stop it.") from None
        except OSError:  # a file system without locks
            pass

    def stage(self, name: str) -> Location:
        """The folder of a stage."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def done(self, stage: str, shard: str) -> dict[str, object] | None:
        """The counts of a finished shard."""
        path = self.folder / stage / f"{shard}.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def finish(self, stage: str, shard: str, counts: Mapping[str, object]) -> None:
        """Mark a shard as done, after its output is complete."""
        note(self.folder / stage, shard, counts)

    def remove(self) -> None:
        """Remove everything, after the data set is written."""
        remove_work(self.folder)
        if self.scratch != self.folder:
            remove(self.scratch)
        if self._lock:
            self._lock.close()
            self._lock = None


def note(stage: Location, shard: str, counts: Mapping[str, object]) -> None:
    """Mark a shard as done in the folder of its stage, from any process."""
    path = stage / f"{shard}.json"
    with writing(path):
        write_text(path, json.dumps(counts, ensure_ascii=False) + "\n")


def work_place(out: Location) -> Location:
    """The work folder of a build to `out`."""
    return out.parent / f".{out.name}.build"


def own_scratch(folder: Location) -> Path:
    """The local folder of one work folder: itself, or, for a remote one, a folder in its scratch folder."""
    if isinstance(folder, Path):
        return folder
    return scratch_folder(folder) / f"{folder.name}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def remove_work(folder: Location) -> None:
    """Remove a work folder, its marker last: so that it can always be told from a folder that was not made here."""
    for entry in folder.iterdir():
        if entry.name != MARKER:
            remove(entry)
    (folder / MARKER).unlink(missing_ok=True)
    folder.rmdir()


def remove_leftovers(out: Location, *kinds: str) -> None:
    """Remove partial and replaced data sets of builds to `out` that were killed while writing.

    A remote one has none beside it: they are made in the scratch folder.
    """
    if not isinstance(out, Path):
        return
    for kind in kinds:
        for folder in out.parent.glob(f".{glob.escape(out.name)}.{kind}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def writing(path: Location) -> AbstractContextManager[None]:
    """Turn an error of the disk or of a storage into a sentence."""
    disk = "the disk" if isinstance(path, Path) else f"the disk of {scratch_folder(path)} or in the storage"
    return files.writing(path, f"free space on {disk}, or correct its permissions, and {RESUME}")


def unreachable(path: Location, error: RemoteError) -> InputError:
    """The error for a remote file that cannot be read now, but may be intact."""
    return InputError(f"{path}: cannot be read ({error}); check the storage, and {RESUME}.")


def _is_partial(path: Location) -> bool:
    return path.name.startswith(".") and ".partial-" in path.name


def _is_begun(path: Location) -> bool:
    """Whether it may be in a folder whose creation was interrupted."""
    return _is_partial(path) or path.name == LOCK


def _differing(before: object, now: Mapping[str, object], skipped: Mapping[str, object]) -> str:
    """The names of what differs; for settings, which ones."""
    if not isinstance(before, dict):
        return "settings"
    names = []
    for key in now:
        if before.get(key) == now[key] or key in skipped:
            continue
        inner, other = now[key], before.get(key)
        if isinstance(inner, dict) and isinstance(other, dict):
            names += [name for name in inner if other.get(name) != inner[name]] or [key]
        else:
            names.append(key)
    return ", ".join(names) or "settings"
