"""Fixtures of the tests of passes and builds: the sample as a prepared folder, and a language model."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare_mrs


@pytest.fixture(scope="session")
def prepared_sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded sample; do not change it."""
    folder = tmp_path_factory.mktemp("source") / "mrs"
    prepare_mrs("sample", folder)
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Stands for a language model."""
    path = tmp_path / "lid.ftz"
    path.write_bytes(b"model")
    return path
