"""Reading across a network that breaks: on at the same byte, a bounded number of times, and only in the same file."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mrs_suggest.common.errors import RemoteError
from mrs_suggest.common.io.remote import RemotePath
from mrs_suggest.common.io.remote_errors import TRIES
from mrs_suggest.common.io.storage import location, open_arrow, open_stream
from tests.file_server import CUT, served

Faults = list[int | None]
DATA = bytes(os.urandom(1 << 16)) * 200  # 12.5 MiB: fsspec reads 5 ahead


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the waits between tries, none of which is waited for."""
    found: list[float] = []
    monkeypatch.setattr("mrs_suggest.common.io.remote_errors.sleep", found.append)
    return found


@pytest.fixture
def faults() -> Faults:
    return []


@pytest.fixture
def path(tmp_path: Path, faults: Faults, waits: list[float]) -> Iterator[RemotePath]:
    """A file on a server with faults."""
    (tmp_path / "RC_1").write_bytes(DATA)
    with served(tmp_path, faults=faults) as url:
        found = location(f"{url}/RC_1?token=secret")
        assert isinstance(found, RemotePath)
        yield found


def test_reading_goes_on_where_the_connection_broke(path: RemotePath, faults: Faults, waits: list[float]) -> None:
    with open_stream(path) as file:
        found = file.read(3_000_000)
        faults += [CUT, 503, 429, None, CUT]
        assert found + file.read() == DATA
        assert file.tell() == len(DATA)
    assert (faults, waits) == ([], [0.5, 1.0, 2.0, 0.5]), "the count begins again after a read that succeeds"
    faults += [CUT, 500]
    with open_arrow(path) as source:
        source.seek(7_000_000)
        assert source.read(70_000) == DATA[7_000_000:7_070_000]
    assert faults == []


def test_a_break_that_stays_is_told_after_some_tries(path: RemotePath, faults: Faults, waits: list[float]) -> None:
    with open_stream(path) as file:
        file.read(10)
        faults += [503] * 100
        with pytest.raises(RemoteError, match=rf"503.*, {TRIES} times$") as told:
            file.read()
    assert waits == [0.5 * 2**n for n in range(TRIES - 1)]
    assert "secret" not in f"{told.value} {told.value.filename}"


@pytest.mark.parametrize("status", [403, 404, 410])
def test_a_refusal_is_told_at_once(path: RemotePath, faults: Faults, waits: list[float], status: int) -> None:
    with open_stream(path) as file:
        file.read(10)
        faults += [status]
        with pytest.raises(RemoteError):
            file.read()
    assert waits == []


@pytest.mark.parametrize("size", [len(DATA), 9_000_000])
@pytest.mark.parametrize("broken", [True, False])
def test_a_file_that_changed_is_refused(
    path: RemotePath, faults: Faults, tmp_path: Path, size: int, broken: bool
) -> None:
    with open_stream(path) as file:
        file.read(10)
        (tmp_path / "RC_1").write_bytes(bytes(size))
        os.utime(tmp_path / "RC_1", ns=(1, 1))
        faults += [CUT] if broken else []
        with pytest.raises(RemoteError, match="the file changed while it was read"):
            file.read()
