"""Models that arrive or lie damaged: one sentence each, and a command that mends it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.hub.baselines import read_baselines
from tests import warm_python
from tests.hub.server import LoopbackHub

PAGE = "<!DOCTYPE html><html><body>Please log in.</body></html>"
ASK = ("suggest", "--model", "org/m", "--language", "es", "Hola")
WEIGHTS = "query_0_Transformer/model.safetensors"
WITH_ROOM = """
import resource, sys
from mrs_suggest.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.exit(main(sys.argv[2:]))
"""
Mrs = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def model(hub: LoopbackHub) -> dict[str, bytes]:
    """The files of `org/m` on the hub."""
    folder = read_baselines()["everyday-retriever"].folder
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
    repo = hub.create("model", "org/m")
    for name, data in files.items():
        repo.write(name, data)
    return files


@pytest.fixture
def client(hub: LoopbackHub, tmp_path: Path) -> Mrs:
    """A function that runs `mrs` against the hub in a fresh process; `room`: bytes that a file may have."""

    def run(*arguments: object, room: int | None = None) -> subprocess.CompletedProcess[str]:
        start = ["-c", WITH_ROOM, room] if room else ["-m", "mrs_suggest.cli.main"]
        env = {**hub.env(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
        return warm_python.run([sys.executable, *start, *arguments], cwd=tmp_path, env=env)

    return run


def refused(done: subprocess.CompletedProcess[str], *named: str) -> None:
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    for word in named:
        assert word in done.stderr


PAGES: dict[str, tuple[dict[str, Any], str]] = {
    "everywhere": ({}, "the answer is not from the hub, perhaps from a proxy or a login page"),
    "for what the hub says of a file": ({"method": "HEAD"}, "the answer is not from the hub"),
    "for the files": ({"method": "GET", "path": "/resolve/"}, "the file that arrived is not the hub's"),
}


@pytest.mark.parametrize("where", PAGES)
def test_a_page_in_the_place_of_an_answer(where: str, hub: LoopbackHub, model: dict[str, bytes], client: Mrs) -> None:
    fault, named = PAGES[where]
    hub.faults.add(times=10_000, page=PAGE, **fault)
    refused(client(*ASK), "mrs suggest: org/m: ", named, "run the same command again" if "HEAD" in str(fault) else "")
    if not fault:
        refused(client("models", "download", "org/m"), "mrs models: org/m: ", named)
    hub.faults.clear()
    done = client(*ASK)
    assert done.returncode == 0, done.stderr


def test_a_full_disk(model: dict[str, bytes], client: Mrs) -> None:
    for command in (ASK, ("models", "download", "org/m")):
        refused(client(*command, room=500_000), "org/m: cannot download: no space on the disk", "free some space there")
    done = client(*ASK)
    assert done.returncode == 0, done.stderr


def test_other_bytes_of_the_same_length_on_the_line(hub: LoopbackHub, model: dict[str, bytes], client: Mrs) -> None:
    """The client looks at sizes alone; the hub names the SHA-256."""
    hub.faults.add("GET", f"/resolve/.*/{WEIGHTS}", page="x" * len(model[WEIGHTS]))
    refused(client("models", "download", "org/m"), f"org/m: {WEIGHTS} arrived damaged", "run the same command again")
    done = client("models", "download", "org/m")
    assert done.returncode == 0, done.stderr
    assert (Path(done.stdout.strip()) / WEIGHTS).read_bytes() == model[WEIGHTS]
    small = "query_1_Pooling/config.json"  # no LFS file: git's hash
    hub.faults.add("GET", f"/resolve/.*/{small}", page="x" * len(model[small]), times=2)
    refused(client("models", "download", "--force", "org/m"), f"{small} arrived damaged")


def test_damage_on_the_disk_is_mended_by_force(hub: LoopbackHub, model: dict[str, bytes], client: Mrs) -> None:
    done = client("models", "download", "org/m")
    assert done.returncode == 0, done.stderr
    path = Path(done.stdout.strip()) / WEIGHTS
    data = bytearray(model[WEIGHTS])
    data[-1] ^= 64
    for damaged, named in ((bytes(data), "its SHA-256 is not the one in run.json"), (bytes(data[:-9]), "bytes, found")):
        path.resolve().write_bytes(damaged)
        refused(client(*ASK), str(path), named, "run `mrs models download --force org/m`")
    hub.log.clear()
    done = client("models", "download", "--force", "org/m")
    assert done.returncode == 0, done.stderr
    assert hub.requests("GET", WEIGHTS), "downloaded again"
    assert path.read_bytes() == model[WEIGHTS]
    done = client(*ASK, "--verify")
    assert done.returncode == 0, done.stderr
