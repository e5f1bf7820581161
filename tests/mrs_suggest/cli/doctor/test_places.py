"""Caches, the hub, and what is outside of Python packages: each can be there, absent or broken."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mrs_suggest.cli.doctor import checks
from mrs_suggest.cli.doctor.checks import BROKEN, MISSING, NOTE, OK, Finding


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


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

    assert by_name(checks.shipped_models())["sample-retriever"].state == OK
    monkeypatch.setattr(checks, "open_model_folder", differs)
    assert by_name(checks.shipped_models())["sample-retriever"].state == BROKEN


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
