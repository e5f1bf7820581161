"""The folder of a build's finished work, locked for one build at a time, and leftovers of killed builds.

The lock works on this machine only: if the folder is remote, it is in the scratch folder, and does not lock out builds
on other machines.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
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

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io import files
from mrs_suggest.common.io.storage import Location, files_below, remove, scratch_folder, write_text

MARKER = "settings.json"  # every work folder has one
LOCK = "lock"
ANSWERS = "answers.sqlite"  # finished answers of models (mrs_suggest.common.io.text_cache), on the local disk
RESUME = "continue with --resume"


class WorkFolder:
    """The folder of a build's finished work: `STAGE/NAME.json` says that a shard is done, and has its counts.

    Args:
        folder: beside the data set that is built.
        identity: settings and inputs; work of a different build is not resumed.
        changeable: keys of `identity` that may differ, each with the stages that are then done again.
        shared: other processes, on other machines too, may do other shards of a stage meanwhile, all of them with
            `shared`; existing work of the same identity is joined, whatever `resume`.

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
        shared: bool = False,
    ) -> None:
        self.scratch = own_scratch(folder)
        self._shared: Mapping[str, object] | None = None
        if shared and not isinstance(folder, Path):  # the whole build empties its scratch folder when it begins
            self.scratch = self.scratch.with_name(f"{self.scratch.name}-{os.getpid()}")
        self.folder = folder = folder if isinstance(folder, Path) else replace(folder, scratch=self.scratch)
        self.changed = ""
        self._lock: IO[str] | None = None
        if self.scratch != folder:
            self._begin_scratch()
        marker = folder / MARKER
        if folder.exists() and not (folder.is_dir() and (marker.is_file() or all(map(_is_begun, folder.iterdir())))):
            raise InputError(f"{folder}: has no {MARKER}, so it was not made here; choose another --out.")
        plain = json.loads(json.dumps(identity))
        if shared:
            self._join({key: value for key, value in plain.items() if key not in (changeable or {})}, plain)
            return
        if folder.exists():
            self._lock_out_others()
        if folder.exists() and not resume:
            if not overwrite:
                raise InputError(f"{folder}: holds an interrupted build; pass --resume to continue it, or --overwrite.")
            self.remove()
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

    def _join(self, same: Mapping[str, object], plain: Mapping[str, object]) -> None:
        """Begin the work, or take part in it: nothing in it is removed.

        Args:
            same: the part of the identity that all who take part have in common.
        """
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(parents=True, exist_ok=True)
            if self.scratch == self.folder:
                self._lock_out_others(shared=True)
            if not (self.folder / MARKER).is_file():
                write_text(self.folder / MARKER, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
        self._shared = same
        self._require_joined()

    def _require_joined(self) -> None:
        """Refuse work that another process began with another identity, or at the same moment."""
        if self._shared is None:
            return
        try:
            before = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = None
        if not isinstance(before, dict) or {**before, **self._shared} != before:
            raise InputError(
                f"{self.folder}: was begun with other {_differing(before, self._shared, {})}; pass the same, or remove "
                "that folder."
            )

    def hold(self, stage: str, shard: str) -> IO[str] | None:
        """Keep other processes from the same shard until the result is closed, or this process ends.

        Raises:
            InputError: another one is doing it.
        """
        folder = self.folder / stage
        if not isinstance(folder, Path):  # two would write the same file, each whole
            return None
        file = (folder / f".{shard}.{LOCK}").open("w")
        if not _locked(file, exclusive=True):
            file.close()
            raise InputError(f"{folder / shard}: another process is doing it; wait for it, or stop it.")
        return file

    def leave(self) -> None:
        """Leave the work to others, who go on with it."""
        if self.scratch != self.folder:
            remove(self.scratch)
        if self._lock:
            self._lock.close()
            self._lock = None

    def _begin_scratch(self) -> None:
        """Make a scratch folder for a remote work folder, or empty the one of a killed build, but for its answers."""
        with files.writing(self.scratch, "choose another --scratch"):
            self.scratch.mkdir(parents=True, exist_ok=True)
            self._lock_out_others()
            for path in self.scratch.iterdir():
                if path.name != LOCK and not path.name.startswith(ANSWERS):
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
            for key, stages in changeable.items():
                for stage in stages if before.get(key) != identity[key] else ():
                    if (self.folder / stage).exists():
                        self.changed = _differing(before, identity, {})
                        remove(self.folder / stage)

    def _lock_out_others(self, shared: bool = False) -> None:
        """Hold a lock until this process ends, or the work is removed.

        Args:
            shared: others may hold it, too, if they share it.

        Raises:
            InputError: another process holds it.
        """
        if self._lock:
            return
        self._lock = (self.scratch / LOCK).open("a+")
        if not _locked(self._lock, exclusive=not shared):
            self._lock.close()
            self._lock = None
            raise InputError(f"{self.folder}: another build is running there; wait for it, or stop it.")

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
        self._require_joined()
        note(self.folder / stage, shard, counts)

    def remove(self) -> None:
        """Remove everything, after the data set is written."""
        remove_work(self.folder)
        if self.scratch != self.folder:
            remove(self.scratch)
        if self._lock:
            self._lock.close()
            self._lock = None


def _locked(file: IO[str], exclusive: bool) -> bool:
    """Lock a file; false if another process holds it. Without locks in the file system, nobody ever does."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


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


def remove_finished(folder: Location) -> None:
    """Remove the work folder of a build that ended between its last step and this one, if there is one."""
    if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
        remove_work(folder)
        if own_scratch(folder).is_dir():
            remove(own_scratch(folder))


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
