"""Runs the cells of a table that are not finished, each as a process of the `mrs` command."""

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

import psutil
import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write, content_hash
from mrs_suggest.common.launcher import announce_launcher
from mrs_suggest.common.text.text import visible
from mrs_suggest.models.saved.record import RECORD, Record, read_record
from mrs_suggest.reproduce.cells import DONE, INTERRUPTED, STATE, Cell, Setup, States, is_prepared, place_of, run_of
from mrs_suggest.reproduce.estimates import Estimates, steps_of, told_duration, told_total
from mrs_suggest.reproduce.processes import StopSignals, end_all, start
from mrs_suggest.reproduce.table import EMBEDDED, FULL
from mrs_suggest.training.record import TIMES

LOG = "log.txt"
LOCK = ".lock"
BEFORE = "run-before"
FAILED_NOW = "failed"  # how the problem of a run that failed begins
INTERVAL = 0.2  # seconds between two looks at the processes
ENDING = 60  # seconds that what a killed command has left may take to notice it
SECONDS_BETWEEN_LINES = 60
THREADS = "OMP_NUM_THREADS"
Say = Callable[[str], None]


def prepare_data(setup: Setup, sources: Mapping[str, Path], used: Sequence[str], dry: bool, say: Say) -> Setup:
    """The setup with a prepared folder for each data set that is there.

    Args:
        sources: name -> a prepared folder, or one with the source files, which the table's command prepares.
        used: the data sets that the chosen cells use; others stay as they are.
        dry: prepare nothing, and tell changed sources by their times, without reading them.
    """
    for name in sources:
        if name not in setup.table.data:
            raise InputError(f"--data {name}=...: expected one of {', '.join(setup.table.data) or 'none'}.")
    found = {name: _prepared(setup, name, sources.get(name), dry, say) for name in used if name != EMBEDDED}
    return replace(setup, data={**setup.data, **found})


def _prepared(setup: Setup, name: str, source: Path | None, dry: bool, say: Say) -> Path | None:
    if source is None:
        command = setup.table.data[name].generated(setup.scale)
        return _made(setup, name, command, {}, dry, say) if command else None
    if not source.is_dir():
        raise InputError(f"--data {name}={source}: no such folder.")
    if is_prepared(source):
        return source
    described = setup.table.data[name]
    lacking = [file for file in described.files if not (source / file).is_file()]
    if lacking:
        raise InputError(
            f"--data {name}={source}: expected a prepared folder, or one with {' '.join(described.files)} "
            f"({described.about}); {lacking[0]} is missing."
        )
    if not described.command:
        return source
    return _made(setup, name, described.command, {"source": source}, dry, say)


def _made(setup: Setup, name: str, command: str, values: Mapping[str, Path], dry: bool, say: Say) -> Path:
    """The folder that a data set's command writes, made unless it stands."""
    out = setup.output / "data" / name
    note = setup.output / "data" / f"{name}.json"
    files = [path for source in values.values() for path in source.rglob("*") if path.is_file()]
    identity = {"command": command, **({} if dry else {"source": content_hash(files)})}
    made = json.loads(note.read_text("utf-8")) if note.is_file() and (out / "report.json").is_file() else {}
    newer = dry and made and any(path.stat().st_mtime_ns > note.stat().st_mtime_ns for path in files)
    if identity.items() <= made.items() and not newer:
        return out
    words = [word.format(out=out, **values) for word in shlex.split(command)]
    say(f"data {name}: {shlex.join(words)}")
    if dry:
        if any(cell.needs_configs and cell.data == name for cell in setup.table.cells.values()):
            say("  not prepared yet: cells of languages that they may lack are counted as runnable")
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.with_suffix(".log")
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.call([*_mrs(), *words[1:], "--overwrite"], stdout=file, stderr=subprocess.STDOUT)
    if code:
        given = f"={values['source']}" if values else ""
        raise InputError(f"--data {name}{given}: cannot be prepared ({_last_line(log)}).")
    atomic_write(note, json.dumps(identity))
    return out


