"""XCOPA and STAPLE from archives, through the command: what an archive holds, or one sentence and nothing else."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.main import main

ROW = {"premise": "P.", "choice1": "A.", "choice2": "B.", "question": "cause", "label": 1, "idx": 0, "changed": False}
FILES = {f"xcopa-master/data/qu/{name}.qu.jsonl": json.dumps(ROW) + "\n" for name in ("val", "test")}
GOLD = "prompt_a|yes\nsim|1.0\n"


def tar(path: Path, files: dict[str, str], *members: tarfile.TarInfo) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
        for member in members:
            archive.addfile(member, io.BytesIO(bytes(member.size)))
    return path


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def member(name: str, kind: bytes = tarfile.REGTYPE, size: int = 0, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    return info


@pytest.mark.parametrize("make", [lambda p: packed(p / "x.zip", FILES), lambda p: tar(p / "x.tar.gz", FILES)])
def test_an_archive_gives_what_its_folder_gives(tmp_path: Path, make) -> None:
    report = prepare("xcopa", [str(make(tmp_path))], tmp_path / "out")
    assert list(report["configs"]) == ["qu"]
    assert open_prepared(str(tmp_path / "out")).load("qu", "test").to_list() == [{**ROW, "question_corrected": "cause"}]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["README.md", "data", "report.json"]


def test_staple_from_an_archive(tmp_path: Path) -> None:
    source = packed(tmp_path / "staple.zip", {"staple-2020/en_pt/dev.en_pt.2020.gold.txt": GOLD})
    prepare("staple", [str(source)], tmp_path / "out")
    assert open_prepared(str(tmp_path / "out")).load("pt", "validation")[0]["prompt"] == "yes"


BROKEN = {**FILES, "xcopa-master/data/qu/val.qu.jsonl": json.dumps({**ROW, "label": 2}) + "\n"}
DAMAGE = {
    "a broken row is named by archive and member": (
        lambda p: packed(p / "x.zip", BROKEN),
        "x.zip/xcopa-master/data/qu/val.qu.jsonl, line 1: expected 'label' to be 0 or 1",
    ),
    "a path above": (lambda p: tar(p / "x.tgz", FILES, member("../../above.txt")), "../../above.txt"),
    "a path above in a zip": (lambda p: packed(p / "x.zip", {**FILES, "a/../../above.txt": ""}), "a/../../above.txt"),
    "a symbolic link": (lambda p: tar(p / "x.tgz", FILES, member("data/l", tarfile.SYMTYPE, link="/etc")), "data/l"),
    "a bomb": (lambda p: tar(p / "x.tgz", FILES, member("zeros", size=(1 << 20) + 1)), "1 MiB"),
    "an archive in an archive": (lambda p: packed(p / "x.zip", {"inner/data.tar.gz": "x"}), "contains another archive"),
    "cut off": (lambda p: written(p / "x.tgz", tar(p / "x.tgz", FILES).read_bytes()[:-20]), "damaged or truncated"),
    "no archive": (lambda p: written(p / "x.zip", b"hello"), "x.zip"),
    "nothing of the data set": (lambda p: packed(p / "x.zip", {"a.txt": "x"}), "neither XCOPA's folder"),
}


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_bad_archive_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    from mrs_datasets.prepared import prepare as module

    unpacked = module.unpacked  # a limit of 1 MiB in place of 1 GiB
    monkeypatch.setattr(module, "unpacked", lambda archive, beside, limit: unpacked(archive, beside, limit >> 10))
    make, words = DAMAGE[kind]
    source = make(tmp_path)
    assert main(["data", "prepare", "xcopa", "--source", str(source), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert source.name in err
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    assert not (tmp_path.parent / "above.txt").exists()
