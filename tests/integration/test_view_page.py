"""The page of `mrs data view` in a browser: the search shows the rows that have all words, and calls nobody."""

from pathlib import Path

import pytest

from mrs_datasets.describe.view import write_view
from mrs_datasets.prepared.prepared import open_prepared
from tests.browser import open_browser

pytestmark = pytest.mark.integration


def test_the_search_shows_the_rows_with_all_words(tmp_path: Path) -> None:
    write_view(open_prepared("sample"), tmp_path / "view.html", 40, 1)
    rows = "[...document.querySelectorAll('tbody tr')]"
    shown = f"return {rows}.filter((row) => row.checkVisibility()).map((row) => row.innerText)"
    with open_browser(tmp_path / "profile") as browser:
        browser.open((tmp_path / "view.html").as_uri())
        all_rows = browser.script(shown)
        wanted = [row for row in all_rows if "the" in row.lower() and "you" in row.lower()]
        assert 0 < len(wanted) < len(all_rows)
        browser.type("#search", "You the")
        assert browser.script(shown) == wanted
        assert browser.text("#found").startswith(f"{len(wanted)} of ")
        browser.script(
            "const box = document.getElementById('search'); box.value = ''; box.dispatchEvent(new Event('input'))"
        )
        assert browser.script(shown) == all_rows
        assert browser.called() == []
