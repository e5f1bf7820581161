"""The documentation site: built without a warning, and looked at in Chromium as on a phone and on a desktop."""

import os
import re
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser import Browser, open_browser, running

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}  # CSS pixels
REFERENCE = ("reference/cli", "reference/configs", "reference/api/mrs_suggest")
PAGES = ("index", "how_to/train_on_mrs", *REFERENCE, "results", "metrics", "gallery")
ADDRESS = "https://docs.example.org"
SCHEMES = {"light": "default", "dark": "slate"}
# Elements that reach beyond the screen, and are not inside one that scrolls by itself.
TOO_WIDE = """
    const inside = one => {
        for (let up = one; up && up !== document.body; up = up.parentElement)
            if (["auto", "scroll", "hidden"].includes(getComputedStyle(up).overflowX)) return true;
        return false;
    };
    return [...document.querySelectorAll("article *")]
        .filter(one => one.getBoundingClientRect().right > innerWidth + 1 && !inside(one))
        .map(one => one.outerHTML.slice(0, 200)).slice(0, 3);"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, by the commands of `make docs`."""
    pytest.importorskip("mkdocs", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    own = f"INHERIT: {ROOT}/mkdocs.yml\ndocs_dir: {folder}/pages\nsite_dir: {folder}/site\n"
    own += f"site_url: {ADDRESS}/\ntheme: {{custom_dir: {ROOT}/docs/site/theme}}\n"
    (folder / "mkdocs.yml").write_text(own, encoding="utf-8")
    steps = (
        [str(ROOT / "docs" / "site" / "assemble.py"), str(folder / "pages")],
        ["-m", "mkdocs", "build", "--strict", "--config-file", str(folder / "mkdocs.yml")],
    )
    for step in steps:
        done = subprocess.run(
            [sys.executable, *step], cwd=ROOT, env=env, capture_output=True, text=True, encoding="utf-8"
        )
        said = done.stdout + done.stderr
        assert done.returncode == 0, said[-4000:]
        assert "WARNING" not in said
    return folder / "site"


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    server = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(site), "0"]
    with running(server, r"\((http://127\.0\.0\.1:\d+)/\)") as url:
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with open_browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.mark.parametrize("size", SIZES)
def test_pages_fit_the_screen_and_ask_no_other_host(size: str, address: str, browser: Browser) -> None:
    """`MRS_SCREENSHOTS=FOLDER` also takes pictures, light and dark."""
    width, height = SIZES[size]
    browser.resize(width, height, mobile=size == "phone")
    for page in PAGES:
        browser.open(f"{address}/{page}.html")
        assert browser.script("return document.documentElement.scrollWidth") <= width, page
        assert browser.script(TOO_WIDE) == [], page
        fonts = browser.script(
            "return [...document.fonts].filter(one => one.status === 'loaded').map(one => one.family)"
        )
        assert any("Inter" in font for font in fonts), page
        if folder := os.environ.get("MRS_SCREENSHOTS"):
            take_pictures(browser, Path(folder), f"{page.replace('/', '_')}_{size}")
    assert browser.called() == []


def take_pictures(browser: Browser, folder: Path, name: str) -> None:
    for scheme in SCHEMES:
        body = f"document.body.setAttribute('data-md-color-scheme', '{SCHEMES[scheme]}')"
        browser.script(body)
        (folder / f"{name}_{scheme}.png").write_bytes(browser.screenshot())


def test_links_to_a_page_show_its_card(site: Path) -> None:
    html = (site / "how_to" / "serve.html").read_text(encoding="utf-8")
    shown = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', html))
    assert shown["title"] == "Serve"
    assert shown["url"] == f"{ADDRESS}/how_to/serve.html"
    assert shown["image"] == f"{ADDRESS}/social.png"
    assert struct.unpack(">II", (site / "social.png").read_bytes()[16:24]) == (1200, 630)  # of a PNG file


def test_search_finds_a_page(address: str, browser: Browser) -> None:
    browser.resize(*SIZES["desktop"])
    browser.open(f"{address}/index.html")
    browser.type("input.md-search__input", "response set")
    assert browser.wait_for_text(".md-search-result__meta", r"\d+ matching")
    assert browser.called() == []


def test_long_commands_wrap_on_a_phone(address: str, browser: Browser) -> None:
    browser.resize(*SIZES["phone"], mobile=True)
    browser.open(f"{address}/how_to/distil.html")
    assert browser.script("""
        const line = document.querySelector(".highlight span:has(> .gp)"), code = line.parentElement;
        return code.scrollWidth <= code.clientWidth && line.getClientRects()[0].height > 100""")


def test_the_copy_button_copies_commands_only(address: str, browser: Browser) -> None:
    browser.resize(1280, 900)
    browser.open(f"{address}/guard.html")
    shown, copied = browser.script("""
        const code = document.querySelector(".highlight code:has(.gp)"), shown = code.innerText;
        code.setAttribute("data-md-copying", "");  // as the theme's button does
        return [shown, code.innerText.trimEnd()];""")
    assert shown.startswith("$ mrs suggest")
    assert '"reason": "hardship"' in shown
    lines = copied.split("\n")
    assert len(lines) == 2
    assert all(line.startswith("mrs suggest") for line in lines)
