"""`mrs data build --engine spark`: the data set of the local engine, byte for byte, and its sentences."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.builders.reddit import duplicates
from mrs_suggest.cli.main import main
from tests.dumps import leftovers, parquet_bytes, read_report, write_months
from tests.s3_server import S3
from tests.spark_months import BUCKETS, SETTINGS, assert_equal, require_spark, write_dirty_months

pytestmark = pytest.mark.integration

COMMENTS = 2500
ENOUGH = {"paper": 200, "clean": 600}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_spark()
    return write_dirty_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)


@pytest.fixture(scope="module")
def local(mrs, dumps: Path, lid_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the data set of each profile, built by the local engine."""
    folder = tmp_path_factory.mktemp("local")
    for profile, enough in ENOUGH.items():
        start = ("data", "build", "--dumps", dumps / "RC_*", "--out", profile, "--language-model", lid_model)
        options = ("--profile", profile, "--min-examples", enough, "--min-reply-count", 2, "--buckets", BUCKETS)
        done = mrs(*start, "--no-strict", *options, "--workers", 1, cwd=folder)
        assert done.returncode == 0, done.stderr
    return {profile: folder / profile for profile in ENOUGH}


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    """Return a session of this process, which all builds use: Spark takes seconds to start."""
    require_spark()
    from mrs_datasets.builders.pipeline.spark import SparkEngine

    settings = dict(entry.split("=") for entry in SETTINGS)
    with SparkEngine("local[2,4]", settings) as engine:
        yield engine.session


def run(dumps: Path | str, model: Path, out: Path | str, *options: object) -> int:
    start = ["data", "build", "--engine", "spark", "--dumps", f"{dumps}/RC_*", "--out", out, "--language-model", model]
    settings = ["--no-strict", "--min-reply-count", 2, "--buckets", BUCKETS]
    return main([str(part) for part in [*start, *settings, *options]])


@pytest.mark.parametrize("profile", list(ENOUGH))
def test_both_engines_build_the_same(
    session, local, dumps: Path, lid_model: Path, tmp_path: Path, profile: str, capsys, monkeypatch
) -> None:
    monkeypatch.setattr(duplicates, "FILE_PAIRS", 500)  # the search for duplicates is spread over tasks
    assert run(dumps, lid_model, tmp_path / "out", "--profile", profile, "--min-examples", ENOUGH[profile]) == 0
    assert_equal(tmp_path / "out", local[profile])
    assert leftovers(tmp_path) == ["out"]
    assert "Traceback" not in capsys.readouterr().err
    pipeline = read_report(tmp_path / "out")["pipeline"]
    dropped = {reason for stage in pipeline["stages"] for reason in stage["dropped"]}
    assert {"comment twice", "answers in a circle", "broken JSON", "lone surrogate"} <= dropped
    assert len(pipeline["warnings"]) >= 2  # the month that ends early, and the altered frame
    if profile == "clean":
        assert {"exact duplicate", "near duplicate"} <= dropped
    executors = session.sparkContext._jsc.sc().statusStore().executorList(False)
    (executor,) = (executors.apply(number) for number in range(executors.size()))
    assert executor.totalTasks() > BUCKETS
    assert executor.totalShuffleWrite() == 0, "there is a shuffle, which may spill: test it with little memory"


def test_s3_is_read_and_written_without_hadoop(
    session, local, s3: S3, dumps: Path, lid_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `s3fs`, in the tasks, too: their processes get the environment that leads to the server."""
    for name, value in os.environ.items():
        if name.startswith("AWS_"):
            monkeypatch.setitem(session.sparkContext.environment, name, value)
    s3.send(dumps, "dumps")
    options = ("--profile", "paper", "--min-examples", ENOUGH["paper"], "--scratch", tmp_path)
    assert run("s3://texts/dumps", lid_model, "s3://texts/sets/mrs", *options) == 0
    found = s3.contents("sets/mrs")
    assert {name: data for name, data in found.items() if name.endswith(".parquet")} == parquet_bytes(local["paper"])
    assert s3.contents("sets").keys() == {f"mrs/{name}" for name in found}, "no work is left"
    assert leftovers(tmp_path) == []


def test_a_newer_month_with_most_comments_in_one_thread_on_both_engines(
    session, lid_model: Path, tmp_path: Path
) -> None:
    months = write_months(tmp_path / "months", COMMENTS, months=("2023-03",), long_thread=2000)
    options = ("--profile", "clean", "--english-months", "all", "--min-examples", 50, "--split-by", "example")
    assert run(months, lid_model, tmp_path / "spark", *options) == 0
    assert run(months, lid_model, tmp_path / "local", *options, "--engine", "local", "--workers", 1) == 0
    assert_equal(tmp_path / "spark", tmp_path / "local")


def test_a_broken_month_is_the_same_sentence_and_resumed(
    session, local, dumps: Path, lid_model: Path, tmp_path: Path, capsys
) -> None:
    """The other months are not read again: their files are those of before."""
    months = tmp_path / "months"
    shutil.copytree(dumps, months)
    whole = (months / "RC_2018-04.zst").read_bytes()
    (months / "RC_2018-04.zst").write_bytes(b"PK\x03\x04 no dump")
    enough = ("--min-examples", ENOUGH["paper"])
    told = []
    for options in (["--engine", "local", "--workers", "1", "--overwrite"], ["--overwrite"]):
        assert run(months, lid_model, tmp_path / "out", *enough, *options) == 2
        told.append(capsys.readouterr().err.splitlines()[-1])
    assert told[0] == told[1]
    assert "RC_2018-04.zst: expected a dump of Reddit comments" in told[0]
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build").glob("months/*.arrow")}
    assert len(done) == 3
    (months / "RC_2018-04.zst").write_bytes(whole)
    assert run(months, lid_model, tmp_path / "out", *enough, "--min-examples", 90_000, "--resume") == 2
    assert "no language has 90,000 pairs" in capsys.readouterr().err.splitlines()[-1]
    assert {path: path.stat().st_mtime_ns for path in done} == done
    # Its work is the local engine's, which can go on with it.
    assert run(months, lid_model, tmp_path / "out", *enough, "--resume", "--engine", "local", "--workers", 1) == 0
    assert read_report(tmp_path / "out") == read_report(local["paper"])


WRONG = {
    "workers": (["--workers", 2], ["--workers", "--master"]),
    "setting": (["--spark-conf", "spark.ui.enabled"], ["--spark-conf spark.ui.enabled", "spark.NAME=VALUE"]),
    "local": (["--engine", "local", "--master", "local[2]"], ["--master", "--engine spark"]),
}


@pytest.mark.parametrize(("options", "words"), WRONG.values(), ids=WRONG)
def test_options_that_do_not_fit(
    dumps: Path, lid_model: Path, tmp_path: Path, options: list[object], words: list[str], capsys
) -> None:
    assert run(dumps, lid_model, tmp_path / "out", *options) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert [word for word in words if word not in line] == [], line
    assert list(tmp_path.iterdir()) == []
