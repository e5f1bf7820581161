"""Fixtures of the metrics' tests."""

import pytest


@pytest.fixture(scope="session")
def mecab() -> None:
    """Skip the test where the Japanese tokenizer is not installed."""
    pytest.importorskip("fugashi", reason="needs fugashi, of the extra [ja]")
    pytest.importorskip("unidic_lite", reason="needs unidic-lite, of the extra [ja]")
