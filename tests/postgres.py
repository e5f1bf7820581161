"""A PostgreSQL server of the tests' own, in a folder and on a free port of this machine."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))  # where Debian puts the programs


def has_postgres() -> bool:
    """Whether its programs are here, and a user who may run them: it refuses root."""
    return bool(FOLDERS) and (os.getuid() != 0 or shutil.which("runuser") is not None)


class Postgres:
    """The server; `url` names its database."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        self.url = f"postgresql://tester@127.0.0.1:{port}/postgres"

    def run(self, program: str, *words: object) -> None:
        """Run one of its programs as a user who may."""
        command = [str(FOLDERS[-1] / program), *map(str, words)]
        if os.getuid() == 0:
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, capture_output=True, cwd=self._folder)

    def start(self) -> None:
        options = (
            f"-p {self._port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self._folder} -c fsync=off"
        )
        log = self._folder / "log"
        self.run("pg_ctl", "-D", self._folder / "data", "-l", log, "-w", "-t", 120, "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", self._folder / "data", "-w", "-m", "fast", "stop")


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A running server, whose user `tester` needs no password."""
    with tempfile.TemporaryDirectory(prefix="mrs-postgres-") as place:  # pytest's own folders are private to root
        if os.getuid() == 0:
            shutil.chown(place, "postgres")
        yield from _running(Path(place))


def _running(folder: Path) -> Iterator[Postgres]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = Postgres(folder, port)
    server.run("initdb", "-D", folder / "data", "-U", "tester", "-A", "trust", "--no-sync")
    server.start()
    try:
        yield server
    finally:
        server.stop()
