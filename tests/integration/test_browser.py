"""The tests' own browser: it must notice a page that calls somebody."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.browser import open_browser, running

pytestmark = pytest.mark.integration


def test_a_page_that_calls_somebody_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<p id="a">A</p><img src="https://example.org/pixel.png">', encoding="utf-8")
    serve = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "0"]
    ready = r"(http://127\.0\.0\.1:\d+)"
    with running(serve, ready, cwd=tmp_path) as url, open_browser(tmp_path / "profile") as browser:
        browser.open(url)
        assert browser.text("#a") == "A"
        assert browser.called() == ["https://example.org/pixel.png"]
