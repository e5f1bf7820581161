"""Locations: local paths and remote ones do the same, whole or not at all, and tell no secrets."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io.remote import RemotePath
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.io.storage import (
    Location,
    atomic_target,
    files_below,
    find_files,
    local_file,
    location,
    open_arrow,
    open_stream,
    publish,
    remove,
    require_writable,
    size,
    write_text,
)
from tests.file_server import served

DATA = bytes(range(256)) * 3000


@pytest.fixture
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a server of one file, `RC_1`; its parameters are those of `served`."""
    (tmp_path / "RC_1").write_bytes(DATA)
    with served(tmp_path, **getattr(request, "param", {})) as url:
        yield url


@pytest.fixture(params=["path", "file", "memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """An empty folder, in three storages."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    if request.param == "path":
        (tmp_path / "folder").mkdir()
        yield tmp_path / "folder"
        return
    url = f"file://{tmp_path}/folder" if request.param == "file" else f"memory://{tmp_path}/folder"
    found = location(url, scratch)
    assert isinstance(found, RemotePath)
    found.mkdir()
    yield found
    assert list(scratch.iterdir()) == []
    if found.exists():
        remove(found)


def test_a_file_is_written_read_and_removed(folder: Location) -> None:
    path = folder / "a" / "b.tar.gz"
    path.parent.mkdir()
    assert (path.name, path.stem, path.suffix) == ("b.tar.gz", "b.tar", ".gz")
    assert path.with_suffix(".x").name == "b.tar.x"
    with local_file(path) as temporary:
        temporary.write_bytes(DATA)
        assert not path.exists()
        publish(temporary, path)
    with open_stream(path) as file:
        assert file.read(5) == DATA[:5]
        file.seek(0)
        assert file.read() == DATA
        assert file.tell() == len(DATA)
    with open_arrow(path) as source:
        source.seek(1000)
        assert source.read(7) == DATA[1000:1007]
    assert size(path) == len(DATA)
    write_text(folder / "c.json", "{}\n")
    write_text(folder / "c.json", "é\n")
    assert (folder / "c.json").read_text(encoding="utf-8") == "é\n"
    assert sorted(str(path) for path in files_below(folder)) == [f"{folder}/a/b.tar.gz", f"{folder}/c.json"]
    assert sorted(path.name for path in folder.iterdir()) == ["a", "c.json"]
    assert [path.is_file(), path.is_dir(), path.parent.is_dir()] == [True, False, True]
    path.unlink()
    path.unlink(missing_ok=True)
    remove(folder)
    assert not folder.exists()


def test_a_file_that_fails_leaves_nothing(folder: Location) -> None:
    path = folder / "a"

    def broken() -> None:
        with local_file(path) as temporary:
            temporary.write_bytes(DATA)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert files_below(folder) == []
    with pytest.raises(OSError, match="No such file"):
        open_stream(path)
    with pytest.raises(OSError, match="No such file"):
        open_arrow(path)
    with pytest.raises(OSError, match="No such file"):
        size(path)
    write_text(path, "x")
    with pytest.raises(OSError, match=r"."):
        write_text(path / "below", "a file is no folder")
    assert [path.name for path in files_below(folder)] == ["a"]


def test_a_folder_is_replaced_whole_or_not_at_all(folder: Location) -> None:
    target = folder / "set"

    def fill(text: str, overwrite: bool = False, error: type[Exception] | None = None) -> None:
        with atomic_target(target, overwrite, "marker") as there:
            (there / "data").mkdir()
            (there / "data" / text).write_text(text)
            (there / "marker").write_text(text)
            if error:
                raise error

    with pytest.raises(ZeroDivisionError):
        fill("a", error=ZeroDivisionError)
    assert files_below(folder) == []
    fill("a")
    with pytest.raises(InputError, match="exists already"):
        fill("b")
    with pytest.raises(ZeroDivisionError):
        fill("b", overwrite=True, error=ZeroDivisionError)
    assert (target / "marker").read_text() == "a"
    fill("b", overwrite=True)
    assert sorted(str(path) for path in files_below(folder)) == [f"{target}/data/b", f"{target}/marker"]
    (target / "marker").unlink()
    with pytest.raises(InputError, match=r"does not look like mrs-suggest output \(no marker\)"):
        fill("c", overwrite=True)


def test_sending_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = location(f"file://{tmp_path}/there", tmp_path)
    assert isinstance(there, RemotePath)
    there.mkdir()

    def half(source: str, target: str, **_: Any) -> None:
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device", target)

    monkeypatch.setattr(type(there.filesystem), "put_file", staticmethod(half))
    with local_file(there / "a") as temporary:
        temporary.write_bytes(DATA)
        with pytest.raises(RemoteError, match="No space left") as told:
            publish(temporary, there / "a")
    assert told.value.errno == 28
    assert told.value.filename == f"{there}/a"
    words = r"set: cannot be written \(No space left on device\); check the storage"
    with pytest.raises(InputError, match=words), atomic_target(there / "set", False, "marker") as folder:
        (folder / "marker").touch()
    assert files_below(there) == []


def test_files_over_http(server: str) -> None:
    (path,) = find_files(f"{server}/RC_1?token=secret")
    assert (path.name, size(path)) == ("RC_1", len(DATA))
    assert "secret" not in f"{path} {path!r}"
    with open_stream(path) as file:
        assert file.read() == DATA
    with open_arrow(path) as source:
        source.seek(500_000)
        assert source.read(9) == DATA[500_000:500_009]
    assert find_files(f"{server}/RC_2") == []
    with pytest.raises(InputError, match="cannot list files; pass the URL of each"):
        find_files(f"{server}/RC_*")
    with pytest.raises(InputError, match="HTTP is read-only"):
        require_writable(path)
    with pytest.raises(InputError, match="cannot be reached"):
        find_files("http://127.0.0.1:1/RC_1")


@pytest.mark.parametrize("server", [{"ranges": False}], indirect=True)
def test_a_server_without_ranges_is_told_of(server: str) -> None:
    (path,) = find_files(f"{server}/RC_1")
    with open_arrow(path) as source, pytest.raises(RemoteError, match="does not send parts of a file"):
        source.seek(500_000)
        source.read(9)


@pytest.mark.parametrize("server", [{"status": 403}, {"status": 500}], indirect=True)
def test_a_server_that_refuses_is_no_missing_file(server: str) -> None:
    with pytest.raises(InputError, match=r"RC_1\?\*\*\*: cannot be reached \((403|500)") as told:
        find_files(f"{server}/RC_1?token=secret")
    assert "secret" not in str(told.value)


def test_an_unknown_protocol_is_one_sentence_without_secrets() -> None:
    for url, words in (
        ("foo://me:secret@host/a", "does not know the protocol 'foo'; pass a local path, or a URL such as s3://"),
        ("foo://host/a?token=secret", r"foo://host/a\?\*\*\*: fsspec does not know the protocol"),
    ):
        with pytest.raises(InputError, match=words) as told:
            location(url)
        assert "secret" not in str(told.value)
    told = masked("GET 'https://me:p@ss@h/a?X-Amz-Signature=1&b=2', s3://k:v@b, plain a@b.c?")
    assert told == "GET 'https://***@h/a?***', s3://***@b, plain a@b.c?"


@pytest.mark.parametrize("url", ["memory://", "memory://a/*/b", "memory://a[1]"])
def test_a_remote_folder_needs_a_plain_name(url: str) -> None:
    with pytest.raises(InputError, match=r"does not name a folder|may have no \*"):
        require_writable(location(url))


def test_arrow_files_are_read_from_any_storage(folder: Location) -> None:
    table, path = pa.table({"a": list(range(10_000))}), folder / "a.arrow"
    with local_file(path) as temporary:
        with pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
        publish(temporary, path)
    with open_arrow(path) as source:
        assert pa.ipc.open_file(source).get_batch(7)["a"][0].as_py() == 7000
