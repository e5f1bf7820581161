"""Months as processes of their own, then the rest of the build; and the Slurm recipe, with a stand-in for `sbatch`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Mrs
from tests.dumps import leftovers, parquet_bytes, read_report, write_months

pytestmark = pytest.mark.integration

SMALL = ("--profile", "clean", "--min-examples", 500, "--min-reply-count", 2, "--memory", "16GB")
# Runs the script of each job at once: all tasks of an array, one after the other.
SBATCH = """#!/usr/bin/env bash
set -euo pipefail
tasks=("")
while [[ $1 == --* ]]; do
  if [[ $1 == --array=* ]]; then range=${1#--array=}; range=${range%%%*}; mapfile -t tasks < <(seq "${range%-*}" "${range#*-}"); fi
  shift
done
for task in "${tasks[@]}"; do SLURM_ARRAY_TASK_ID=$task bash "$@" >&2; done
echo "7;cluster"
"""  # noqa: E501


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_months(tmp_path_factory.mktemp("dumps") / "months", 2500)


@pytest.fixture(scope="module")
def whole(mrs: Mrs, dumps: Path, lid_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the data set of one process."""
    folder = tmp_path_factory.mktemp("whole")
    options = ("--language-model", lid_model, *SMALL, "--workers", 1, "--buckets", 4)
    done = mrs("data", "build", "--dumps", dumps / "RC_*.zst", "--out", "out", *options, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "out"


def test_months_apart_end_with_the_same_files(
    mrs: Mrs, dumps: Path, whole: Path, lid_model: Path, tmp_path: Path
) -> None:
    shared = ("--out", "out", "--language-model", lid_model, *SMALL, "--buckets", 4, "--workers", 1)

    def options(name: str) -> list[str]:
        return ["data", "build", "--only", "months", "--dumps", str(dumps / name), *map(str, shared)]

    def month(name: str) -> subprocess.CompletedProcess[str]:
        return mrs(*options(name), cwd=tmp_path)

    first = [sys.executable, "-m", "mrs_suggest.cli.main", *options("RC_2018-01.zst")]
    with subprocess.Popen(first, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        done = month("RC_2018-02.zst")
        told, _ = other.communicate(timeout=100)
    assert (other.returncode, done.returncode) == (0, 0), done.stderr
    for output in (told, done.stdout):
        assert output.startswith("wrote 1 month to ")
        assert ".out.build" in output
    assert month("RC_2018-02.zst").returncode == 0, "a task that is repeated finds its month done"
    assert leftovers(tmp_path) == [".out.build"]
    changed = mrs("data", "build", "--only", "months", "--dumps", dumps / "RC_*", *shared, "--buckets", 8, cwd=tmp_path)
    assert ".out.build: was begun with other buckets; pass the same" in changed.stderr.splitlines()[-1]
    done = mrs("data", "build", "--dumps", dumps / "RC_*", *shared, "--resume", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "--resume: other" not in done.stderr
    assert parquet_bytes(tmp_path / "out") == parquet_bytes(whole)
    assert read_report(tmp_path / "out")["pipeline"] == read_report(whole)["pipeline"]
    assert leftovers(tmp_path) == ["out"]


def test_the_slurm_recipe_builds_the_same(
    dumps: Path, whole: Path, lid_model: Path, tmp_path: Path, repository: Path
) -> None:
    programs = {"sbatch": SBATCH, "mrs": f'#!/bin/sh\nexec {sys.executable} -m mrs_suggest.cli.main "$@"\n'}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    places = {"DUMPS": f"{dumps}/RC_*.zst", "OUT": f"{tmp_path}/out", "BUCKETS": "4", "CPUS": "1", "MEMORY": "16"}
    done = subprocess.run(
        [repository / "deploy" / "slurm" / "submit.sh", "--language-model", lid_model, *map(str, SMALL[:-2])],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **places},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert parquet_bytes(tmp_path / "out") == parquet_bytes(whole)
    assert leftovers(tmp_path, *programs) == ["out"]
