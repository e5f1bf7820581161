"""Where a build keeps what is finished, for one build at a time, and what is left of builds that were killed."""

from __future__ import annotations

import glob
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mrs_core import files
from mrs_core.errors import InputError
from mrs_core.files import atomic_write

MARKER = "settings.json"  # every work folder has one
LOCK = "lock"


class WorkFolder:
    """Where a build keeps what is finished: `STAGE/NAME.json` says that a shard is done, and holds its counts.

    Args:
        folder: beside the data set that is built.
        identity: settings and inputs; work of another build is not taken up.
        changeable: keys of `identity` that may differ, each with the stages that are then done again.

    Attributes:
        changed: what differs in the changeable keys; empty where nothing does.

    Raises:
        InputError: there is work of an earlier build and neither `resume` nor `overwrite`, it is of another one,
            another process is at it, or the folder was not made here.
    """

    def __init__(
        self,
        folder: Path,
        identity: dict[str, Any],
        resume: bool,
        overwrite: bool,
        changeable: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.folder = folder
        self.changed = ""
        self._lock: Any = None
        marker = folder / MARKER
        if folder.exists() and not (folder.is_dir() and (marker.is_file() or all(map(_is_begun, folder.iterdir())))):
            raise InputError(f"{folder}: has no {MARKER}, so it was not made here; choose another --out.")
        if folder.exists():
            self._lock_out_others()
        if folder.exists() and not resume:
            if not overwrite:
                raise InputError(
                    f"{folder}: holds a build that was cut off; pass --resume to go on with it, or --overwrite."
                )
            self.remove()
        plain = json.loads(json.dumps(identity))
        if marker.is_file():
            self._take_up(plain, changeable or {})
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock_out_others()
            atomic_write(marker, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
        for partial in folder.rglob("*"):
            if _is_partial(partial):
                partial.unlink()

    def _take_up(self, identity: dict[str, Any], changeable: Mapping[str, Sequence[str]]) -> None:
        """Compare with the identity of the work that is there; remove the stages that must be done again."""
        try:
            before = json.loads((self.folder / MARKER).read_text(encoding="utf-8"))
        except ValueError:
            before = None
        same = {key: identity[key] for key in changeable} if isinstance(before, dict) else {}
        if not isinstance(before, dict) or {**before, **same} != identity:
            raise InputError(
                f"--resume: {self.folder} was begun with other {_differing(before, identity, same)}; pass the "
                "same, or --overwrite in place of --resume."
            )
        if before != identity:
            self.changed = _differing(before, identity, {})
            for key, stages in changeable.items():
                for stage in stages if before.get(key) != identity[key] else ():
                    shutil.rmtree(self.folder / stage, ignore_errors=True)

    def _lock_out_others(self) -> None:
        """Hold a lock until this process ends, or the work is removed.

        Raises:
            InputError: another process holds it.
        """
        if fcntl is None or self._lock:
            return
        self._lock = (self.folder / LOCK).open("w")
        try:
            fcntl.lockf(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise InputError(f"{self.folder}: another build is at work there; wait for it, or end it.") from None
        except OSError:  # a file system without locks
            pass

    def stage(self, name: str) -> Path:
        """The folder of a stage."""
        path = self.folder / name
        path.mkdir(exist_ok=True)
        return path

    def done(self, stage: str, shard: str) -> dict[str, Any] | None:
        """The counts of a finished shard."""
        path = self.folder / stage / f"{shard}.json"
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            return None

    def finish(self, stage: str, shard: str, counts: Mapping[str, Any]) -> None:
        """Say that a shard is done, after its output is."""
        path = self.folder / stage / f"{shard}.json"
        with writing(path):
            atomic_write(path, json.dumps(counts, ensure_ascii=False) + "\n")

    def remove(self) -> None:
        """Throw everything away, after the data set is written."""
        remove_work(self.folder)
        if self._lock:
            self._lock.close()
            self._lock = None


def remove_work(folder: Path) -> None:
    """Remove a work folder, its marker last: until the end it can be told from a folder that was not made here."""
    for entry in folder.iterdir():
        if entry.name != MARKER:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    (folder / MARKER).unlink(missing_ok=True)
    folder.rmdir()


def remove_leftovers(out: Path, *kinds: str) -> None:
    """Remove the half written, and the replaced, data sets of builds to `out` that were killed while they wrote."""
    for kind in kinds:
        for folder in out.parent.glob(f".{glob.escape(out.name)}.{kind}-*"):
            shutil.rmtree(folder, ignore_errors=True)


def writing(path: Path) -> AbstractContextManager[None]:
    """Turn what the disk refuses into a sentence."""
    return files.writing(path, "make room on the disk, or mend its rights, and go on with --resume")


def _is_partial(path: Path) -> bool:
    return path.name.startswith(".") and ".partial-" in path.name


def _is_begun(path: Path) -> bool:
    """Whether it may stand in a folder of which nothing but the beginning was made."""
    return _is_partial(path) or path.name == LOCK


def _differing(before: Any, now: dict[str, Any], skipped: Mapping[str, Any]) -> str:
    """What differs, by name; of settings, which ones."""
    if not isinstance(before, dict):
        return "settings"
    names = []
    for key in now:
        if before.get(key) == now[key] or key in skipped:
            continue
        inner = now[key] if isinstance(now[key], dict) and isinstance(before.get(key), dict) else {}
        names += [name for name in inner if before[key].get(name) != inner[name]] or [key]
    return ", ".join(names) or "settings"
