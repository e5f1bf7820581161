"""Runs the cells of a table that are not finished, one after the other, each as a process of the `mrs` command."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import yaml

from mrs_core.errors import InputError
from mrs_core.files import atomic_write, content_hash
from mrs_core.launcher import announce_launcher
from mrs_core.text import visible
from mrs_training.allowlist import RECORD
from mrs_training.card import Record
from mrs_training.reproduce.cells import DONE, INTERRUPTED, STATE, Cell, Setup, States, place_of, run_of
from mrs_training.reproduce.table import EMBEDDED, FULL

LOG = "log.txt"
LOCK = ".lock"
BEFORE = "run-before"
FAILED_NOW = "failed"  # how the problem of a run that failed begins
INTERVAL = 0.5  # seconds between two looks at a process
SECONDS_BETWEEN_LINES = 60  # where the output is not a terminal
Say = Callable[[str], None]


def prepare_data(setup: Setup, sources: Mapping[str, Path], used: Sequence[str], dry: bool, say: Say) -> Setup:
    """The setup with a prepared folder for each data set that is there.

    Args:
        sources: name -> a prepared folder, or one with the source files, which the table's command prepares.
        used: the data sets that the chosen cells use.
        dry: prepare nothing.

    Raises:
        InputError: a name or a folder is wrong, or the command failed.
    """
    for name in sources:
        if name not in setup.table.data:
            raise InputError(f"--data {name}=...: expected one of {', '.join(setup.table.data) or 'none'}.")
    found: dict[str, Path | None] = {}
    for name in used:
        if name != EMBEDDED:
            found[name] = _prepared(setup, name, sources.get(name), dry, say)
    return replace(setup, data=found)


def _prepared(setup: Setup, name: str, source: Path | None, dry: bool, say: Say) -> Path | None:
    if source is None:
        command = setup.table.data[name].generated(setup.scale)
        return _made(setup, name, command, {}, dry, say) if command else None
    if not source.is_dir():
        raise InputError(f"--data {name}={source}: no such folder.")
    if (source / "data").is_dir():
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
    files = (path for source in values.values() for path in source.rglob("*") if path.is_file())
    identity = {"command": command, "source": content_hash(files)}
    if (out / "report.json").is_file() and note.is_file() and json.loads(note.read_text("utf-8")) == identity:
        return out
    words = [word.format(out=out, **values) for word in shlex.split(command)]
    say(f"data {name}: {shlex.join(words)}")
    if dry:
        return out
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.with_suffix(".log")
    with log.open("w", encoding="utf-8") as file:
        code = subprocess.run(
            [*_mrs(), *words[1:], "--overwrite"], stdout=file, stderr=subprocess.STDOUT, check=False
        ).returncode
    if code:
        given = f"={values['source']}" if values else ""
        raise InputError(f"--data {name}{given}: cannot be prepared ({_last_line(log)}).")
    atomic_write(note, json.dumps(identity))
    return out


def run_cells(setup: Setup, cells: Mapping[str, Cell], say: Say) -> dict[str, str]:
    """Run what is not finished; return why cells have no run, by their names. Failed ones do not stop the others.

    Raises:
        InputError: another process runs cells in the same folder.
    """
    problems: dict[str, str] = {}
    announce_launcher()
    with _locked(setup.output):
        states = States(setup, cells)
        for number, (name, cell) in enumerate(cells.items(), start=1):
            head = f"[{number}/{len(cells)}] {name}"
            problem = states.unavailable(name) or next((f"needs {one}" for one in cell.needs() if one in problems), "")
            if problem:
                problems[name] = problem
                say(f"{head}: skipped, {problem}")
                continue
            state = states.state(name)
            if state == DONE:
                say(f"{head}: finished before")
                continue
            say(f"{head}: {state}, starts")
            problem = _run(setup, cell, states.identity(name), state == INTERRUPTED, head, say)
            if problem:
                problems[name] = problem
    return problems


def _run(setup: Setup, cell: Cell, identity: Record, resume: bool, head: str, say: Say) -> str:
    """Run one cell; return what went wrong, or an empty text."""
    place, run = place_of(cell.name, setup), run_of(cell.name, setup)
    place.mkdir(parents=True, exist_ok=True)
    if not resume and run.exists():
        _put_aside(run)
    if setup.scale != FULL:
        atomic_write(cell.config_path(setup), yaml.safe_dump(cell.config(setup), allow_unicode=True))
    command = cell.command(setup, resume)
    note = {"cell": cell.name, "command": shlex.join(["mrs", *command]), "identity": identity}
    _note(place, note)
    started = time.time()
    code = _watched([*_mrs(), *command], place / LOG, resume, head, say)
    seconds = round(time.time() - started)
    _note(place, {**note, "code": code, "seconds": seconds})
    if code or not (run / RECORD).is_file():
        problem = f"{FAILED_NOW} with exit code {code}: {_last_line(place / LOG)}"
        say(f"{head}: {problem} (log: {place / LOG})")
        return problem
    for checkpoint in run.glob("checkpoint-*"):
        shutil.rmtree(checkpoint)  # two of them take more space than the model, and nothing is resumed any more
    say(f"{head}: finished in {seconds:,} s")
    return ""


def _put_aside(run: Path) -> None:
    """Of a run with other options, keep the finished one: it may have taken hours."""
    if (run / RECORD).is_file():
        before = run.with_name(BEFORE)
        shutil.rmtree(before, ignore_errors=True)
        run.rename(before)
    else:
        shutil.rmtree(run)


def _watched(command: list[str], log: Path, append: bool, head: str, say: Say) -> int:
    """Run a process with its output in a log; say now and then where it stands."""
    terminal = sys.stderr.isatty()
    told = time.time()
    with log.open("a" if append else "w", encoding="utf-8") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        try:
            while (code := _waited(process)) is None:
                if terminal:
                    width = shutil.get_terminal_size().columns - 1
                    print(f"\r{f'{head}: {_last_line(log)}'[:width]:<{width}}", end="", file=sys.stderr, flush=True)
                elif time.time() - told >= SECONDS_BETWEEN_LINES:
                    told = time.time()
                    say(f"{head}: {_last_line(log)}")
        except BaseException:  # Ctrl-C has reached the process, too
            process.terminate()
            process.wait()
            raise
        finally:
            if terminal:
                print("\r\033[K", end="", file=sys.stderr, flush=True)
    return code


def _waited(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(INTERVAL)
    except subprocess.TimeoutExpired:
        return None


def _mrs() -> list[str]:
    return [sys.executable, "-m", "mrs_cli.main"]


def _note(place: Path, note: Record) -> None:
    atomic_write(place / STATE, json.dumps(note, indent=2, ensure_ascii=False) + "\n")


def _last_line(log: Path) -> str:
    """The last line of a log, or the last state of its progress bar."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4096))
        lines = file.read().decode("utf-8", "replace").replace("\r", "\n").split("\n")
    return visible(next((line.strip() for line in reversed(lines) if line.strip()), ""))


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    """Two processes that run the same cells would overwrite each other's."""
    output.mkdir(parents=True, exist_ok=True)
    with (output / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"--output {output}: another `mrs reproduce` runs there; wait for it, or name another."
            ) from None
        file.write(str(os.getpid()))
        yield
