"""Pages in Debian's Chromium: a server in a process of its own, a WebDriver client, and nobody else to call."""

import base64
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

OWN = re.compile(r"(http|ws)s?://(127\.0\.0\.1|localhost)[:/]|file:///")  # addresses on this machine
SECONDS = 120  # until a program must be ready; a few on an idle machine
SERVED_AT = r"Running on local URL: +(http://127\.0\.0\.1:\d+)"  # what gradio prints


@pytest.fixture
def outside() -> Iterator[tuple[str, list[str]]]:
    """A proxy that lets nothing through and writes down who was to be called: (address, requests)."""
    called: list[str] = []

    class Refuse(BaseHTTPRequestHandler):
        def _refuse(self) -> None:
            called.append(f"{self.command} {self.path}")
            self.send_error(403)

        do_GET = do_HEAD = do_POST = do_PUT = do_CONNECT = _refuse  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Refuse) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", called
        server.shutdown()
        thread.join()


@contextmanager
def running(command: list[str], ready: str, **options: Any) -> Iterator[str]:
    """Start a program; yield the group of the pattern `ready` once a line of its output has it; stop the program."""
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, encoding="utf-8", **options
    )
    watchdog = threading.Timer(SECONDS, process.kill)
    watchdog.start()
    assert process.stdout is not None
    lines: list[str] = []
    try:
        for line in process.stdout:
            lines.append(line)
            if found := re.search(ready, line):
                watchdog.cancel()
                drain = threading.Thread(target=lines.extend, args=(process.stdout,), daemon=True)
                drain.start()
                yield found[1]
                return
        pytest.fail(f"{command} ended: {''.join(lines)}")
    finally:
        watchdog.cancel()
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def quiet_environment(folder: Path, proxy: str) -> dict[str, str]:
    """The environment of a page's server: caches below `folder`, and a proxy for all who are not on this machine."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("GRADIO_", "PYTHON"))}
    return {
        **kept, "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1", "GRADIO_TEMP_DIR": str(folder / "gradio"),
        "HF_HOME": str(folder / "home"), "HF_MODULES_CACHE": str(folder / "modules"),
        **{f"{scheme}_PROXY": proxy for scheme in ("HTTP", "HTTPS", "ALL")},
        **{f"{scheme}_proxy": proxy for scheme in ("http", "https", "all")}, "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }  # fmt: skip


def ask(url: str, body: object = None, method: str | None = None) -> str:
    """Send a JSON request to a program on this machine and return what it says."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=60) as reply:
        return str(reply.read().decode())


class Browser:
    """As much of a WebDriver client as the tests need."""

    element = "element-6066-11e4-a52e-4f735466cecf"  # the standard's key of an element

    def __init__(self, driver: str, chromium: str, profile: Path, width: int = 1100, height: int = 950) -> None:
        flags = [
            "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
            f"--user-data-dir={profile}", "--no-proxy-server", f"--window-size={width},{height}", "--hide-scrollbars",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ]  # fmt: skip
        options = {
            "goog:chromeOptions": {"binary": chromium, "args": flags},
            "goog:loggingPrefs": {"performance": "ALL"},
            "timeouts": {"implicit": 20_000},
        }
        opened = self._say(f"{driver}/session", {"capabilities": {"alwaysMatch": options}})
        self.session = f"{driver}/session/{opened['sessionId']}"

    def _say(self, url: str, body: object = None, method: str | None = None) -> Any:
        return json.loads(ask(url, body, method))["value"]

    def open(self, url: str) -> None:
        self._say(f"{self.session}/url", {"url": url})
        self._wait_for_paint()

    def reload(self) -> None:
        self._say(f"{self.session}/refresh", {})
        self._wait_for_paint()

    def _wait_for_paint(self) -> None:
        """Wait until the page is drawn: Chromium drops keys and clicks that come before, even after `load`."""
        script = "const [done] = arguments; requestAnimationFrame(() => requestAnimationFrame(() => done(1)));"
        self._say(f"{self.session}/execute/async", {"script": script, "args": []})

    def find(self, css: str) -> str:
        """Wait for an element and return its address."""
        found = self._say(f"{self.session}/element", {"using": "css selector", "value": css})
        return f"{self.session}/element/{found[self.element]}"

    def type(self, css: str, text: str) -> None:
        self._say(f"{self.find(css)}/value", {"text": text})

    def click(self, css: str) -> None:
        self._say(f"{self.find(css)}/click", {})

    def wait_for_value(self, css: str) -> str:
        """Wait until a box of the page has a text in it, and return that."""
        script = """
            const [css, done] = arguments;
            const look = () => {
                const box = document.querySelector(css);
                box && box.value ? done(box.value) : setTimeout(look, 50);
            };
            look();"""
        return str(self._say(f"{self.session}/execute/async", {"script": script, "args": [css]}))

    def text(self, css: str) -> str:
        return str(self._say(f"{self.find(css)}/text"))

    def wait_for_text(self, css: str, pattern: str) -> str:
        """Wait until the text of an element matches a regular expression, and return the text."""
        deadline = time.monotonic() + 30
        while not re.search(pattern, text := self.text(css)):
            assert time.monotonic() < deadline, f"{css} does not become {pattern!r}: {text!r}"
            time.sleep(0.1)
        return text

    def called(self) -> list[str]:
        """Return the addresses, beside this machine's, that the page has asked for since the last call.

        Chromium's own requests (updates, accounts, its first tab) are not the page's.
        """
        entries = self._say(f"{self.session}/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        urls = [str(each["request"]["url"]) for each in sent if OWN.match(each["documentURL"])]
        assert urls, "the log has no request of the page, not even its own"
        return [url for url in urls if not OWN.match(url) and not url.startswith(("data:", "blob:"))]

    def press(self, keys: str) -> None:
        """Press keys, one after the other, in whatever has the focus."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._say(f"{self.session}/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def script(self, script: str, *arguments: object) -> Any:
        """Run a function's body in the page and return what it returns."""
        return self._say(f"{self.session}/execute/sync", {"script": script, "args": arguments})

    def devtools(self, command: str, **parameters: object) -> Any:
        """A command of Chromium's own protocol."""
        return self._say(f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def download_to(self, folder: Path) -> None:
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(folder))

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """Show pages as on a screen of this size, in CSS pixels; `mobile`: with touch, without a mouse."""
        self.devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile
        )
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=mobile)

    def answer_prompt(self, accept: bool) -> str:
        """Wait for a prompt of the page, accept or dismiss it; return what it asks."""
        deadline = time.monotonic() + 30
        while True:
            try:
                asked = str(self._say(f"{self.session}/alert/text"))
                break
            except urllib.error.HTTPError as error:
                if error.code != 404 or time.monotonic() > deadline:  # 404: no prompt so far
                    raise
                time.sleep(0.05)
        self._say(f"{self.session}/alert/{'accept' if accept else 'dismiss'}", {})
        return asked

    def screenshot(self) -> bytes:
        return base64.b64decode(self._say(f"{self.session}/screenshot"))

    def close(self) -> None:
        self._say(self.session, method="DELETE")


@contextmanager
def open_browser(profile: Path, width: int = 1100, height: int = 950) -> Iterator[Browser]:
    """A headless Chromium; skips the test where there is none."""
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("needs Debian's packages chromium and chromium-driver")
    with running([chromedriver, "--port=0"], r"ChromeDriver was started successfully on port (\d+)") as port:
        browser = Browser(f"http://127.0.0.1:{port}", chromium, profile, width, height)
        try:
            yield browser
        finally:
            browser.close()
