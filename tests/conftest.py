"""What every test gets: temporary caches and no hub (set before any library is imported), shared fixtures."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

STARTUP = str(Path(__file__).with_name("startup"))  # what Python runs at its start
CACHES = Path(tempfile.mkdtemp(prefix="mrs-tests-"))
os.environ.update(
    {
        "HF_HOME": str(CACHES / "hf"),
        "HF_DATASETS_CACHE": str(CACHES / "hf" / "datasets"),
        "HF_HUB_CACHE": str(CACHES / "hf" / "hub"),
        "HF_MODULES_CACHE": str(CACHES / "hf" / "modules"),
        "HF_HUB_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join(filter(None, [STARTUP, os.environ.get("PYTHONPATH")])),
    }
)
sys.path.append(STARTUP)
importlib.import_module("few_examples")  # before any module of the project

import pytest  # noqa: E402  (the caches come first)
from hypothesis import settings  # noqa: E402
from hypothesis.internal.conjecture import providers  # noqa: E402

from tests import warm_python  # noqa: E402
from tests.command import Result  # noqa: E402

if TYPE_CHECKING:
    from mrs_datasets.prepared.prepared import PreparedData

pytest_plugins = ["tests.browser", "tests.hub.fixtures", "tests.s3_server"]

ROOT = Path(__file__).resolve().parents[1]
# A gate gives the same answer twice: examples follow from each test's own text. `make test-properties` looks further.
settings.register_profile("gate", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, print_blob=True)
settings.load_profile("gate")

Mrs = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_configure(config: pytest.Config) -> None:
    """In a gate, draw no constants from whatever modules a process has happened to load by then."""
    if config.getoption("--hypothesis-profile", None) is None:
        providers._get_local_constants = lambda: providers._local_constants
    config.option.loadscopereorder = False  # xdist takes the files as they are sorted below


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files with slower tests come first: at the end, no process waits long for the others."""
    slower = {item.path for item in items if item.get_closest_marker("integration")}
    items.sort(key=lambda item: item.path not in slower)


def pytest_unconfigure() -> None:
    """End the session's processes and remove its caches."""
    warm_python.end()
    shutil.rmtree(CACHES, ignore_errors=True)


@pytest.fixture(scope="session")
def repository() -> Path:
    """Return the top folder of the project."""
    return ROOT


@pytest.fixture(scope="session")
def tracked() -> list[str]:
    """Return the paths of the files that git tracks; skip the test where there is no checkout."""
    if not (ROOT / ".git").exists():
        pytest.skip("needs a checkout, to list the tracked files")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    return [name for name in listed.decode("utf-8").split("\0") if (ROOT / name).is_file()]


def shared(name: str, member: str) -> Path:
    """Return a shared folder, where `member` shows that it is there; skip the test where it is absent."""
    variable = f"MRS_SHARED_{name.upper()}"
    folder = Path(os.environ.get(variable, ROOT.parent / "shared" / name))
    if not (folder / member).is_dir():
        pytest.skip(f"needs the shared {name}, which {folder} does not hold (set {variable})")
    return folder


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real data."""
    return shared("data", "replies")


@pytest.fixture(scope="session")
def shared_models() -> Path:
    """Return the folder of real checkpoints."""
    return shared("models", "e5-small")


@pytest.fixture(scope="session")
def lid_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fastText model that knows the synthetic dumps; skip the test where fastText is missing."""
    pytest.importorskip("fasttext")
    from mrs_datasets.synthetic.language_models import write_language_model

    path = tmp_path_factory.mktemp("lid") / "lid.bin"
    write_language_model(path)
    return path


@pytest.fixture(scope="session")
def mrs() -> Mrs:
    """Return a function that runs the `mrs` command in its own process, in the folder `cwd`."""

    def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        return warm_python.run([sys.executable, "-m", "mrs_suggest.cli.main", *arguments], cwd=cwd)

    return run


@pytest.fixture
def mrs_here(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Return a function that runs the `mrs` command in this process: exit code, standard output, standard error."""
    from mrs_suggest.cli.main import main

    def run(*arguments: object) -> Result:
        try:
            code = main([*map(str, arguments)])
        except SystemExit as error:  # of argparse
            code = int(error.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    """Return a small prepared folder in two languages, with translated pairs of one, made by the real reader."""
    from mrs_datasets.prepared.prepare import prepare_mrs
    from mrs_datasets.prepared.prepared import open_prepared

    folder = tmp_path_factory.mktemp("training")
    source = folder / "source"
    source.mkdir()
    for language in ("en", "ja"):
        lines = [f"{language} message {n}\t{language} reply {n % 7}\n" for n in range(80)]
        (source / f"{language}.tsv").write_text("".join(lines), encoding="utf-8")
    lines = [f"translated message {n}\ttranslated reply {n % 5}\n" for n in range(30)]
    (source / "mt-ja.tsv").write_text("".join(lines), encoding="utf-8")
    prepare_mrs(str(source), folder / "data")
    return open_prepared(str(folder / "data"))
