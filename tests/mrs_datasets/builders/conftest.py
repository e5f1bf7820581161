"""Fixtures of the tests of passes and builds: some rows of the sample, and a language model."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.schema import MRS
from mrs_datasets.prepared.writer import write_prepared


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows of the sample in a folder; do not change them."""
    source, folder = open_prepared("sample"), tmp_path_factory.mktemp("sample") / "mrs"
    chunks = [
        (config, split, pq.read_table(source.files(config, split)[0]).slice(0, 120))
        for config in ("en", "es", "ja", "en-responses", "es-responses")
        for split in source.splits(config)
    ]
    write_prepared(folder, chunks, Report("pairs", partial=True), MRS, "the sample")
    return folder


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Stands for a language model."""
    path = tmp_path / "lid.ftz"
    path.write_bytes(b"model")
    return path
