"""A small generator and prepared data of the task that the tests of this package share."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.command import Result
from tests.word_generator import PROMPTS, make_run

Staple = Callable[..., Result]


@pytest.fixture
def staple(mrs_here: Staple) -> Staple:
    """A function that runs `mrs staple` in this process: exit code, standard output, standard error."""
    return partial(mrs_here, "staple")


@pytest.fixture(scope="package")
def staple_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Prepared data with a validation split to Portuguese."""
    from mrs_datasets.prepared.prepare import prepare

    folder = tmp_path_factory.mktemp("staple")
    path = folder / "src" / "en_pt" / "dev.en_pt.2020-02-20.gold.txt"
    path.parent.mkdir(parents=True)
    blocks = (f"prompt_{number:02d}|{text}\nsim|0.6\nclaro|0.4\n" for number, text in enumerate(PROMPTS))
    path.write_text("\n".join(blocks), encoding="utf-8")
    prepare("staple", [str(folder / "src")], folder / "data")
    return folder / "data"


@pytest.fixture(scope="package")
def staple_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an untrained generator to Portuguese."""
    return make_run(tmp_path_factory.mktemp("runs") / "one", 1)
