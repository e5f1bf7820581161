"""`mrs data build` with URLs, in its own process and with workers: the data set is the one of local folders."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.dumps import leftovers, parquet_bytes, read_report, write_months
from tests.file_server import served

pytestmark = pytest.mark.integration

COMMENTS = 3000
CLEAN = ("--profile", "clean", "--min-examples", 700, "--min-reply-count", 2, "--buckets", 3, "--split-by", "example")


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)


@pytest.fixture(scope="module")
def build(mrs, lid_model: Path):
    """Return a function that builds in a folder."""

    def run(cwd: Path, *options: object) -> subprocess.CompletedProcess[str]:
        return mrs("data", "build", "--language-model", lid_model, *CLEAN, *options, cwd=cwd)

    return run


@pytest.fixture(scope="module")
def local(build, dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data set of local folders."""
    folder = tmp_path_factory.mktemp("local")
    done = build(folder, "--dumps", dumps / "RC_*.zst", "--out", "out", "--workers", 1)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_remote_folder_gets_the_same_files(build, dumps: Path, local: Path, tmp_path: Path) -> None:
    files = ("--dumps", f"file://{dumps}/RC_*.zst", "--workers", 2, "--memory", "16GB")
    done = build(tmp_path, *files, "--out", f"file://{tmp_path}/out", "--scratch", "scratch")
    assert done.returncode == 0, done.stderr
    assert f"wrote file://{tmp_path}/out: data/" in done.stdout
    assert contents(tmp_path / "out") == contents(local)
    assert leftovers(tmp_path, "out") == ["scratch"]
    assert leftovers(tmp_path / "scratch") == []


def test_dumps_by_http_give_the_same_files(build, dumps: Path, local: Path, tmp_path: Path) -> None:
    with served(dumps) as url:
        names = [f"{url}/RC_2018-0{month}.zst?token=secret" for month in (1, 2)]
        done = build(tmp_path, "--dumps", *names, "--out", "out", "--workers", 2, "--memory", "16GB")
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "out") == contents(local)
    assert "secret" not in done.stdout + done.stderr


def test_a_remote_build_that_was_killed_goes_on(
    build, dumps: Path, local: Path, lid_model: Path, tmp_path: Path
) -> None:
    places = ("--dumps", f"{dumps}/RC_*.zst", "--out", f"file://{tmp_path}/out", "--scratch", "scratch")
    command = ["data", "build", "--language-model", lid_model, *CLEAN, *places]
    with subprocess.Popen(
        [sys.executable, "-m", "mrs_suggest.cli.main", *map(str, command)], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as running:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob(".out.build/months/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        running.send_signal(signal.SIGSTOP)
        second = build(tmp_path, *places, "--resume")
        running.send_signal(signal.SIGKILL)
    assert second.returncode == 2, second.stderr
    assert "another build is running there" in second.stderr.splitlines()[-1]
    done = build(tmp_path, *places, "--resume")
    assert done.returncode == 0, done.stderr
    assert parquet_bytes(tmp_path / "out") == parquet_bytes(local)
    assert read_report(tmp_path / "out")["pipeline"] == read_report(local)["pipeline"]
    assert leftovers(tmp_path, "out", "scratch") == leftovers(tmp_path / "scratch") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--out", "foo://me:secret@b/out", "--scratch", "s"), "foo://***@b/out: fsspec does not know"),
        (("--out", "file:///tmp/out"), "--out file:///tmp/out: files are built on this machine"),
        (("--out", "memory://out", "--scratch", "s"), "would be lost when this command ends"),
        (("--out", "http://127.0.0.1:1/out", "--scratch", "s"), "HTTP is read-only"),
        (("--out", "out", "--scratch", "s"), "--scratch s: applies only if --out is a URL"),
        (("--out", "out", "--dumps", "foo://b/RC_1"), "fsspec does not know the protocol 'foo'"),
        (("--out", "out", "--language-model", "s3://b/lid.bin"), "fastText opens only local files"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    build, dumps: Path, tmp_path: Path, options: tuple[str, ...], words: str
) -> None:
    done = build(tmp_path, "--dumps", dumps / "RC_*.zst", *options)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("mrs data")
    assert words in line
    assert "secret" not in line
    assert leftovers(tmp_path) == []
