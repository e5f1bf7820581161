"""`mrs doctor` and `mrs --version`: what they print, their exit codes, and each check on what is there or broken."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mrs_suggest.cli import doctor, main
from mrs_suggest.cli.doctor import checks
from mrs_suggest.cli.doctor.checks import BROKEN, MISSING, NOTE, OK, Finding

HEAVY = ("torch", "transformers", "datasets", "evaluate", "pandas", "scipy", "sklearn", "accelerate", "pyarrow")


@pytest.mark.parametrize(("state", "code", "last"), [(BROKEN, 1, "1 broken: a\n"), (MISSING, 0, "is broken.\n")])
def test_the_exit_code_says_whether_something_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, code: int, last: str
) -> None:
    monkeypatch.setattr(doctor, "examine", lambda: {"hub": [Finding("a", state, "so"), Finding("b", OK, "\x1b")]})
    assert main.main(["doctor"]) == code
    out = capsys.readouterr().out
    assert out.endswith(last)
    assert f"  {state:<8}a" in out
    assert "\x1b" not in out
    assert main.main(["doctor", "--json"]) == code
    record = json.loads(capsys.readouterr().out)
    assert record["broken"] == code
    assert record["findings"][0] == {"area": "hub", "name": "a", "state": state, "says": "so"}


def test_this_installation_is_well_and_nothing_large_is_imported(tmp_path: Path) -> None:
    """Everything but torch, which is imported in a separate process."""
    code = f"""
import sys
from mrs_suggest.cli import doctor, main
del doctor.CHECKS[doctor.checks.accelerator]
code = main.main(["doctor", "--json"])
print(*sorted(set({HEAVY}) & set(sys.modules)))
sys.exit(code)"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    answer, loaded = done.stdout.splitlines()
    assert loaded == ""
    found = {finding["name"]: finding for finding in json.loads(answer)["findings"]}
    assert sys.executable in found["python"]["says"]
    assert found["everyday-retriever"]["state"] == OK


def test_a_check_that_fails_is_a_finding_of_its_own() -> None:
    def some_check() -> list[Finding]:
        raise RuntimeError("no such thing\nmore")

    says = "cannot be examined (RuntimeError: no such thing)"
    assert doctor.examine({some_check: "machine"}) == {"machine": [Finding("some check", BROKEN, says)]}


