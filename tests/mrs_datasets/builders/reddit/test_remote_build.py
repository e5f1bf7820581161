"""Builds from and to storages of fsspec, in this process."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.builders.pipeline.stages import Workers, read_codes
from mrs_datasets.builders.reddit import months as months_stage
from mrs_datasets.builders.reddit import write
from mrs_datasets.builders.reddit.build import build
from mrs_datasets.builders.reddit.plan import Settings, find_dumps, make_build_plan, make_settings
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location, files_below, location
from mrs_suggest.common.text.language_id import LanguageIdentifier
from tests.dumps import leftovers, write_months

FEW = {"min_examples": 100, "min_reply_count": 2, "buckets": 3}


class Stub:
    """A language model that looks at lengths alone, so that there are two languages."""

    def identify(self, texts: list[str]) -> list[tuple[str, float]]:
        return [("en" if len(text) % 3 else "de", 0.9) for text in texts]


@pytest.fixture(autouse=True)
def _stub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanguageIdentifier, "open", lambda _: Stub())


@pytest.fixture(autouse=True)
def memory() -> Iterator[Any]:
    """fsspec's storage in memory, empty."""
    from fsspec.implementations.memory import MemoryFileSystem

    filesystem = MemoryFileSystem()
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]
    yield filesystem
    filesystem.store.clear()
    filesystem.pseudo_dirs[:] = [""]


