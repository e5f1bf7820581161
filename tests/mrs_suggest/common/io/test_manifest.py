"""Whether a model's files are those that were written, by sizes and hashes."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import drop_damaged
from mrs_suggest.common.io import manifest
from mrs_suggest.common.io.manifest import again, list_files, require_undamaged
from tests.cases import cases

CONTENTS = {"model.safetensors": b"weights" * 10, "query/config.json": b"{}"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model of two files with its record."""
    for name, data in CONTENTS.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    write(tmp_path, {"files": list_files(tmp_path, [tmp_path / name for name in CONTENTS])})
    return tmp_path


def write(folder: Path, record: Any) -> None:
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")


def test_whole_files_pass(folder: Path) -> None:
    assert require_undamaged(folder) == require_undamaged(folder, verify=True) == 2


FILE = "model.safetensors"
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "cut": (lambda path: path.write_bytes(CONTENTS[FILE][:-1]), "expected 70 bytes, found 69"),
    "one bit": (lambda path: path.write_bytes(b"Weights" + CONTENTS[FILE][7:]), "its SHA-256 is not the one in run"),
    "missing": (Path.unlink, "missing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_another_file_is_refused(folder: Path, damage: str) -> None:
    change, named = DAMAGES[damage]
    change(folder / FILE)
    with pytest.raises(InputError, match=named) as caught:
        require_undamaged(folder)
    assert str(caught.value).startswith(str(folder / FILE))
    assert str(caught.value).endswith("copy it again from an intact copy, or train it again.")


def test_large_files_are_hashed_when_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "HASHED_AT_LOAD", 71)
    (folder / FILE).write_bytes(b"Weights" + CONTENTS[FILE][7:])
    assert require_undamaged(folder) == 2, "72 bytes: sizes alone"
    with pytest.raises(InputError, match="SHA-256"):
        require_undamaged(folder, verify=True)
    monkeypatch.setattr(manifest, "HASHED_AT_LOAD", 72)
    with pytest.raises(InputError, match="SHA-256"):
        require_undamaged(folder)


@pytest.mark.parametrize("record", [None, {"trainer": "retrieval"}])
def test_without_hashes_only_verify_complains(folder: Path, record: Any) -> None:
    (folder / "run.json").unlink()
    if record:
        write(folder, record)
    assert require_undamaged(folder) == 0
    with pytest.raises(InputError, match="has no run.json with the hashes of its files"):
        require_undamaged(folder, verify=True)


@pytest.mark.parametrize("record", cases(__file__, "test_a_damaged_record_is_named"))
def test_a_damaged_record_is_named(folder: Path, record: Any) -> None:
    write(folder, record)
    with pytest.raises(InputError, match=r"run\.json: damaged"):
        require_undamaged(folder)


def test_the_advice_depends_on_where_the_model_lies() -> None:
    cached = Path("/c/hub/models--org--my-model--v2/snapshots/abc/model.safetensors")
    assert again(cached) == "run `mrs models download --force org/my-model--v2`"
    assert again(Path("/lib/mrs_suggest/suggest/embedded/everyday-retriever")) == "install mrs-suggest again"
    assert again(Path("build/retriever")).startswith("copy it again")


def git_hash(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def test_a_cached_file_has_the_hash_that_it_is_named_by(tmp_path: Path) -> None:
    """Small files are named by git's hash, large ones by SHA-256; other names say nothing."""
    blobs, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    blobs.mkdir()
    snapshot.mkdir()
    names = {"small": git_hash(b"a"), "large": hashlib.sha256(b"a").hexdigest(), "tagged": "W-1"}
    for name, hashed in names.items():
        (blobs / hashed).write_bytes(b"a")
        (snapshot / name).symlink_to(blobs / hashed)
    (snapshot / "plain").write_bytes(b"a")
    drop_damaged("org/m", snapshot, set())
    for path in (*blobs.iterdir(), snapshot / "plain"):
        path.write_bytes(b"b")
    drop_damaged("org/m", snapshot, set(names.values()))
    with pytest.raises(InputError, match="org/m: large, small arrived damaged"):
        drop_damaged("org/m", snapshot, set())
    assert [path.name for path in sorted(snapshot.iterdir())] == ["plain", "tagged"], "the others are asked for again"
    assert [path.name for path in blobs.iterdir()] == ["W-1"]
