"""The folder of a build's finished work, locked for one build at a time, and leftovers of killed builds.

The lock works on this machine only: if the folder is remote, it is in the scratch folder, and does not lock out builds
on other machines.
"""

import glob
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io import files
from mrs_suggest.common.io.storage import Location, files_below, read_object, remove, scratch_folder, write_text

MARKER = "settings.json"  # every work folder has one
LOCK = "lock"
ANSWERS = "answers.sqlite"
RESUME = "continue with --resume"


class WorkFolder:
    """The folder of a build's finished work: `STAGE/NAME.json` says that a shard is done, and has its counts.

    Args:
        folder: next to the data set that is built.
        identity: settings and inputs; work of a different build is not resumed.
        changeable: keys of `identity` that may differ, each with the stages that are then rebuilt.
        shared: other processes, also on other machines, may do other shards of a stage meanwhile, all of them with
            `shared`; existing work of the same identity is joined, whatever `resume`.

    Attributes:
        scratch: the local folder for temporary files; the work folder itself if that is local.
        answers: the local file for finished answers of models (mrs_suggest.common.io.text_cache).
        changed: what differs in the changeable keys; empty if nothing does.

    Raises:
        InputError: there is work of an earlier build and neither `resume` nor `overwrite`, it is of a different build,
            another process is using it, or the folder was not made by a build.
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
        self.scratch = _own_scratch(folder)
        self._shared: dict[str, Any] = {}  # what all processes that share the work have in common
        self._lock: IO[str] | None = None
        self._finished = False  # whether any shard may be done
        self.changed = ""
        if shared and not isinstance(folder, Path):  # the whole build empties its scratch folder when it begins
            self.scratch = self.scratch.with_name(f"{self.scratch.name}-{os.getpid()}")
        self.folder = folder = folder if isinstance(folder, Path) else replace(folder, scratch=self.scratch)
        self.answers = self.scratch / ANSWERS
        if self.scratch != folder:
            self._begin_scratch()
        marker = folder / MARKER
        ours = folder.is_dir() and (  # the creation of the folder may have been interrupted
            marker.is_file() or all(_is_partial(path) or path.name == LOCK for path in folder.iterdir())
        )
        if folder.exists() and not ours:
            raise InputError(f"{folder}: does not look like the work of a build (no {MARKER}); choose another --out.")
        now = json.loads(json.dumps(identity))
        if shared:
            self._shared = {key: value for key, value in now.items() if key not in (changeable or {})}
            self._begin(now, shared=True)
            return
        if folder.exists():
            self._lock_out_others()
            if not resume and not overwrite:
                raise InputError(f"{folder}: holds an interrupted build; pass --resume to continue it, or --overwrite.")
            if not resume:
                self.remove()
        if marker.is_file():
            self._take_up(now, changeable or {})
            self._finished = True
        self._begin(now)
        for path in files_below(folder):
            above = path.relative_to(str(folder)).parents if isinstance(path, Path) else ()
            if any(map(_is_partial, (path, *above))):
                path.unlink()

    def _begin(self, identity: Mapping[str, Any], shared: bool = False) -> None:
        """Make the folder with its lock and its marker; shared work is joined, and nothing in it is removed."""
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self.scratch.mkdir(parents=True, exist_ok=True)
            if not shared or self.scratch == self.folder:
                self._lock_out_others(shared)
            if not shared or not (self.folder / MARKER).is_file():
                write_text(self.folder / MARKER, json.dumps(identity, indent=2, ensure_ascii=False) + "\n")
        self._refuse_other_work()

    def _begin_scratch(self) -> None:
        """Make a scratch folder for a remote work folder, or empty the one of a killed build, but for its answers."""
        with files.writing(self.scratch, "choose another --scratch"):
            self.scratch.mkdir(parents=True, exist_ok=True)
            self._lock_out_others()
            for path in self.scratch.iterdir():
                if path.name != LOCK and not path.name.startswith(ANSWERS):
                    remove(path)

    def _refuse_other_work(self) -> None:
        """Refuse shared work that another process began with another identity, perhaps at the same moment."""
        before = (read_object(self.folder / MARKER) or {}) if self._shared else {}
        if {**before, **self._shared} != before:
            raise InputError(
                f"{self.folder}: was begun with other {_differing(before, self._shared)}; pass the same, or remove "
                "that folder."
            )

    def _take_up(self, identity: Mapping[str, Any], changeable: Mapping[str, Sequence[str]]) -> None:
        """Compare with the identity of the existing work; remove the stages that must be rebuilt."""
        before = read_object(self.folder / MARKER)
        same = {key: identity[key] for key in changeable}
        if before is None or {**before, **same} != identity:
            fixed = {key: value for key, value in identity.items() if before is None or key not in changeable}
            raise InputError(
                f"--resume: {self.folder} was begun with other {_differing(before or {}, fixed)}; pass the same, or "
                "--overwrite instead of --resume."
            )
        for key, stages in changeable.items():
            for stage in stages if before.get(key) != identity[key] else ():
                if self.forget(stage):
                    self.changed = _differing(before, identity)

    def _lock_out_others(self, shared: bool = False) -> None:
        """Hold a lock until this process ends, or the work is removed; others may hold a `shared` one, too."""
        if self._lock:
            return
        self._lock = (self.scratch / LOCK).open("a+")
        if not _locked(self._lock, exclusive=not shared):
            self._unlock()
            raise InputError(f"{self.folder}: another build is running there; wait for it, or stop it.")

    def _unlock(self) -> None:
        if self._lock:
            self._lock.close()
            self._lock = None

    def stage(self, name: str) -> Location:
        """The folder of a stage, and a folder of its name for local files."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        (self.scratch / name).mkdir(exist_ok=True)
        return path

    def forget(self, stage: str) -> bool:
        """Remove a stage's finished work; whether there was any."""
        there = (self.folder / stage).exists()
        if there:
            remove(self.folder / stage)
        return there

    def done(self, stage: str, shard: str) -> dict[str, Any] | None:
        """The counts of a finished shard."""
        return read_object(self.folder / stage / f"{shard}.json")

    def finish(self, stage: str, shard: str, counts: Mapping[str, object]) -> None:
        """Mark a shard as done, after its output is complete."""
        self._refuse_other_work()
        path = self.folder / stage / f"{shard}.json"
        with writing(path):
            write_text(path, json.dumps(counts, ensure_ascii=False) + "\n")
        self._finished = True

    @contextmanager
    def kept_after_errors(self) -> Iterator[None]:
        """Make an InputError in the block say where finished work is kept; remove a new folder that has none."""
        try:
            yield
        except InputError as error:
            if not self._finished:
                with suppress(OSError):
                    self.remove()
                raise
            how = "" if "--resume" in str(error) else f"; {RESUME}"
            raise InputError(f"{error} Finished work is kept in {self.folder}{how}.") from None

    def hold(self, stage: str, shard: str) -> IO[str] | None:
        """Keep other processes from the shard until the result is closed, or this one ends; else an InputError."""
        folder = self.folder / stage
        if not isinstance(folder, Path):  # two would write the same file, each whole
            return None
        file = (folder / f".{shard}.{LOCK}").open("w")
        if not _locked(file, exclusive=True):
            file.close()
            raise InputError(f"{folder / shard}: another process is doing it; wait for it, or stop it.")
        return file

    def leave(self) -> None:
        """Leave the work to others, who continue it."""
        if self.scratch != self.folder:
            remove(self.scratch)
        self._unlock()

    def remove(self) -> None:
        """Remove everything, after the data set is written."""
        remove_work(self.folder)
        self.leave()


