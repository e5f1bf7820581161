"""A build on Spark that loses executors, or their Python processes, as it joins or writes: the data stay the same."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dumps import leftovers
from tests.spark_months import SETTINGS, assert_equal, require_spark, write_dirty_months

pytestmark = pytest.mark.faults

COMMENTS = 4000
BUCKETS = 24
EXECUTOR, PYTHON = b"CoarseGrainedExecutorBackend", b"pyspark.daemon"
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, bin_folder: Path, lid_model: Path) -> list[object]:
    require_spark()
    dumps = write_dirty_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)
    start = [bin_folder / "mrs", "data", "build", "--dumps", dumps / "RC_*.zst", "--language-model", lid_model]
    small = ["--no-strict", "--min-examples", 900, "--min-reply-count", 2]
    return [*start, "--profile", "clean", "--buckets", BUCKETS, *small, "--out", "out"]


@pytest.fixture(scope="module")
def local(command: list[object], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("local")
    subprocess.run([*map(str, command), "--workers", "1"], cwd=folder, check=True, capture_output=True, timeout=240)
    return folder / "out"


def descendants(ancestor: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.name))
    found, left = [], [ancestor]
    while left:
        own = children.get(left.pop(), [])
        found += own
        left += own
    return found


def of_kind(ancestor: int, words: bytes) -> list[int]:
    found = []
    for number in descendants(ancestor):
        with contextlib.suppress(OSError):
            if words in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(number)
    return found


def joins(work: Path) -> bool:
    return 1 <= len(list(work.glob("pairs/*.json"))) < BUCKETS - 4


def writes(work: Path) -> bool:
    return any(work.glob("write/.*.partial-*"))


@pytest.mark.parametrize(("kind", "stage", "most"), [(EXECUTOR, joins, 1), (PYTHON, joins, 9), (EXECUTOR, writes, 9)])
def test_killed_executors_change_nothing(
    tmp_path: Path,
    command: list[object],
    local: Path,
    start: Start,
    kind: bytes,
    stage: Callable[[Path], bool],
    most: int,
) -> None:
    """Executors with about as little memory as Spark accepts; `most` of the processes of a kind are killed."""
    little = ["--master", "local-cluster[2,1,512]", "--spark-conf", *SETTINGS, "spark.executor.memory=512m"]
    for _ in range(5):
        process = start(*command, "--engine", "spark", *little)
        killed = 0
        while process.poll() is None and not killed:
            for number in of_kind(process.pid, kind)[-most:] if stage(tmp_path / ".out.build") else []:
                with contextlib.suppress(OSError):
                    os.kill(number, signal.SIGKILL)
                    killed += 1
            time.sleep(0.02)
        _, err = process.communicate(timeout=400)
        assert process.returncode == 0, err[-3000:]
        if killed:
            break
        shutil.rmtree(tmp_path / "out")
    else:
        pytest.fail("five builds went by unseen")
    assert_equal(tmp_path / "out", local)
    assert leftovers(tmp_path) == ["out"]
    assert b"Traceback" not in err
