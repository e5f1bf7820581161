"""The wheel holds everything: what works in the checkout works from it, in an empty folder, without network."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests import warm_python

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
    done = warm_python.run([sys.executable, *arguments], cwd=folder, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_no_generic_name_is_claimed(site: Path) -> None:
    """`trainers` and `model_cards` are folders of the checkout; installed, they carry the project's name."""
    names = {path.name for path in site.iterdir() if not path.name.endswith(".dist-info")}
    assert {name for name in names if not name.startswith("mrs_")} <= {"bin", "__pycache__"}
    assert {"mrs_trainers", "mrs_model_cards", "mrs_suggest"} <= names


def test_tests_and_caches_stay_at_home(repository: Path, site: Path) -> None:
    (wheel,) = site.parent.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "benchmarks", "docs"))]
    assert wheel.stat().st_size < 24_000_000


def test_every_package_is_typed_and_has_its_licence(site: Path) -> None:
    packages = sorted(path.name for path in site.glob("mrs_*") if (path / "__init__.py").is_file())
    assert len(packages) == 5
    assert [name for name in packages if not (site / name / "py.typed").is_file()] == []
    (info,) = site.glob("*.dist-info")
    assert list(info.rglob("LICENSE"))  # in licenses/ since setuptools 77


def test_the_source_distribution_is_whole(repository: Path, tracked: list[str], tmp_path: Path) -> None:
    """Every file of the checkout but git's own is in it: docs, tests, benchmarks, what the gate runs."""
    for name in tracked:  # a copy: building leaves an egg-info behind, and reads an old one
        (tmp_path / "copy" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, tmp_path / "copy" / name)
    build = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(tmp_path)], cwd=tmp_path / "copy", check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    assert sorted(set(tracked) - held) == [".gitignore"]
    assert archive.stat().st_size < 25_000_000


def test_it_answers_prepares_and_imports_from_an_empty_folder(site: Path, tmp_path: Path) -> None:
    imports = "import mrs_suggest.common, mrs_trainers.retrieval as t; print(mrs_suggest.common.__file__, t.__file__)"
    where = run(site, tmp_path, "-c", imports)
    assert all(str(site) in path for path in where.split())
    mrs = ("-m", "mrs_suggest.cli.main")
    answer = json.loads(run(site, tmp_path, *mrs, "suggest", "--language", "es", "--json", "¿quedamos mañana?"))
    assert len({suggestion["reply"] for suggestion in answer["suggestions"]}) == 3
    run(site, tmp_path, *mrs, "data", "prepare", "mrs", "--source", "sample", "--out", "data")
    assert (tmp_path / "data" / "data" / "ja" / "test-00000-of-00001.parquet").is_file()
    assert "mrs_rouge" in run(site, tmp_path, *mrs, "metrics", "list")
    assert "everyday-retriever" in run(site, tmp_path, *mrs, "models", "list")