def time_of_trial(setup: Setup, cell: Cell) -> tuple[Record, str]:
    """What a run's note says of its time, by its trainer's `--estimate`, or nothing and why."""
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(yaml.safe_dump(cell.config(setup), allow_unicode=True), encoding="utf-8")
        words = [str(config) if one == str(cell.config_path(setup)) else one for one in cell.command(setup)[1:]]
        log, times = Path(folder) / LOG, Path(folder) / "times.json"
        process = start([*_mrs(), *words, "--estimate"], log, False, {**environment(1), TIMES: str(times)})
        try:
            code = process.wait()
        except BaseException:
            end_all([process])
            raise
        if code or not times.is_file():
            return {}, f"{cell.name} cannot be timed: {_last_line(log)}"
        return {"code": 0, **json.loads(times.read_text(encoding="utf-8"))}, ""


def run_cells(
    setup: Setup, cells: Mapping[str, Cell], say: Say, jobs: int = 1, signals: StopSignals | None = None
) -> dict[str, str]:
    """Run what is not finished; return why cells have no run, by their names. Failed ones do not stop the others.

    Args:
        signals: those that stop the run, if they are caught: the cells' processes end first.

    Raises:
        InputError: another process runs cells in the same folder.
    """
    announce_launcher()
    with _locked(setup.output) as lock:
        return _Runs(setup, cells, say, jobs, signals or StopSignals(), lock).to_the_end()


@dataclass
class _Running:
    """A cell whose process runs."""

    cell: Cell
    head: str
    note: Record
    process: subprocess.Popen[bytes]
    started: float = field(default_factory=time.time)
    told: float = field(default_factory=time.time)


class _Runs:
    """The cells that wait, run, and have ended."""

    def __init__(
        self, setup: Setup, cells: Mapping[str, Cell], say: Say, jobs: int, signals: StopSignals, lock: int
    ) -> None:
        self._setup, self._cells, self._jobs, self._signals, self._lock = setup, cells, jobs, signals, lock
        self._say, self._states, self._estimates = say, States(setup, cells), Estimates(setup.output)
        self._steps = {name: steps_of(cell, setup) for name, cell in cells.items()}
        self._heads = {name: f"[{number}/{len(cells)}] {name}" for number, name in enumerate(cells, start=1)}
        self._waiting = list(cells)
        self._running: dict[str, _Running] = {}
        self._problems: dict[str, str] = {}

    def to_the_end(self) -> dict[str, str]:
        try:
            while self._waiting or self._running:
                with self._signals.held():
                    self._start_what_can()
                if self._running:
                    time.sleep(INTERVAL)
                    self._look()
        except BaseException:
            end_all(one.process for one in self._running.values())
            raise
        return self._problems

    def _start_what_can(self) -> None:
        for name in list(self._waiting):
            cell = self._cells[name]
            if any(one in self._waiting or one in self._running for one in cell.needs()):
                continue
            lacking = next((f"needs {one}" for one in cell.needs() if one in self._problems), "")
            problem = self._states.unavailable(name) or lacking
            state = "" if problem else self._states.state(name)
            if not problem and state != DONE and len(self._running) >= self._jobs:
                return
            self._waiting.remove(name)
            if problem:
                self._problems[name] = problem
                self._say(f"{self._heads[name]}: skipped, {problem}")
            elif state == DONE:
                self._say(f"{self._heads[name]}: finished before")
            else:
                self._say(f"{self._heads[name]}: {state}, starts")
                self._start(name, resume=state == INTERRUPTED)

    def _start(self, name: str, resume: bool) -> None:
        setup, cell = self._setup, self._cells[name]
        place, run = place_of(name, setup), run_of(name, setup)
        place.mkdir(parents=True, exist_ok=True)
        if not resume and run.exists():
            _put_aside(run)
        if setup.scale != FULL and cell.spec.config:
            atomic_write(cell.config_path(setup), yaml.safe_dump(cell.config(setup), allow_unicode=True))
        command = cell.command(setup, resume)
        note = {"cell": name, "command": shlex.join(command), "identity": self._states.identity(name)}
        _note(place, note)
        program = {"mrs": _mrs(), "python": [sys.executable]}[command[0]]
        process = start([*program, *command[1:]], place / LOG, resume, environment(self._jobs), [self._lock])
        self._running[name] = _Running(cell, self._heads[name], {**note, "resumed": resume}, process)

    def _look(self) -> None:
        """Check which cells have ended; print the state of the others now and then."""
        for name, one in list(self._running.items()):
            code = one.process.poll()
            if code is not None:
                del self._running[name]
                self._end(name, one, code)
            elif time.time() - one.told >= SECONDS_BETWEEN_LINES:
                one.told = time.time()
                self._say(f"{one.head}: {_last_line(place_of(name, self._setup) / LOG)}")

    def _end(self, name: str, one: _Running, code: int) -> None:
        place, run = place_of(name, self._setup), run_of(name, self._setup)
        seconds = time.time() - one.started
        note = {**one.note, "code": code, "seconds": round(seconds, 1)}
        if code or not (run / RECORD).is_file():
            _note(place, note)
            self._problems[name] = f"{FAILED_NOW} with exit code {code}: {_last_line(place / LOG)}"
            self._say(f"{one.head}: {self._problems[name]} (log: {place / LOG})")
            return
        record = read_record(run)
        note |= {"steps": record.get("steps"), "training_seconds": record.get("seconds")}
        _note(place, note)
        self._estimates.add(note)
        for checkpoint in run.glob("checkpoint-*"):
            shutil.rmtree(checkpoint)  # two of them take more space than the model, and nothing is resumed any more
        self._say(f"{one.head}: finished in {told_duration(seconds)}; {self._left()}")

    def _left(self) -> str:
        left: list[float | None] = []
        for name in [*self._running, *self._waiting]:
            if name in self._waiting and (self._states.unavailable(name) or self._states.state(name) == DONE):
                continue
            seconds = self._estimates.seconds(self._states.identity(name), self._steps[name])
            if seconds is not None and name in self._running:
                seconds = max(0.0, seconds - (time.time() - self._running[name].started))
            left.append(seconds)
        return f"{len(left)} left: {told_total(left, len(self._running) + 1)}" if left else "none left"


