"""The page of `mrs demo` in a browser, and as a Space."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.suggest.suggester import Suggester
from tests import warm_python
from tests.browser import Browser, open_browser, quiet_environment, running
from tests.hub.server import LoopbackHub

pytestmark = pytest.mark.integration

SAMPLE = "everyday-retriever"
PAGE_AT = r"The page is at +(http://127\.0\.0\.1:\d+)"


@contextmanager
def demo(folder: Path, proxy: str, *models: object) -> Iterator[str]:
    """Serve the page with `mrs demo`; yield its address."""
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("needs gradio: pip install '.[demo]'")
    options = [part for model in models for part in ("--model", str(model))]
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "demo", *options]
    with running(command, PAGE_AT, cwd=folder, env=quiet_environment(folder, proxy)) as url:
        yield url


def receive(browser: Browser, message: str) -> None:
    browser.type("#message textarea", message)
    browser.click("#send")


def photograph(browser: Browser, name: str) -> None:
    """`MRS_SCREENSHOTS=docs pytest -k test_demo_page` takes the pictures of docs/demo.md."""
    if target := os.environ.get("MRS_SCREENSHOTS"):
        (Path(target) / name).write_bytes(browser.screenshot())


def replies(folder: Path | str, message: str, language: str) -> list[str]:
    return [suggestion.reply for suggestion in Suggester.from_pretrained(folder).suggest([message], language)[0]]


def shown(browser: Browser, column: int) -> list[str]:
    return [browser.text(f"#reply-{column}-{place}") for place in range(3)]


def test_the_page_answers_in_three_languages_and_says_why_not(tmp_path: Path, outside: tuple[str, list[str]]) -> None:
    asked = [
        ("Danke für deine Hilfe gestern!", "de"),
        ("明日の会議は何時からですか？", "ja"),
        ("¿Quedamos mañana?", "es"),
    ]
    with demo(tmp_path, outside[0]) as url, open_browser(tmp_path / "profile", 900, 1090) as browser:
        browser.open(url)
        for message, language in asked:
            receive(browser, message)
            status = browser.wait_for_text("#status-0", rf"{language} \d+%.* ms")
            assert " ms" in status
            assert shown(browser, 0) == replies(SAMPLE, message, language)
            assert message in browser.text("#chat")
            assert browser.text("#why-0") == ""
        parts = browser.text("#parts-0")
        assert "memory" in parts
        assert "votes" in parts
        photograph(browser, "demo_page.png")
        chosen = browser.text("#reply-0-1")
        browser.click("#reply-0-1")
        assert chosen in browser.wait_for_text("#chat", chosen.replace("?", r"\?"))
        browser.wait_for_text("#status-0", "^$")
        receive(browser, "1234")
        assert browser.wait_for_text("#why-0", "language is not clear").startswith("No suggestions: ")
        assert browser.text("#parts-0").count("memory") == 0
        photograph(browser, "demo_nothing.png")
        assert browser.called() == [], "the page called somebody"
    assert outside[1] == [], "the server called somebody"


def test_two_models_side_by_side(tmp_path: Path, outside: tuple[str, list[str]]) -> None:
    own = tmp_path / "own"
    (tmp_path / "own.txt").write_text(
        "Certainly, see you tonight!\nSorry, not tonight.\nLet me check.\n", encoding="utf-8"
    )
    index = ["models", "index", SAMPLE, "--language", "en", "--responses", "own.txt", "--out", str(own)]
    done = warm_python.run([sys.executable, "-m", "mrs_suggest.cli.main", *index], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    message = "Are you coming to dinner tonight?"
    with demo(tmp_path, outside[0], SAMPLE, "own") as url, open_browser(tmp_path / "profile", 1100, 1090) as browser:
        browser.open(url)
        assert (browser.text("#model-0"), browser.text("#model-1")) == (SAMPLE, "own")
        receive(browser, message)
        browser.wait_for_text("#status-1", r"en \d+%.* ms")
        assert shown(browser, 0) == replies(SAMPLE, message, "en")
        assert shown(browser, 1) == replies(own, message, "en")
        assert set(shown(browser, 1)) == {"Certainly, see you tonight!", "Sorry, not tonight.", "Let me check."}
        photograph(browser, "demo_two_models.png")
        browser.click("#reply-1-0")
        browser.wait_for_text("#status-0", "^$")
        assert replies(own, message, "en")[0] in browser.text("#chat")
        assert browser.called() == [], "the page called somebody"
    assert outside[1] == [], "the server called somebody"


# --- the Space ------------------------------------------------------------------------------------------------------


def publish(hub: LoopbackHub, folder: Path, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "demo", "publish", *arguments]
    env = hub.env(folder / "publisher")
    return warm_python.run(command, cwd=folder, env=env)


def test_the_space_is_one_commit_and_runs_alone(
    hub: LoopbackHub, tmp_path: Path, outside: tuple[str, list[str]]
) -> None:
    """Its files are written to a folder and served as the hub does, `python app.py`."""
    done = publish(hub, tmp_path, ["org/suggestions"])
    assert done.returncode == 0, done.stderr
    space = hub.repo("space", "org/suggestions")
    assert len(space.commits()) == 2, "the hub's own first commit, and one of ours"
    assert done.stdout.startswith(f"published org/suggestions at {space.commits()[0].sha[:12]}")
    folder = tmp_path / "space"
    from mrs_suggest.serving.page.page_space import space_files

    own = {path.relative_to(folder_of()).as_posix(): path for path in folder_of().rglob("*") if path.is_file()}
    files = space_files("org/suggestions", {SAMPLE: own})
    assert set(space.files()) - {".gitattributes"} == set(files)
    for name, content in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content) if isinstance(content, bytes) else shutil.copy2(content, target)
    check = "import mrs_suggest.serving.page.page, sys; print(mrs_suggest.serving.page.page.__file__)"
    env = quiet_environment(tmp_path, outside[0])
    found = subprocess.run(
        [sys.executable, "-c", check], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == str(folder / "mrs_suggest" / "serving" / "page" / "page.py"), (
        "the Space must do without our package"
    )
    if importlib.util.find_spec("gradio") is None:
        pytest.skip("needs gradio: pip install '.[demo]'")
    with (
        running([sys.executable, "app.py"], PAGE_AT, cwd=folder, env=env) as url,
        open_browser(tmp_path / "profile") as browser,
    ):
        browser.open(url)
        receive(browser, "¿Quedamos mañana?")
        browser.wait_for_text("#status-0", r"es \d+%.* ms")
        assert shown(browser, 0) == replies(SAMPLE, "¿Quedamos mañana?", "es")
        assert browser.called() == [], "the page called somebody"
    assert outside[1] == [], "the server called somebody"


def folder_of() -> Path:
    return read_baselines()[SAMPLE].folder
