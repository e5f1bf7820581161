"""One server for all tests that only ask it."""

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi")

from tests.mrs_suggest.serving.server_process import ServerProcess


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a running server with the embedded model."""
    with ServerProcess(folder=tmp_path_factory.mktemp("server")) as process:
        process.wait_for_workers()
        yield process