def test_the_version_for_people_and_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    from mrs_suggest.common import __version__

    assert main.main(["--version"]) == 0
    assert capsys.readouterr().out == f"mrs-suggest {__version__}\n"
    assert main.main(["--version", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [*record] == ["version", "python", "platform", "commit", "libraries"]
    assert record["version"] == __version__
    assert record["libraries"]["numpy"]


@pytest.mark.parametrize(
    ("words", "says"), [([], "arguments are required: verb"), (["--json", "data"], "--json requires")]
)
def test_no_verb_and_a_lost_option_are_refused(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(words)
    assert says in capsys.readouterr().err


# --- packages


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def plant(site: Path, name: str, version: str, *lines: str) -> None:
    """The metadata of an installed distribution."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    header = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: the project, with a base requirement and four extras."""
    wanted = ["base-x>=2", 'one-x>=1; extra == "one"', 'two-x>=1; extra == "two"', 'old-x>=3; extra == "old"']
    plant(
        tmp_path, "mrs-suggest", "7.8.9", "Requires-Python: >=3.11",
        *(f"Provides-Extra: {extra}" for extra in ("one", "two", "old", "most")),
        *(f"Requires-Dist: {line}" for line in [*wanted, 'mrs-suggest[one,two]; extra == "most"']),
    )  # fmt: skip
    plant(tmp_path, "base-x", "2.1")
    plant(tmp_path, "one-x", "1.5")
    plant(tmp_path, "old-x", "2.9")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_fits_is_told_with_its_version(site: Path) -> None:
    found = by_name(checks.base())
    assert [*found] == ["mrs-suggest", "python", "base-x"]
    assert {finding.state for finding in found.values()} == {OK}
    assert (found["mrs-suggest"].says, found["base-x"].says) == ("7.8.9", "2.1")


def test_an_old_requirement_of_the_base_is_broken(
    site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path_factory.mktemp("first")
    plant(first, "base-x", "1.9")
    monkeypatch.syspath_prepend(str(first))
    found = by_name(checks.base())["base-x"]
    says = "base-x 1.9 is installed, but mrs-suggest needs >=2; run `pip install 'base-x>=2'`"
    assert (found.state, found.says) == (BROKEN, says)


def test_a_missing_requirement_of_the_base_is_broken(site: Path) -> None:
    (site / "base_x-2.1.dist-info").rename(site / "elsewhere")
    importlib.invalidate_caches()
    found = by_name(checks.base())["base-x"]
    assert (found.state, found.says) == (BROKEN, "base-x is not installed; run `pip install 'base-x>=2'`")


def test_an_extra_is_installed_missing_or_broken(site: Path) -> None:
    found = {finding.name: (finding.state, finding.says) for finding in checks.extras()}
    assert found["one"] == (OK, "one-x 1.5")
    assert found["two"] == (MISSING, "needs two-x: pip install '.[two]' in a clone (docs/install.md)")
    assert found["most"] == (MISSING, "needs two-x: pip install '.[most]' in a clone (docs/install.md)")
    assert found["old"][0] == BROKEN
    assert "old-x 2.9 is installed, but mrs-suggest needs >=3" in found["old"][1]


# --- caches, the hub, and what is outside of Python


def test_the_caches_are_those_of_the_libraries() -> None:
    from mrs_suggest.common.hub.installed import caches as of_the_libraries

    assert [cache.root for cache in checks.default_caches()] == [cache.root for cache in of_the_libraries()]


def test_a_cache_is_told_with_its_size_and_what_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mrs" / "es" / "0.0.0" / ("0" * 16)
    folder.mkdir(parents=True)
    (folder / "data.arrow").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    (tmp_path / "mrs-suggest").mkdir()
    listed = tmp_path / "mrs-suggest" / "installed.json"
    listed.write_text(json.dumps({"folders": ["mrs/es/0.0.0/" + "0" * 16]}), encoding="utf-8")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    found = by_name(checks.caches())
    assert found["data sets"].says == f"{tmp_path}, 1 MB"
    assert found["data sets of `mrs install`"].says == "1 folders"
    monkeypatch.setattr(checks, "MOST_FILES", 1)
    assert ", at least 1 MB" in by_name(checks.caches())["data sets"].says
    (folder / "data.arrow").unlink()
    folder.rmdir()
    assert by_name(checks.caches())["data sets of `mrs install`"].state == BROKEN
    listed.write_text("{", encoding="utf-8")
    assert "damaged" in by_name(checks.caches())["data sets of `mrs install`"].says


def test_a_damaged_model_that_ships_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_suggest.common.errors import InputError

    def differs(folder: Path, verify: bool) -> int:
        raise InputError(f"{folder / 'model.safetensors'}: differs.")

    assert by_name(checks.shipped_models())["everyday-retriever"].state == OK
    monkeypatch.setattr(checks, "open_model_folder", differs)
    assert by_name(checks.shipped_models())["everyday-retriever"].state == BROKEN


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A hub on this machine that answers with the code in the list; asked for online."""
    answers = [200]

    class Hub(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.send_response(answers[0])
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hub) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        address = f"http://me:secret-word@127.0.0.1:{server.server_port}"
        monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", address.replace("me:secret-word@", ""))
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        yield answers
        server.shutdown()


@pytest.mark.parametrize(("code", "state"), [(200, OK), (404, OK), (503, NOTE)])
def test_a_hub_is_reached_where_it_answers(hub: list[int], code: int, state: str) -> None:
    hub[0] = code
    assert by_name(checks.hub())["connection"].state == state


def test_offline_asks_nobody_and_a_silent_hub_is_a_note(hub: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://me:secret-word@127.0.0.1:9")
    found = by_name(checks.hub())["connection"]
    assert found.state == NOTE
    assert "cannot be reached" in found.says
    assert "secret-word" not in repr(found)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in by_name(checks.hub())["connection"].says


def test_a_token_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    found = by_name(checks.hub())["token"]
    assert found.says == "present"
    assert "hf_secret" not in repr(found)


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "state", "says"),
    [
        ("echo 'openjdk version \"21.0.2\" 2024-01-16' >&2", OK, "21 ("),
        ("echo 'java version \"1.8.0_392\"' >&2", NOTE, "8 ("),
        ("exit 3", BROKEN, "does not start"),
    ],
)
def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, state: str, says: str) -> None:
    program(tmp_path / "bin" / "java", text)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (found,) = checks.java()
    assert found.state == state
    assert says in found.says


def test_no_java_is_missing_and_a_wrong_home_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert checks.java()[0].state == MISSING
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert checks.java()[0].state == BROKEN


@pytest.mark.parametrize(
    ("answer", "state", "says"),
    [
        ({"cuda": [], "mps": False, "bf16": False}, OK, "none; torch uses the processor"),
        ({"cuda": ["H1"], "mps": False, "bf16": True}, OK, "CUDA 12.6: H1; bf16 yes"),
        (None, BROKEN, "torch is installed, but cannot be imported (undefined symbol: x)"),
    ],
)
def test_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object] | None, state: str, says: str
) -> None:
    told = json.dumps({"version": "9.9", "built_for_cuda": "12.6", **(answer or {})})
    text = f"print({told!r})" if answer else "raise ImportError('undefined symbol: x')"
    monkeypatch.setattr(checks, "TORCH", text.replace("raise ImportError", "import sys; sys.exit"))
    (found,) = checks.accelerator()
    assert found.state == state
    assert found.says.startswith(says)


def test_the_language_model_is_there_absent_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRS_LANGUAGE_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert checks.language_model()[0].state == MISSING
    path = tmp_path / "mrs-suggest" / "lid.176.ftz"
    path.parent.mkdir()
    path.write_bytes(b"<html>")
    assert checks.language_model()[0].state == BROKEN
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", str(tmp_path / "other"))
    assert "MRS_LANGUAGE_MODEL names" in checks.language_model()[0].says


def test_a_language_model_that_loads_is_ok(lid_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", str(lid_model))
    assert checks.language_model()[0].state == OK


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_and_cores() -> None:
    found = by_name(checks.memory())
    assert found["cores"].says == str(len(os.sched_getaffinity(0)))
    assert found["memory"].says.endswith(" of it available")