def environment(jobs: int) -> dict[str, str]:
    """The number of threads of a run's process: the user's own (one by default), but with all runs together no more
    than there are cores, since threads that wait for a core take several times as long.
    """
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    given = os.environ.get(THREADS, "")
    shared = max(1, cores // jobs)
    return {THREADS: str(shared)} if given.isdecimal() and int(given) > shared else {}


def _put_aside(run: Path) -> None:
    """Of a run with other options, keep the finished one: it may have taken hours."""
    if (run / RECORD).is_file():
        before = run.with_name(BEFORE)
        shutil.rmtree(before, ignore_errors=True)
        run.rename(before)
    else:
        shutil.rmtree(run)


def _mrs() -> list[str]:
    return [sys.executable, "-m", "mrs_suggest.cli.main"]


def _note(place: Path, note: Record) -> None:
    atomic_write(place / STATE, json.dumps(note, indent=2, ensure_ascii=False) + "\n")


def _last_line(log: Path) -> str:
    """The last line of a log, or the last state of its progress bar."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    return visible(next((line.strip() for line in reversed(lines) if line.strip()), ""))


@contextmanager
def _locked(output: Path) -> Iterator[int]:
    """The open file of the lock: two processes that run the same cells would overwrite each other's.

    A cell's process holds the lock, too: what a killed command has left ends within moments, and is waited for.
    """
    output.mkdir(parents=True, exist_ok=True)
    with (output / LOCK).open("a+", encoding="utf-8") as file:
        end = time.monotonic() + ENDING
        while not _taken(file):
            file.seek(0)
            holder = file.read().strip()
            if time.monotonic() > end or (holder.isdigit() and psutil.pid_exists(int(holder))):
                raise InputError(
                    f"--output {output}: another `mrs reproduce` is running there; wait for it, or name another folder."
                )
            time.sleep(INTERVAL)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file.fileno()


def _taken(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