@pytest.fixture
def months(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    return write_months(folder, 2500)


def make(out: Location, model: Path, dumps: str, settings: Settings, **options: Any) -> dict[str, Any]:
    plan = make_build_plan(find_dumps([dumps]), out, 1, 8 * 10**9, settings.buckets)
    return build(plan, out, settings, model, say=lambda _: None, **options)


def contents(folder: Location) -> dict[str, bytes]:
    """Every file of a folder by its path in it."""
    root = str(folder)
    return {
        str(path)[len(root) + 1 :]: path.read_bytes() if isinstance(path, Path) else path.filesystem.cat_file(path.path)
        for path in files_below(folder)
    }


def send(memory: Any, folder: Path) -> None:
    for path in folder.iterdir():
        memory.pipe_file(f"/dumps/{path.name}", path.read_bytes())


@contextmanager
def failing(memory: Any, name: str, error: OSError) -> Iterator[None]:
    """A storage that breaks off half-way through each file whose path contains `name`."""
    put = memory.put_file

    def put_file(source: str, target: str, **named: Any) -> None:
        if name in target:
            memory.pipe_file(target, b"half")
            raise error
        put(source, target, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(memory), "put_file", staticmethod(put_file))
        yield


@pytest.mark.parametrize("profile", ["paper", "clean"])
@pytest.mark.parametrize("groups", [1, 256])
def test_a_build_in_memory_is_the_local_one(
    profile: str, groups: int, tmp_path: Path, model: Path, months: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrs_datasets.builders.reddit.partition.GROUPS", groups)
    monkeypatch.setattr("mrs_datasets.builders.reddit.partition.partition.__defaults__", (1 << 16,))
    settings = make_settings(profile, **FEW)
    report = make(tmp_path / "local", model, f"{months}/RC_*.zst", settings)
    send(memory, months)
    scratch = tmp_path / "scratch"
    out, read = location("memory://sets/mrs", scratch), list[str]()
    monkeypatch.setattr(write, "read_codes", lambda path, rows: read.append(path.name) or read_codes(path, rows))
    assert make(out, model, "memory://dumps/RC_*.zst", settings, engine=Workers(1)) == report
    assert sorted(read) == (["de.npy", "en.npy"] if profile == "clean" else [])  # once, not for every bucket
    assert contents(out) == contents(tmp_path / "local")
    assert "data/en/train-00000-of-00001.parquet" in contents(out)
    assert [path for path in memory.store if not path.startswith(("/dumps/", "/sets/mrs/"))] == []
    assert leftovers(scratch) == []


def test_a_build_that_was_cut_off_is_resumed(
    tmp_path: Path, model: Path, months: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings("clean", **FEW)
    make(tmp_path / "local", model, f"{months}/RC_*.zst", settings)
    out, dumps = location("memory://mrs", tmp_path / "scratch"), f"{months}/RC_*.zst"
    told = r"bucket-00001\.arrow: cannot be written \(the storage is full\)"
    with failing(memory, "bucket-00001.arrow", OSError("the storage is full")), pytest.raises(InputError, match=told):
        make(out, model, dumps, settings)
    done = [path for path in memory.store if path.endswith(".arrow")]
    assert len(done) == 3  # both months, and a bucket
    assert [path for path in memory.store if "partial" in path or "00001.arrow" in path] == []
    with pytest.raises(InputError, match="holds an interrupted build; pass --resume"):
        make(out, model, dumps, settings)
    monkeypatch.setattr(months_stage, "month_shard", lambda *_: 1 / 0)  # months are not read again
    make(out, model, dumps, settings, resume=True)
    assert contents(out) == contents(tmp_path / "local")
    assert leftovers(tmp_path / "scratch") == []


def test_sending_the_data_set_that_fails_leaves_nothing_of_it(
    tmp_path: Path, model: Path, months: Path, memory: Any
) -> None:
    settings = make_settings("paper", **FEW)
    out, dumps = location("memory://mrs", tmp_path / "scratch"), f"{months}/RC_*.zst"
    told = r"memory:///mrs: cannot be written \(gone\).* continue with --resume"
    with failing(memory, "report.html", ConnectionError("gone")), pytest.raises(InputError, match=told):
        make(out, model, dumps, settings)
    assert not out.exists()
    memory.pipe_file("/mrs/.mrs-unfinished", b"")  # as a kill leaves it
    memory.pipe_file("/mrs/data/en/old.parquet", b"half")
    make(out, model, dumps, settings, resume=True)
    assert {"report.json", "report.html", "README.md"} <= set(contents(out))
    assert "data/en/old.parquet" not in contents(out)
    assert ".mrs-unfinished" not in contents(out)


def test_an_existing_folder_is_replaced_on_request(
    tmp_path: Path, model: Path, months: Path, memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings("paper", **FEW)
    out, dumps = location("memory://mrs", tmp_path / "scratch"), f"{months}/RC_*.zst"
    memory.pipe_file("/mrs/letter.txt", b"dear")
    with pytest.raises(InputError, match="exists already"):
        make(out, model, dumps, settings)
    with pytest.raises(InputError, match=r"does not look like .* \(no report\.json\)"):
        make(out, model, dumps, settings, overwrite=True)
    memory.pipe_file("/mrs/report.json", b"{}")
    make(out, model, dumps, settings, overwrite=True)
    assert "letter.txt" not in contents(out)
    rm = memory.rm

    def stays(path: str, **named: Any) -> None:
        if path.startswith("/mrs"):
            raise PermissionError(13, "Permission denied")
        rm(path, **named)

    with monkeypatch.context() as patch:
        patch.setattr(type(memory), "rm", staticmethod(stays))
        patch.setattr(type(memory), "mv", lambda self, a, b: (self.cp_file(a, b), self.rm_file(a)))
        with pytest.raises(InputError, match=r"cannot be written \(Permission denied\).* continue with --resume"):
            make(out, model, dumps, settings, overwrite=True)
    assert ".mrs-unfinished" in contents(out)
    make(out, model, dumps, settings, resume=True)
    assert ".mrs-unfinished" not in contents(out)
    assert make(out, model, dumps, settings, resume=True) == json.loads(contents(out)["report.json"])


def test_impossible_builds_are_refused(tmp_path: Path, model: Path, months: Path) -> None:
    settings, files = make_settings("paper", **FEW), find_dumps([f"{months}/RC_*.zst"])
    plan = make_build_plan(files, tmp_path / "out", 1, 8 * 10**9, 3)
    with pytest.raises(InputError, match="a remote folder needs a local one .* pass --scratch"):
        build(plan, location("memory://mrs"), settings, model)
    two = make_build_plan(files, tmp_path / "out", 2, 20 * 10**9, 3)
    if two.workers > 1:
        with pytest.raises(InputError, match="only in this process's memory; pass --workers 1"):
            build(two, location("memory://mrs", tmp_path), settings, model)
    with pytest.raises(InputError, match="no such file; pass monthly dumps"):
        find_dumps(["memory://dumps/RC_*"])


def test_credentials_are_in_no_message(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for url in ("foo://me:secret@host/RC_*", "http://me:secret@127.0.0.1:1/RC_1.zst?token=secret"):
        with pytest.raises(InputError) as told:
            find_dumps([url])
        assert "secret" not in str(told.value)
        assert "***@" in str(told.value)
    assert "secret" not in "".join(record.message for record in caplog.records if record.name.startswith("mrs"))
