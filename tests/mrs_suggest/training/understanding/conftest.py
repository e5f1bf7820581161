"""The generated tasks of XGLUE, prepared once."""

from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare


@pytest.fixture(scope="session")
def tasks_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a prepared folder of synthetic-xglue."""
    folder = tmp_path_factory.mktemp("xglue") / "data"
    prepare("synthetic-xglue", ["synthetic"], folder)
    return folder
