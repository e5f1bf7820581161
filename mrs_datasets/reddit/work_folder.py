"""Shards of work that are done once: what is finished stays finished, whatever ends the process."""

from __future__ import annotations

import glob
import json
import multiprocessing
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from tqdm import tqdm

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from mrs_core import files
from mrs_core.errors import InputError
from mrs_core.files import write_whole

MARKER = "settings.json"  # every work folder has one
LOCK = "lock"
Advance = Callable[[int], None]  # told how many units more are done
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Shard:
    """One piece of a stage.

    Attributes:
        name: of its files.
        size: in the stage's unit, for the bar.
        output: the file that it writes, which must appear whole; without it, the shard is not done.
        work: does it, given `Advance`, and returns its counts.
        beside: another file that it writes, as needed as `output`.
    """

    name: str
    size: int
    output: Path
    work: Callable[[Advance], dict[str, Any]]
    beside: Path | None = None

    def is_whole(self) -> bool:
        """Whether its files are there."""
        return self.output.is_file() and (self.beside is None or self.beside.is_file())


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
            write_whole(marker, json.dumps(plain, indent=2, ensure_ascii=False) + "\n")
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
            write_whole(path, json.dumps(counts, ensure_ascii=False) + "\n")

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


class Workers:
    """Processes that do shards: begun when they are first needed, kept from stage to stage, ended with the block.

    Args:
        number: at most so many; with one, this process does the shards.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self._context = multiprocessing.get_context("spawn")  # Arrow and Polars have threads, which a fork would break
        self._progress: Any = None  # what all workers have done together, in the units of their stages
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the workers now: what they were doing is done again by a resumed build."""
        if self._pool:
            for process in list((self._pool._processes or {}).values()):
                process.terminate()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def do(self, shards: Sequence[Shard], bar: Any) -> Iterator[tuple[Shard, dict[str, Any]]]:
        """Yield every shard with its counts when it is done, and move the bar meanwhile.

        Raises:
            InputError: a worker was killed.
        """
        if self.number > 1 and len(shards) > 1:
            yield from self._together(shards, bar)
            return
        settle()
        for shard in shards:
            before = bar.n
            counts = shard.work(bar.update)
            bar.update(before + shard.size - bar.n)  # what an estimate left over
            yield shard, counts

    def _together(self, shards: Sequence[Shard], bar: Any) -> Iterator[tuple[Shard, dict[str, Any]]]:
        try:
            with deaf_children():
                if self._pool is None:
                    self._progress = self._context.Value("q", 0)
                    self._pool = ProcessPoolExecutor(
                        self.number, mp_context=self._context, initializer=_begin, initargs=(self._progress,)
                    )
                progress = self._progress.get_obj()  # without the lock: a worker that was killed may hold it for ever
                begun, told, finished = bar.n, progress.value, 0
                waiting: dict[Future[dict[str, Any]], Shard] = {self._pool.submit(_do, s): s for s in shards}
            while waiting:
                ready, _ = wait(waiting, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                bar.update(max(begun + progress.value - told, bar.n) - bar.n)
                for future in sorted(ready, key=lambda done: done.exception() is not None):  # what is finished stays
                    shard = waiting.pop(future)
                    counts = future.result()
                    finished += shard.size
                    yield shard, counts
            bar.update(begun + finished - bar.n)
        except BrokenProcessPool:
            raise InputError(
                "a worker was killed (perhaps for lack of memory); what was finished stays: go on with --resume, with "
                "fewer --workers if it was the memory."
            ) from None


def run_stage(
    work: WorkFolder, stage: str, shards: Sequence[Shard], workers: Workers, unit: str, scale: bool = False
) -> list[dict[str, Any]]:
    """Do the shards that are not done, under one bar; return the counts of all, in order.

    Raises:
        InputError: a worker was killed; the finished shards stay.
    """
    found = {
        shard.name: counts
        for shard in shards
        if shard.is_whole() and (counts := work.done(stage, shard.name)) is not None
    }
    left = [shard for shard in shards if shard.name not in found]
    with tqdm(
        total=sum(shard.size for shard in shards),
        initial=sum(shard.size for shard in shards if shard.name in found),
        desc=stage,
        unit=unit,
        unit_scale=scale,
    ) as bar:
        for shard, counts in workers.do(left, bar):
            work.finish(stage, shard.name, counts)
            found[shard.name] = counts
    return [found[shard.name] for shard in shards]


def settle() -> None:
    """Set this process up for shards: Polars on one thread, where shards share the cores already or one is done at a
    time (starting threads for small joins costs more than they give), and the system's memory allocator, which takes
    about a seventh less time here than Arrow's own.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")  # heard when Polars is imported
    pa.set_memory_pool(pa.system_memory_pool())


_progress: Any = None  # of a worker: what all workers have done together


def _begin(progress: Any) -> None:
    global _progress
    _progress = progress
    settle()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker when the build ends in a way that it cannot tell of (kill -9): a worker would wait for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _do(shard: Shard) -> dict[str, Any]:
    def advance(amount: int) -> None:
        with _progress.get_lock():
            _progress.value += amount

    return shard.work(advance)


@contextmanager
def deaf_children() -> Iterator[None]:
    """Processes begun here do not hear Ctrl-C, which a terminal sends to all: the build ends them, without a trace.

    It hears Ctrl-C itself at the end of the block: a process that is half begun would complain. The mask alone does not
    see to that, since any other thread may take the signal, and Python then interrupts the first.
    """
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):  # else it is ignored, as in the background of a shell
        signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    resource_tracker.ensure_running()  # which lifts the mask when it begins
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)  # what the mask held back is heard now
        if callable(handler):
            signal.signal(signal.SIGINT, handler)
    if heard:
        raise KeyboardInterrupt


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note how long a stage took."""
    started = time.perf_counter()
    yield
    seconds[name] = round(time.perf_counter() - started, 1)


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
