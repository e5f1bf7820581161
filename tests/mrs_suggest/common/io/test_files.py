"""Output appears whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write, content_hash


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a folder that holds an earlier result."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "old.txt").write_text("old")
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill_and_fail(out: Path, error: BaseException, overwrite: bool = False) -> None:
    with atomic_folder(out, overwrite) as partial:
        (partial / "sub").mkdir()
        (partial / "sub" / "new.txt").write_text("new")
        raise error


def test_the_folder_appears_at_the_end_and_can_be_read_by_others(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with atomic_folder(out) as partial:
        (partial / "a.txt").write_text("a")
        assert not out.exists()
    assert names(tmp_path) == ["out"]
    assert names(out) == ["a.txt"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(out.stat().st_mode) == 0o777 & ~mask


@pytest.mark.parametrize("error", [ValueError("a bug"), InputError("bad row"), KeyboardInterrupt()])
def test_after_an_error_nothing_is_left_but_an_old_folder(old: Path, error: BaseException) -> None:
    with pytest.raises(type(error)):
        fill_and_fail(old.parent / "a" / "b" / "out", error)
    with pytest.raises(type(error)):
        fill_and_fail(old, error, overwrite=True)
    assert names(old.parent) == ["out"]
    assert names(old) == ["old.txt"]


def test_when_the_last_rename_fails_the_old_folder_is_back(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if ".partial-" in self.name:
            raise KeyboardInterrupt
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(KeyboardInterrupt), atomic_folder(old, overwrite=True) as partial:
        (partial / "new.txt").write_text("new")
    assert names(old.parent) == ["out"]
    assert names(old) == ["old.txt"]


def test_overwriting_swaps_the_whole_folder(old: Path) -> None:
    with atomic_folder(old, overwrite=True) as partial:
        (partial / "new.txt").write_text("new")
        assert names(old) == ["old.txt"]
    assert names(old.parent) == ["out"]
    assert names(old) == ["new.txt"]


def test_a_file_or_folder_in_the_way_is_refused(tmp_path: Path, old: Path) -> None:
    with pytest.raises(InputError, match=r"exists already.*--overwrite"), atomic_folder(old):
        pytest.fail("the block must not run")
    with (  # nobody is advised to delete what is not ours
        pytest.raises(InputError, match=r"out exists already .* \(no run\.json\); choose another folder\.$"),
        atomic_folder(old, marker="run.json"),
    ):
        pytest.fail("the block must not run")
    assert names(old) == ["old.txt"]
    (old / "old.txt").unlink()
    old.rmdir()
    (tmp_path / "out").write_text("mine")
    with pytest.raises(InputError, match="exists already"), atomic_folder(tmp_path / "out"):
        pytest.fail("the block must not run")
    with pytest.raises(InputError, match="cannot write there"), atomic_folder(tmp_path / "out" / "below"):
        pytest.fail("the block must not run")
    assert (tmp_path / "out").read_text() == "mine"


def test_a_link_to_a_folder_on_another_disk_can_be_the_target(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    with atomic_folder(tmp_path / "out", overwrite=True) as partial:
        (partial / "a.txt").write_text("a")
    assert names(tmp_path / "out") == ["a.txt"]
    assert names(tmp_path) == ["disk", "out"]


def test_a_file_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    atomic_write(path, "eins\nzwei ✓\n")
    assert path.read_bytes() == "eins\nzwei ✓\n".encode()

    def full(self: Path, *_: object, **__: object) -> int:
        self.write_bytes(b"ha")
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="disk full"):
        atomic_write(path, "half")
    assert path.read_bytes() == "eins\nzwei ✓\n".encode()
    assert names(tmp_path) == ["a.txt"]


def test_the_hash_tells_contents_apart_and_nothing_else(tmp_path: Path) -> None:
    def folder(name: str, *contents: str) -> list[Path]:
        (tmp_path / name).mkdir()
        paths = [tmp_path / name / f"{i}.txt" for i in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_text(content)
        return paths

    one = folder("one", "ab", "c")
    assert content_hash(one) == content_hash(one[::-1]) == content_hash(folder("two", "ab", "c"))
    others = [folder("x", "a", "bc"), folder("y", "c", "ab"), folder("z", "ab"), folder("w", "ab", "d")]
    assert len({content_hash(paths) for paths in [one, *others]}) == 5
