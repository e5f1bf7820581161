"""The wheel holds everything: what works in the checkout works from it, in an empty folder, without network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def site(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and installed without its dependencies into a folder of its own."""
    work = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    build = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", str(work), str(repository)]
    subprocess.run([*pip, *build], check=True, capture_output=True, cwd=work)
    (wheel,) = work.glob("*.whl")
    install = ["install", "--no-deps", "--no-index", "--target", str(work / "site"), str(wheel)]
    subprocess.run([*pip, *install], check=True, capture_output=True, cwd=work)
    return work / "site"


def run(site: Path, folder: Path, *arguments: str) -> str:
    env = {**os.environ, "PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=env, capture_output=True, text=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_generic_name_is_claimed(site: Path) -> None:
    """`trainers` and `model_cards` are folders of the checkout; installed, they carry the project's name."""
    names = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert {name for name in names if not name.startswith("mrs_")} <= {"bin", "__pycache__"}
    assert {"mrs_trainers", "mrs_model_cards"} <= names


def test_tests_and_caches_stay_at_home(repository: Path, site: Path) -> None:
    (wheel,) = site.parent.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "benchmarks", "docs"))]
    assert wheel.stat().st_size < 8_000_000


def test_it_answers_prepares_and_imports_from_an_empty_folder(site: Path, tmp_path: Path) -> None:
    where = run(
        site, tmp_path, "-c", "import mrs_core, mrs_trainers.retrieval as t; print(mrs_core.__file__, t.__file__)"
    )
    assert all(str(site) in path for path in where.split())
    mrs = ("-m", "mrs_cli.main")
    answer = json.loads(run(site, tmp_path, *mrs, "suggest", "--lang", "es", "--json", "¿quedamos mañana?"))
    assert len({suggestion["reply"] for suggestion in answer["suggestions"]}) == 3
    run(site, tmp_path, *mrs, "data", "prepare", "mrs", "--source", "sample", "--out", "data")
    assert (tmp_path / "data" / "data" / "ja" / "test-00000-of-00001.parquet").is_file()
    assert "mrs_rouge" in run(site, tmp_path, *mrs, "metrics", "list")
    assert "sample-retriever" in run(site, tmp_path, *mrs, "models", "list")