def _locked(file: IO[str], exclusive: bool) -> bool:
    """Lock a file; false if another process holds it. In a file system without locks, always true."""
    if fcntl is None:
        return True
    try:
        fcntl.lockf(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def work_place(out: Location) -> Location:
    """The work folder of a build to `out`."""
    return out.parent / f".{out.name}.build"


def _own_scratch(folder: Location) -> Path:
    """The local folder of one work folder: itself, or, for a remote one, a folder in its scratch folder."""
    if isinstance(folder, Path):
        return folder
    return scratch_folder(folder) / f"{folder.name}-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}"


def remove_work(folder: Location) -> None:
    """Remove a work folder, its marker last, which distinguishes it from folders that were not made by a build."""
    for entry in folder.iterdir():
        if entry.name != MARKER:
            remove(entry)
    (folder / MARKER).unlink(missing_ok=True)
    folder.rmdir()


def remove_finished(out: Location) -> None:
    """Remove what a build to `out` left that ended between its last step and this one."""
    folder = work_place(out)
    if folder.is_dir() and ((folder / MARKER).is_file() or not any(folder.iterdir())):
        remove_work(folder)
        if _own_scratch(folder).is_dir():
            remove(_own_scratch(folder))
    remove_leftovers(out, "partial", "old")


def remove_leftovers(out: Location, *kinds: str) -> None:
    """Remove partial and replaced data sets of builds to `out` that were killed while writing.

    Those of a remote `out` are in the scratch folder, which the next build empties.
    """
    if isinstance(out, Path):
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


def _differing(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The names of what differs; for settings, which ones."""
    names = []
    for key, value in now.items():
        other = before.get(key)
        if other != value and isinstance(value, dict) and isinstance(other, dict):
            names += [name for name in value if other.get(name) != value[name]] or [key]
        elif other != value and before:
            names.append(key)
    return ", ".join(names) or "settings"
