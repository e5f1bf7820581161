"""Fixtures of the metrics' tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real and golden data; skip the test where it is absent."""
    folder = Path(os.environ.get("MRS_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not (folder / "golden").is_dir():
        pytest.skip(f"needs the shared data, which {folder} does not hold (set MRS_SHARED_DATA)")
    return folder


@pytest.fixture(scope="session")
def mecab() -> None:
    """Skip the test where the Japanese tokenizer is not installed."""
    pytest.importorskip("fugashi", reason="needs fugashi, of the extra [ja]")
    pytest.importorskip("unidic_lite", reason="needs unidic-lite, of the extra [ja]")
