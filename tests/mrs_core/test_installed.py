"""The list of what `mrs install` put into the caches."""

from __future__ import annotations

import json
from pathlib import Path

import huggingface_hub.constants
import pytest

from mrs_core.errors import InputError
from mrs_core.installed import installed_folders, manifest_path, record_installed, uninstall


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HOME", str(tmp_path))
    return tmp_path


def cached(home: Path, digest: str, config: str = "es", name: str = "mrs") -> Path:
    """A data set as `datasets` leaves it, with its lock files."""
    folder = home / "datasets" / name / config / "0.0.0" / digest
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mrs-train.arrow").write_text("rows")
    folder.with_name(f"{digest}_builder.lock").touch()
    (home / "datasets" / f"_{name}_{config}_0.0.0_{digest}.lock").touch()
    return folder


def metric(home: Path, digest: str) -> Path:
    folder = home / "modules" / "evaluate_modules" / "metrics" / "evaluate-metric--mrs_rouge" / digest
    folder.mkdir(parents=True)
    for package in (folder, folder.parent, folder.parents[1], folder.parents[2]):
        (package / "__init__.py").touch()
    return folder


def listing(home: Path) -> set[str]:
    return {path.relative_to(home).as_posix() for path in home.rglob("*") if "mrs-suggest" not in path.parts}


def test_nothing_is_installed(home: Path) -> None:
    assert installed_folders() == []
    assert uninstall() == []
    assert list(home.iterdir()) == []


def test_it_lies_beside_the_caches(home: Path) -> None:
    folder = cached(home, "a" * 16)
    record_installed([folder])
    assert manifest_path().is_relative_to(home)
    assert installed_folders() == [folder]


def test_everything_goes_and_nothing_else(home: Path) -> None:
    theirs = cached(home, "f" * 16, "en", "squad")
    others = cached(home, "e" * 16, "default")  # of a folder called `mrs` that the user loaded
    note = home / "datasets" / "mrs" / "es" / "note.txt"
    note.parent.mkdir(parents=True)
    note.write_text("mine")
    before = listing(home)
    folders = [cached(home, "a" * 16), cached(home, "a" * 16, "es-responses"), metric(home, "b" * 64)]
    record_installed(folders)
    assert uninstall() == folders
    left = listing(home)
    assert before <= left
    assert left - before <= {"modules", "modules/evaluate_modules", "modules/evaluate_modules/__init__.py"}
    assert theirs.is_dir()
    assert others.is_dir()
    assert note.read_text() == "mine"
    assert not manifest_path().exists()
    assert uninstall() == []


def test_a_newer_install_replaces_an_older_one(home: Path) -> None:
    old, same = cached(home, "a" * 16), cached(home, "c" * 16, "en")
    record_installed([old, same])
    new = cached(home, "b" * 16)
    record_installed([new, same])
    assert not old.exists()
    assert not list(home.rglob("*" + "a" * 16 + "*"))
    assert installed_folders() == [new, same]
    record_installed([new, same])
    assert installed_folders() == [new, same]
    assert new.is_dir()
    assert same.is_dir()


def test_what_is_gone_already_is_no_error(home: Path) -> None:
    folder = cached(home, "a" * 16)
    record_installed([folder, home / "never"])
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert uninstall() == []
    assert not manifest_path().exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"folders": 3}', '{"folders": [3]}', "\ufffd"])
def test_a_damaged_list_is_named(home: Path, text: str) -> None:
    manifest_path().parent.mkdir(parents=True)
    manifest_path().write_text(text, encoding="utf-8")
    for call in (installed_folders, uninstall):
        with pytest.raises(InputError, match="damaged; delete it and install again"):
            call()


def test_the_list_is_readable(home: Path) -> None:
    record_installed([home / "datasets" / "ñ"])
    assert json.loads(manifest_path().read_text(encoding="utf-8"))["folders"] == [str(home / "datasets" / "ñ")]
