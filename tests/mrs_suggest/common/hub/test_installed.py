"""The list of what `mrs install` put into the caches."""

import json
from pathlib import Path

import datasets.config
import evaluate.config
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.installed import caches, installed_folders, record_installed, uninstall


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "datasets")
    monkeypatch.setattr(evaluate.config, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    return tmp_path


def write_list(path: Path, *folders: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"folders": [str(folder) for folder in folders]}), encoding="utf-8")


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


def test_each_cache_has_its_own_list(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, module = cached(home, "a" * 16), metric(home, "b" * 64)
    record_installed([first])
    record_installed([module])
    assert installed_folders() == [first, module]
    lists = {cache.manifest for cache in caches()}
    assert lists == {home / "datasets/mrs-suggest/installed.json", home / "modules/mrs-suggest/installed.json"}
    assert set(home.rglob("installed.json")) == lists
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "other" / "datasets")
    assert installed_folders() == [module]
    second = cached(home / "other", "c" * 16)
    record_installed([second])
    assert first.is_dir()
    assert uninstall() == [second, module]
    assert first.is_dir()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "datasets")
    assert uninstall() == [first]
    assert not first.exists()


def test_a_cache_that_was_moved_keeps_its_list(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_installed([cached(home, "a" * 16)])
    (home / "datasets").rename(home / "disk")
    (home / "datasets").symlink_to(home / "disk")
    assert uninstall() == [home / "datasets" / "mrs" / "es" / "0.0.0" / ("a" * 16)]
    assert list((home / "disk").iterdir()) == []


# --- nothing outside the caches is removed, whatever a list says

OUTSIDE = (
    "../thesis", "{home}/thesis", ".", "", "mrs", "mrs/es", "mrs/es/0.0.0", "mrs/es/0.0.0/../../../../thesis",
    "squad/plain_text/0.0.0/" + "0" * 40, "mrs/es/0.0.0/notes", "mrs/es/0.0.0/" + "d" * 16 + "/",
)  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_not_ours_is_refused(home: Path, name: str) -> None:
    mine = cached(home, "a" * 16)
    record_installed([mine])
    cached(home, "d" * 16)
    (home / "thesis").mkdir()
    (home / "thesis" / "chapter.txt").write_text("years")
    other = home / "datasets" / "squad" / "plain_text" / "0.0.0" / ("0" * 40)
    other.mkdir(parents=True)
    (home / "datasets" / "mrs" / "es" / "0.0.0" / "notes").mkdir()
    path = name.format(home=home)
    write_list(home / "datasets" / "mrs-suggest" / "installed.json", mine.relative_to(home / "datasets"), path)
    before = listing(home)
    with pytest.raises(InputError, match="nothing was removed"):
        uninstall()
    assert listing(home) == before
    assert (home / "thesis" / "chapter.txt").read_text() == "years"


@pytest.mark.parametrize("part", ["mrs", "mrs/es", "mrs/es/0.0.0", "mrs/es/0.0.0/" + "a" * 16])
def test_no_link_is_followed_out_of_a_cache(home: Path, part: str) -> None:
    folder = cached(home, "a" * 16)
    record_installed([folder])
    link = home / "datasets" / part
    link.rename(home / "precious")
    link.symlink_to(home / "precious")
    before = sorted(home.rglob("*"))
    with pytest.raises(InputError, match="nothing was removed"):
        uninstall()
    assert sorted(home.rglob("*")) == before
    assert list((home / "precious").rglob("*")) or part.endswith("a")


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
    assert list(home.rglob("installed.json")) == []
    assert uninstall() == []
    folder = cached(home, "a" * 16)
    record_installed([folder, folder.with_name("b" * 16)])
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert uninstall() == []
    assert list(home.rglob("installed.json")) == []


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


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"folders": 3}', '{"folders": [3]}', "\ufffd"])
@pytest.mark.parametrize("where", ["datasets", "modules"])
def test_a_damaged_list_is_named(home: Path, text: str, where: str) -> None:
    path = home / where / "mrs-suggest" / "installed.json"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    for call in (installed_folders, uninstall):
        with pytest.raises(InputError, match="damaged; delete it and install again"):
            call()
