"""Fresh Python processes that begin with the large libraries imported: that takes longer than what most of them do.

A parent imports the libraries, and nothing of this project, and forks a process for each command. The process has the
command's own environment, folder and output, and ends as any other; only the seed of `hash` is the parent's. Libraries
that read the environment while they are imported have a parent for each such environment, and find HF_HOME through a
link, which leads to the folder that the command names.
"""

import contextlib
import functools
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NEUTRAL = ("torch", "pandas", "pyarrow.dataset", "scipy.stats", "sklearn.metrics", "matplotlib.figure", "httpx", "rich")
# These read variables that begin with one of READ_EARLY.
OTHERS = ("transformers.trainer", "datasets", "evaluate", "accelerate", "sentence_transformers", "peft")
READ_EARLY = ("HF_", "HUGGINGFACE_", "TRANSFORMERS_", "DATASETS_", "XDG_", "HOME")
READ_LATE = ("HF_TOKEN",)


def run(
    command: Sequence[object], *, cwd: Path, env: Mapping[str, str] | None = None, timeout: float = 120,
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """As `subprocess.run` that captures text: a Python script, or this interpreter with one, `-m NAME` or `-c CODE`.

    With `merged`, standard error goes where standard output goes.
    """
    words = [str(part) for part in command]
    environment = dict(os.environ if env is None else env)
    asked = {"words": words[words[0] == sys.executable :], "cwd": str(cwd), "env": environment}
    parents = _parents()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        parent = parents.of(environment)
        child = int(_ask(parent, asked, out.fileno(), (out if merged else err).fileno()))
        parent.settimeout(timeout)
        try:
            code = int(parent.recv(99))
        except TimeoutError:
            parent.settimeout(None)
            os.kill(child, signal.SIGKILL)
            parent.recv(99)
            raise subprocess.TimeoutExpired(words, timeout) from None
        parent.settimeout(None)
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode("utf-8"))
    return subprocess.CompletedProcess(words, code, *said)


def with_caches_in(home: Path) -> dict[str, str]:
    """The environment of the tests, its caches in another folder: one parent serves all such commands."""
    ours = os.environ["HF_HOME"]
    moved = {name: value.replace(ours, str(home)) for name, value in os.environ.items() if name.startswith("HF_")}
    return {**os.environ, **moved}


class _Parents:
    """The parents of one process of the tests: a first one, and its forks with the other libraries."""

    def __init__(self) -> None:
        self.link = Path(os.environ["HF_HOME"]).with_name("warm")
        self.first, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.others: dict[str, socket.socket] = {}
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                env={**kept, "OMP_NUM_THREADS": "1"},
            )  # fmt: skip

    def of(self, environment: Mapping[str, str]) -> socket.socket:
        """The parent for a command, whose HF_HOME it finds."""
        home = Path(environment["HF_HOME"])
        home.mkdir(parents=True, exist_ok=True)
        changed = self.link.with_name("next")
        changed.symlink_to(home)
        changed.rename(self.link)
        early = {
            name: value.replace(str(home), str(self.link))
            for name, value in sorted(environment.items())
            if name.startswith(READ_EARLY) and name not in READ_LATE
        }
        key = json.dumps(early)
        if key not in self.others:
            self.others[key], theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                _ask(self.first, {"env": {**environment, **early}}, theirs.fileno())
        return self.others[key]

    def end(self) -> None:
        for parent in (*self.others.values(), self.first):  # which end when nobody can ask any more
            parent.close()
        self.process.kill()
        self.process.wait()


@functools.cache
def _parents() -> _Parents:
    return _Parents()


def end() -> None:
    """End the parents, if a command has begun them."""
    if _parents.cache_info().currsize:
        _parents().end()


def _ask(parent: socket.socket, asked: object, *files: int) -> bytes:
    """Ask a parent for a child with these open files; its number."""
    with tempfile.TemporaryFile() as request:
        request.write(json.dumps(asked).encode())
        request.seek(0)
        socket.send_fds(parent, [b"fork"], [request.fileno(), *files])
        return parent.recv(99)


def _fork_for_each(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Return in each child, with what was asked and the open files; the parent ends with those who ask it."""
    gc.freeze()  # the collector of a child leaves the parent's objects where they are: nothing is copied for it
    while True:
        message, files, _, _ = socket.recv_fds(asked, 99, 3)
        if not message:
            with contextlib.suppress(ChildProcessError):
                while True:
                    os.wait()
            os._exit(0)
        child = os.fork()
        if not child:
            with open(files[0], encoding="utf-8") as request:
                return json.load(request), files[1:]
        for file in files:
            os.close(file)
        asked.send(str(child).encode())
        if len(files) == 3:
            asked.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def _child(asked: socket.socket) -> dict[str, Any]:
    """Fork until this is a process for a command, and give it its output."""
    while True:
        with asked:
            wanted, files = _fork_for_each(asked)
        os.environ.clear()
        os.environ.update(wanted["env"])
        if "words" in wanted:
            for place, file in enumerate(files, 1):
                os.dup2(file, place)
                os.close(file)
            return wanted
        for name in OTHERS:
            importlib.import_module(name)
        asked = socket.socket(fileno=files[0])


def _become(words: list[str]) -> None:
    """Run what the words say, as the interpreter would."""
    sys.modules["numpy"].random.seed()  # or every child would draw the same
    first = {"-c": "", "-m": os.getcwd()}.get(words[0], str(Path(words[0]).resolve().parent))
    added = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    sys.path[:] = [*([] if os.environ.get("PYTHONSAFEPATH") else [first]), *added, *sys.path]
    if words[0] == "-c":
        sys.argv = ["-c", *words[2:]]
        module = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(words[1], "<string>", "exec"), module.__dict__)
    elif words[0] == "-m":
        sys.argv = words[1:]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    sys.path[0] += "/startup"  # the folder of this file
    importlib.import_module("few_examples")
    del sys.path[0]
    for name in NEUTRAL:
        importlib.import_module(name)
    given = _child(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(given["cwd"])
    _become(given["words"])
