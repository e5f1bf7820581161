"""`mrs data build` with dumps and data set in S3: the data set is the one of local folders."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command import refused
from tests.conftest import Mrs
from tests.dumps import leftovers, parquet_bytes, write_months
from tests.s3_server import S3, SECRET

pytestmark = pytest.mark.integration

SMALL = ("--profile", "clean", "--min-examples", 500, "--min-reply-count", 2, "--buckets", 3, "--memory", "16GB")
DUMPS = "s3://texts/dumps/RC_*.zst"


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_months(tmp_path_factory.mktemp("dumps") / "months", 2500)


@pytest.fixture(scope="module")
def local(mrs: Mrs, dumps: Path, lid_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data set of local folders."""
    folder = tmp_path_factory.mktemp("local")
    options = ("--language-model", lid_model, *SMALL, "--workers", 1)
    done = mrs("data", "build", "--dumps", dumps / "RC_*.zst", "--out", "out", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_a_killed_build_in_s3_goes_on_and_ends_with_the_local_files(
    mrs: Mrs, s3: S3, dumps: Path, local: Path, lid_model: Path, tmp_path: Path
) -> None:
    s3.send(dumps, "dumps")
    places = ("--dumps", DUMPS, "--out", "s3://texts/sets/mrs", "--scratch", "scratch")
    command = ["data", "build", *places, "--language-model", lid_model, *SMALL, "--workers", 2]
    with subprocess.Popen(
        [sys.executable, "-m", "mrs_suggest.cli.main", *map(str, command)], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as running:
        deadline = time.monotonic() + 60
        while not any(name.endswith(".json") for name in s3.below("sets/.mrs.build/months")):
            assert time.monotonic() < deadline, "no month was done"
            time.sleep(0.05)
        running.send_signal(signal.SIGKILL)
    assert "sets/mrs" not in s3.names()
    done = mrs(*command, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert SECRET not in done.stdout + done.stderr
    found = s3.contents("sets/mrs")
    assert {name: data for name, data in found.items() if name.endswith(".parquet")} == parquet_bytes(local)
    assert json.loads(found["report.json"])["pipeline"] == json.loads((local / "report.json").read_bytes())["pipeline"]
    assert s3.contents("sets").keys() == {f"mrs/{name}" for name in found}, "no work is left"
    assert leftovers(tmp_path / "scratch") == []


@pytest.mark.parametrize(
    ("dumps_at", "out", "words"),
    [
        (DUMPS, "s3://texts/mrs", "--dumps s3://texts/dumps/RC_*.zst: no such file; pass monthly dumps"),
        (
            "s3://other-texts/RC_*",
            "s3://texts/mrs",
            "s3://other-texts/RC_*: cannot be reached (there is no such bucket; check its name",
        ),
        (
            "{local}",
            "s3://other-texts/mrs",
            "s3://other-texts/mrs: cannot be reached (there is no such bucket; check its name",
        ),
    ],
)
def test_what_is_not_there_is_one_sentence(
    mrs: Mrs, s3: S3, dumps: Path, lid_model: Path, tmp_path: Path, dumps_at: str, out: str, words: str
) -> None:
    options = ("--dumps", dumps_at.format(local=dumps / "RC_*"), "--out", out, "--scratch", "scratch")
    done = mrs("data", "build", *options, "--language-model", lid_model, *SMALL, cwd=tmp_path)
    assert words in refused((done.returncode, done.stdout, done.stderr))
    assert leftovers(tmp_path, "scratch") == []
