"""The chips of `widget.js` in a browser of a phone's size, on the page `/chat` of a real server."""

import json
import os
import sqlite3
import time
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from mrs_suggest.serving.clicks import read_answers
from mrs_suggest.suggest.suggester import Suggester
from tests.browser import Browser, open_browser
from tests.mrs_suggest.serving.server_process import ServerProcess

pytestmark = pytest.mark.integration
MESSAGE = "Are you coming to dinner tonight?"


def chips(browser: Browser) -> list[str]:
    found: list[str] = browser.script(
        "return [...document.querySelector('mrs-chips').shadowRoot.querySelectorAll('button')].map(b => b.textContent)"
    )
    return found


def wait_for_chips(browser: Browser) -> list[str]:
    deadline = time.monotonic() + 30
    while not (found := chips(browser)):
        assert time.monotonic() < deadline, "no chips"
        time.sleep(0.05)
    return found


def receive(browser: Browser, text: str) -> None:
    browser.type("#message", text)
    browser.click("#receive")


def choose(browser: Browser, place: int) -> None:
    browser.script(
        "document.querySelector('mrs-chips').shadowRoot.querySelectorAll('button')[arguments[0]].click()", place
    )


def test_chips_on_a_phone_are_chosen_edited_or_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "clicks.sqlite"
    with (
        ServerProcess("--feedback", path, folder=tmp_path) as server,
        open_browser(tmp_path / "profile", 390, 844) as browser,
    ):
        server.wait_for_workers()
        browser.resize(390, 844, mobile=True)
        browser.open(f"{server.url}/chat")
        browser.type("#message", f"{MESSAGE}\ue007")  # Enter: while no message has arrived, it is received
        expected = Suggester.from_pretrained("everyday-retriever").suggest([MESSAGE])[0].replies
        assert wait_for_chips(browser) == expected
        assert browser.script("return document.documentElement.scrollWidth") <= 390
        heights = browser.script(
            "return [...document.querySelector('mrs-chips').shadowRoot.querySelectorAll('button')]"
            ".map(b => b.getBoundingClientRect().height)"
        )
        assert min(heights) >= 44, "a finger hits them"
        if target := os.environ.get("MRS_SCREENSHOTS"):
            (Path(target) / "widget.png").write_bytes(browser.screenshot())
        choose(browser, 1)
        assert browser.script("return document.querySelector('#message').value") == expected[1]
        browser.click("#send")
        assert chips(browser) == []
        receive(browser, MESSAGE)
        wait_for_chips(browser)
        choose(browser, 0)
        browser.type("#message", " See you")
        browser.click("#send")
        receive(browser, MESSAGE)
        wait_for_chips(browser)
        browser.type("#message", "Own words\ue007")
        assert browser.script("return document.querySelector('#thread :last-child').className") == "me"
        receive(browser, "<img src=x onerror=alert(1)> I want to kill myself")
        browser.wait_for_text("#thread", r"No suggestion \(self_harm\)")
        assert browser.script("return document.querySelectorAll('#thread img').length") == 0
        deadline = time.monotonic() + 30
        while sum(row[8] is not None for row in read_answers(str(path))) < 3:
            assert time.monotonic() < deadline, "the clicks did not arrive"
            time.sleep(0.05)
        server.stop()
        receive(browser, MESSAGE)
        browser.wait_for_text("#thread", "The server did not answer")
        assert chips(browser) == [], "without a server one types"
        keys = tmp_path / "keys.txt"
        keys.write_text(f"{'k' * 32}\n", encoding="utf-8")
        with ServerProcess("--api-keys", keys, folder=tmp_path) as closed:
            closed.wait_for_workers()
            browser.open(f"{closed.url}/chat")
            receive(browser, MESSAGE)
            browser.wait_for_text("#thread", "The server refused: it asks for an API key")
    rows = read_answers(str(path))
    assert [row[7:10] for row in rows[:3]] == [(2, 0, 0), (1, 1, 8), (None, 0, 9)]
    assert len({row[1] for row in rows}) == 1
    with sqlite3.connect(path) as file:
        kept = "\n".join(file.iterdump())
    assert "See you" not in kept
    assert json.dumps(expected[0])[1:-1] not in kept
