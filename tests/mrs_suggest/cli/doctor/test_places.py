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

from mrs_suggest.cli.doctor import caches, examination, machine
from mrs_suggest.cli.doctor.caches import check_caches, default_caches, folder_bytes
from mrs_suggest.cli.doctor.finding import BROKEN, MISSING, NOTE, OK, Finding
from mrs_suggest.cli.doctor.hub_check import check_hub


def by_name(findings: list[Finding]) -> dict[str, Finding]:
    return {finding.name: finding for finding in findings}


def test_the_caches_are_those_of_the_libraries() -> None:
    from mrs_suggest.common.hub.installed import caches as of_the_libraries

    assert [cache.root for cache in default_caches()] == [cache.root for cache in of_the_libraries()]


def test_a_cache_is_told_with_its_size_and_what_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "mrs" / "es" / "0.0.0" / ("0" * 16)
    folder.mkdir(parents=True)
    (folder / "data.arrow").write_bytes(bytes(1000))
    (tmp_path / "link").symlink_to(folder, target_is_directory=True)
    (tmp_path / "mrs-suggest").mkdir()
    listed = tmp_path / "mrs-suggest" / "installed.json"
    listed.write_text(json.dumps({"folders": ["mrs/es/0.0.0/" + "0" * 16]}), encoding="utf-8")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    found = by_name(check_caches())
    assert found["data sets"].facts["bytes"] == 1000 + listed.stat().st_size
    assert found["data sets of `mrs install`"].says == "1 folders"
    assert found["sample-retriever"].state == OK
    (folder / "data.arrow").unlink()
    folder.rmdir()
    assert by_name(check_caches())["data sets of `mrs install`"].state == BROKEN
    listed.write_text("{", encoding="utf-8")
    assert "damaged" in by_name(check_caches())["data sets of `mrs install`"].says


def test_a_large_cache_is_not_counted_to_the_end(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).write_bytes(bytes(10))
    assert folder_bytes(tmp_path) == (50, True)
    assert folder_bytes(tmp_path, most_files=5) == (50, True)
    assert folder_bytes(tmp_path, most_files=4) == (40, False)


def test_a_damaged_model_that_ships_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_suggest.common.errors import InputError

    def differs(folder: Path, verify: bool) -> int:
        raise InputError(f"{folder / 'model.safetensors'}: differs.")

    monkeypatch.setattr(caches, "require_undamaged", differs)
    assert by_name(check_caches())["sample-retriever"].state == BROKEN


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
    assert by_name(check_hub())["connection"].state == state


def test_offline_asks_nobody_and_a_silent_hub_is_a_note(hub: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://me:secret-word@127.0.0.1:9")
    found = by_name(check_hub())["connection"]
    assert (found.state, found.facts["reachable"]) == (NOTE, False)
    assert "secret-word" not in repr(found)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in by_name(check_hub())["connection"].says


def test_a_token_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    found = by_name(check_hub())["token"]
    assert found.facts == {"present": True}
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
    (found,) = machine.check_java()
    assert found.state == state
    assert says in found.says


def test_no_java_is_missing_and_a_wrong_home_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.check_java()[0].state == MISSING
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert machine.check_java()[0].state == BROKEN


@pytest.mark.parametrize(
    ("answer", "state", "says"),
    [
        ({"cuda": [], "mps": False, "bf16": False}, OK, "none; torch computes on the processor"),
        ({"cuda": ["H1"], "mps": False, "bf16": True}, OK, "CUDA 12.6: H1; bf16 yes"),
        (None, BROKEN, "torch is installed, but does not import (undefined symbol: x)"),
    ],
)
def test_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object] | None, state: str, says: str
) -> None:
    told = json.dumps({"version": "9.9", "built_for_cuda": "12.6", **(answer or {})})
    text = f"print({told!r})" if answer else "raise ImportError('undefined symbol: x')"
    monkeypatch.setattr(machine, "TORCH", text.replace("raise ImportError", "import sys; sys.exit"))
    (found,) = machine.check_torch()
    assert found.state == state
    assert found.says.startswith(says)


def test_the_language_model_is_there_absent_or_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MRS_LANGUAGE_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert machine.check_language_model()[0].state == MISSING
    path = tmp_path / "mrs-suggest" / "lid.176.ftz"
    path.parent.mkdir()
    path.write_bytes(b"<html>")
    assert machine.check_language_model()[0].state == BROKEN
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", str(tmp_path / "other"))
    assert "MRS_LANGUAGE_MODEL names" in machine.check_language_model()[0].says


def test_a_language_model_that_loads_is_ok(lid_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MRS_LANGUAGE_MODEL", str(lid_model))
    assert machine.check_language_model()[0].state == OK


def test_a_check_that_fails_is_a_finding_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> list[Finding]:
        raise RuntimeError("no such thing\nmore")

    monkeypatch.setattr(machine, "check_memory", fails)
    (found,) = examination.examine([("machine", "machine", "check_memory")])
    assert (found.state, found.says) == (BROKEN, "cannot be examined (RuntimeError: no such thing)")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_and_cores() -> None:
    found = by_name(machine.check_memory())
    assert found["cores"].facts["cores"] == len(os.sched_getaffinity(0))
    available = found["memory"].facts["available_bytes"]
    assert isinstance(available, int)
    assert available > 1_000_000
