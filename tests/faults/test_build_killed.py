"""`mrs data build` that is killed, loses a worker, or is interrupted: the resumed build ends with the same files."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.dumps import SMALL, leftovers, parquet_bytes, write_months

pytestmark = pytest.mark.faults

COMMENTS = 12_000
KILLS = 20
BUCKETS = 24
Process = subprocess.Popen  # of bytes
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, bin_folder: Path, lid_model: Path) -> list[object]:
    dumps = write_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)
    start = [bin_folder / "mrs", "data", "build", "--dumps", dumps / "RC_*.zst", "--language-model", lid_model]
    return [*start, "--profile", "clean", "--buckets", BUCKETS, *SMALL, "--out", "out"]  # it has all the stages


@pytest.fixture(scope="module")
def uninterrupted(command: list[object], tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run([*map(str, command), "--workers", "1"], cwd=folder, check=True, capture_output=True, timeout=120)
    return parquet_bytes(folder / "out")


def finish(process: Process) -> None:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, (out[-500:], err[-2000:])
    assert b"Traceback" not in err


def assert_whole(folder: Path, uninterrupted: dict[str, bytes]) -> None:
    """The same Parquet files, and nothing besides."""
    assert parquet_bytes(folder / "out") == uninterrupted
    assert leftovers(folder, "out") == []
    assert leftovers(folder / "out", "data", "README.md", "report.json", "report.html") == []


def kill(process: Process) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


def catch(start: Start, command: list[object], folder: Path, there: Callable[[Process], object]) -> Process:
    """Start a build and stop it (SIGSTOP) where a condition holds; one that was through sooner is started again."""
    for _ in range(9):
        process = start(*command)
        while process.poll() is None:
            if there(process):
                os.killpg(process.pid, signal.SIGSTOP)
                time.sleep(0.02)
                if process.poll() is None and there(process):
                    return process
                os.killpg(process.pid, signal.SIGCONT)
            time.sleep(0.005)
        finish(process)
        shutil.rmtree(folder / "out")
    pytest.fail("nine builds went by unseen")


def go_on(process: Process) -> None:
    os.killpg(process.pid, signal.SIGCONT)


def running(group: int) -> list[int]:
    """The processes of a group that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, _, its_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if its_group == str(group) and state != "Z":
            found.append(int(entry.name))
    return found


def assert_all_end(process: Process) -> None:
    """Nothing of its group is left soon after it (the tracker of `multiprocessing` sees the end a moment later)."""
    end = time.monotonic() + 20
    while left := running(process.pid):
        assert time.monotonic() < end, f"still there: {left}"
        time.sleep(0.1)


def workers(process: Process) -> list[int]:
    found = []
    for number in running(process.pid):
        with contextlib.suppress(OSError):  # it has ended since
            if number != process.pid and b"spawn_main" in Path(f"/proc/{number}/cmdline").read_bytes():
                found.append(number)
    return found


@pytest.mark.parametrize("processes", [1, 2])
def test_kills_at_random_moments(
    tmp_path: Path, command: list[object], uninterrupted: dict[str, bytes], start: Start, processes: int
) -> None:
    """Killed again and again, with all its workers; as soon as it is whole, another build takes its turn."""
    rng = random.Random(processes)
    kills = builds = in_a_row = 0
    wanted = KILLS if processes == 1 else 6
    while kills < wanted or in_a_row:
        folder = tmp_path / str(builds)
        folder.mkdir(exist_ok=True)
        process = start(*command, "--resume", "--workers", processes, cwd=folder)
        try:
            process.wait(rng.uniform(0.2, 3.5) if kills < wanted and in_a_row < 9 else 120)
        except subprocess.TimeoutExpired:
            assert kills < wanted, "it hangs"
            kill(process)
            kills += 1
            in_a_row += 1
            continue
        finish(process)
        assert_whole(folder, uninterrupted)
        builds, in_a_row = builds + 1, 0


def pairs_done(folder: Path) -> int:
    return len(list((folder / ".out.build").glob("pairs/*.json")))


def in_stage(folder: Path, stage: str) -> Callable[[Process], bool]:
    """Whether a build has begun a stage and not ended it; "workers": they are there, and import what they need."""
    work = folder / ".out.build"
    conditions: dict[str, Callable[[Process], bool]] = {
        "months": lambda _: any(work.glob("months/.*.partial-*")),
        "workers": lambda process: bool(workers(process)) and not any(work.glob("months/*")),
        "pairs": lambda _: 2 <= pairs_done(folder) < BUCKETS - 4,
        "duplicates": lambda _: any(work.glob("duplicates/*.json")) and not any(work.glob("write/*")),
        "write": lambda _: any(folder.glob(".out.build/write/.*.partial-*/data/*/*.parquet")),
    }
    return conditions[stage]


@pytest.mark.parametrize("stage", ["months", "pairs", "duplicates", "write"])
def test_a_kill_in_each_stage(
    tmp_path: Path, command: list[object], uninterrupted: dict[str, bytes], start: Start, stage: str
) -> None:
    kill(catch(start, [*command, "--workers", 1], tmp_path, in_stage(tmp_path, stage)))
    assert not (tmp_path / "out").exists()
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build").glob("*/*.json")}
    refused = start(*command)
    _, err = refused.communicate(timeout=60)
    assert refused.returncode == 2
    assert b"holds an interrupted build; pass --resume" in err.splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build").glob("*/*.json")} == done
    finish(start(*command, "--resume", "--workers", 1))
    assert_whole(tmp_path, uninterrupted)


def test_a_killed_worker_is_told(
    tmp_path: Path, command: list[object], uninterrupted: dict[str, bytes], start: Start
) -> None:
    process = catch(start, [*command, "--workers", 2], tmp_path, in_stage(tmp_path, "pairs"))
    before = pairs_done(tmp_path)
    os.kill(workers(process)[0], signal.SIGKILL)
    go_on(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err[-2000:]
    assert b"Traceback" not in err
    assert b"a worker was killed" in err.splitlines()[-1]
    assert b"--resume" in err.splitlines()[-1]
    assert_all_end(process)
    assert before <= pairs_done(tmp_path) <= before + 3
    finish(start(*command, "--resume", "--workers", 2))
    assert_whole(tmp_path, uninterrupted)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_do_not_outlive_the_build(
    tmp_path: Path, command: list[object], start: Start, number: signal.Signals
) -> None:
    """Only the first process is killed, as the kernel does for lack of memory."""
    process = catch(start, [*command, "--workers", 2], tmp_path, in_stage(tmp_path, "pairs"))
    assert len(workers(process)) == 2
    process.send_signal(number)
    go_on(process)
    process.communicate(timeout=60)
    assert_all_end(process)


@pytest.mark.parametrize(("stage", "processes"), [("months", 1), ("workers", 2), ("pairs", 2), ("write", 1)])
def test_control_c(
    tmp_path: Path, command: list[object], uninterrupted: dict[str, bytes], start: Start, stage: str, processes: int
) -> None:
    process = catch(start, [*command, "--workers", processes], tmp_path, in_stage(tmp_path, stage))
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all processes
    go_on(process)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err[-2000:]
    assert err.splitlines()[-1] == b"mrs data: interrupted."
    assert b"Traceback" not in err
    assert b"Exception" not in err
    assert_all_end(process)
    assert leftovers(tmp_path) == [".out.build"]
    finish(start(*command, "--resume", "--workers", processes))
    assert_whole(tmp_path, uninterrupted)
