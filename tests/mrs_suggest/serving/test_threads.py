"""Threads of the arithmetic, and the cores that a server may use."""

import os
from pathlib import Path

import pytest

from mrs_suggest.serving.settings import usable_cores
from tests.cases import cases
from tests.mrs_suggest.serving.server_process import ServerProcess


@pytest.mark.parametrize(("files", "cores"), cases(__file__, "test_the_quota_of_a_container_bounds_the_cores"))
def test_the_quota_of_a_container_bounds_the_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], cores: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)))
    assert usable_cores(tmp_path, tmp_path / "missing") == 8, "a kernel without control groups has no quota"
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    (tmp_path / "own").write_text("1:cpu,cpuacct:/c\n0::/a.slice/b.service\n", encoding="ascii")
    assert usable_cores(tmp_path, tmp_path / "own") == cores


def test_more_threads_than_cores_are_warned_of(tmp_path: Path) -> None:
    wanted = usable_cores() + 1
    with ServerProcess("--threads", wanted, folder=tmp_path) as server:
        assert server.stop() == 0, "a server that is still loading leaves when it is asked to"
    assert any("more threads than cores" in line and f'"threads": {wanted}' in line for line in server.log)
