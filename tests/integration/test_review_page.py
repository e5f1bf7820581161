"""The page of `mrs data review` in a browser: keys accept, edit and drop, and every decision reaches the folder."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.generated.generate import generate, read_decisions
from mrs_datasets.generated.review import open_generated, review_server
from mrs_suggest.cli.data.generate import _teacher as reader
from tests.browser import open_browser
from tests.mrs_datasets.generated.test_generate import MESSAGES, TASK, teaching, texts

pytestmark = pytest.mark.integration


def test_keys_accept_edit_and_drop(tmp_path: Path) -> None:
    out = tmp_path / "out"
    generate(TASK, teaching(), out)
    server, address = review_server(out, *open_generated(out, reader))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with open_browser(tmp_path / "profile", 1000, 860) as browser:
            browser.open(address)
            assert browser.text("h1") == "Review"
            assert browser.text("#where") == "English, pair 1 of 8"
            for key in "ad":
                browser.press(key)
            assert browser.text("#where") == "English, pair 3 of 8"
            browser.press("e")
            browser.script("document.getElementById('comment').value = ''")
            browser.type("#comment", "Lunch at noon?\n")
            assert browser.text("#where") == "English, pair 4 of 8"
            assert browser.text("#done") == "3 of 8 judged"
            wait(lambda: len(read_decisions(out)) == 3)
            browser.script("document.getElementById('download').click()")
            assert "accept 1, drop 1, edit 1" in browser.wait_for_text("#notice", "reviewed")
            browser.reload()
            assert browser.text("#done") == "3 of 8 judged"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert texts(out, "message") == {MESSAGES[0], "Lunch at noon?", *MESSAGES[3:]}


def wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)
