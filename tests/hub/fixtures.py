"""The fixture `hub`, for every test: `pytest_plugins = ["tests.hub.fixtures"]` in tests/conftest.py."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import warm_python

from .server import LoopbackHub

Client = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def hub_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path_factory.mktemp("hub")) as hub:
        yield hub


@pytest.fixture
def hub(hub_server: LoopbackHub) -> Iterator[LoopbackHub]:
    """An empty hub on 127.0.0.1 for one test (the server itself lives as long as the session)."""
    hub_server.reset()
    yield hub_server
    bugs = list(hub_server.bugs)
    hub_server.reset()
    assert not bugs, "\n".join(bugs)


@pytest.fixture
def hub_client(hub: LoopbackHub, tmp_path: Path) -> Client:
    """Return a function that runs Python source in a fresh process with a fresh cache, as a client of the hub.

    The process's folder is `tmp_path`; `home` names the cache (another name, another cache). The test fails with the
    process's output unless it ends well; no output may show the token.
    """

    def run(
        source: str, *arguments: object, home: str = "home", token: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        env = {**hub.env(tmp_path / home, token=token), "OMP_NUM_THREADS": "1"}
        done = warm_python.run([sys.executable, "-c", source, *arguments], cwd=tmp_path, env=env, timeout=timeout)
        assert hub.token not in done.stdout + done.stderr
        requests = "\n".join(map(str, hub.log[-40:]))
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr[-6000:]}\n{requests}"
        return done

    return run
