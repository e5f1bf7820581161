"""`mrs data build` with URLs, in its own process and with workers: the data set is the one of local folders."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import cases
from tests.command import Result, refused
from tests.conftest import Mrs
from tests.dumps import leftovers, parquet_bytes, write_months
from tests.s3_server import S3, SECRET

pytestmark = pytest.mark.integration

COMMENTS = 3000
DUMPS = "s3://texts/dumps/RC_*.zst"
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


def refuse(mrs_here: Callable[..., Result], model: Path, *options: object) -> str:
    """What a build says that stops before it begins, in this process."""
    return refused(mrs_here("data", "build", "--language-model", model, *CLEAN, *options))


@pytest.mark.parametrize(("options", "words"), cases(__file__, "test_what_cannot_be_is_one_sentence"))
def test_what_cannot_be_is_one_sentence(
    mrs_here, dumps: Path, lid_model: Path, tmp_path: Path, monkeypatch, options: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refuse(mrs_here, lid_model, "--dumps", dumps / "RC_*.zst", *options)
    assert words in line
    assert "secret" not in line
    assert leftovers(tmp_path) == []


def test_a_killed_build_in_s3_goes_on_and_ends_with_the_local_files(
    mrs: Mrs, s3: S3, dumps: Path, local: Path, lid_model: Path, tmp_path: Path
) -> None:
    s3.send(dumps, "dumps")
    places = ("--dumps", DUMPS, "--out", "s3://texts/sets/mrs", "--scratch", "scratch")
    command = ["data", "build", *places, "--language-model", lid_model, *CLEAN, "--workers", 2, "--memory", "16GB"]
    with subprocess.Popen(
        [sys.executable, "-m", "mrs_suggest.cli.main", *map(str, command)], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as running:
        deadline = time.monotonic() + 60
        while not any(name.endswith(".json") for name in s3.below("sets/.mrs.build/months")):
            assert time.monotonic() < deadline, "no month was done"
            time.sleep(0.05)
        running.send_signal(signal.SIGSTOP)
        second = mrs(*command, "--resume", cwd=tmp_path)
        running.send_signal(signal.SIGKILL)
    assert second.returncode == 2
    assert "another build is running there" in second.stderr.splitlines()[-1]
    assert "sets/mrs" not in s3.names()
    done = mrs(*command, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    found = s3.contents("sets/mrs")
    assert {name: data for name, data in found.items() if name.endswith(".parquet")} == parquet_bytes(local)
    assert json.loads(found["report.json"])["pipeline"] == json.loads((local / "report.json").read_bytes())["pipeline"]
    assert s3.contents("sets").keys() == {f"mrs/{name}" for name in found}, "no work is left"
    assert leftovers(tmp_path / "scratch") == []


@pytest.mark.parametrize(("dumps_at", "out", "words"), cases(__file__, "test_what_is_not_in_s3_is_one_sentence"))
def test_what_is_not_in_s3_is_one_sentence(
    mrs_here, s3: S3, dumps: Path, lid_model: Path, tmp_path: Path, dumps_at: str, out: str, words: str
) -> None:
    options = ("--dumps", dumps_at.format(local=dumps / "RC_*"), "--out", out, "--scratch", tmp_path / "scratch")
    assert words in refuse(mrs_here, lid_model, *options)
    assert leftovers(tmp_path, "scratch") == []
