"""What of a prepared folder is published, and which folders are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.publishing import prepared_publication
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256

TRAIN = "data/es/train-00000-of-00001.parquet"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, write_tree: Callable[..., Path]) -> Path:
    base = tmp_path_factory.mktemp("publishing")
    write_tree(base / "source", {"es.tsv": "".join(f"mensaje {n}\tsí {n % 3}\n" for n in range(30))})
    prepare_mrs(str(base / "source"), base / "data")
    return base / "data"


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    shutil.copytree(prepared, tmp_path / "copy")
    return tmp_path / "copy"


def edit_report(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    change(report)
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")


def test_card_report_and_the_listed_files_go(folder: Path) -> None:
    for name in ("secrets.json", "data/.DS_Store", "notes.txt", ".env", "README.md.bak", "report.html"):
        (folder / name).write_text("private")
    what = prepared_publication(folder, "org/mrs")
    files = what.files()
    listed = {path.relative_to(folder).as_posix() for path in folder.rglob("*.parquet")}
    assert files.keys() == {"README.md", "report.json", *listed}
    assert b'load_dataset("org/mrs", "es")' in bytes(files["README.md"])
    assert what.left_behind()["secrets.json"] == "not listed in report.json"


def damages() -> dict[str, tuple[Callable[[Path], object], str]]:
    def flip(folder: Path) -> None:
        data = bytearray((folder / TRAIN).read_bytes())
        data[20] ^= 1
        (folder / TRAIN).write_bytes(data)

    def link(folder: Path) -> None:
        (folder / TRAIN).rename(folder / "elsewhere")
        (folder / TRAIN).symlink_to(folder / "elsewhere")

    def card(folder: Path) -> None:
        (folder / "README.md").unlink()
        (folder / "README.md").symlink_to("/etc/hostname")

    def climb(report: dict[str, Any]) -> None:
        report["configs"]["es"]["train"]["files"][0]["path"] = "data/es/../../report.json"

    def with_hash(folder: Path, change: Callable[[Path], object]) -> None:
        """Change a file, and list it with its new hash: it is compared with the catalogue, too."""
        change(folder / TRAIN)
        size, digest = (folder / TRAIN).stat().st_size, file_sha256(folder / TRAIN)
        files = [{"path": TRAIN, "bytes": size, "sha256": digest}]
        edit_report(folder, lambda report: report["configs"]["es"]["train"].update(files=files))

    def columns(path: Path) -> None:
        pq.write_table(pq.read_table(path).rename_columns(["question", "reply"]), path)

    return {
        "a bit flipped": (flip, r"its SHA-256 differs from report\.json"),
        "a split is missing": (lambda f: (f / TRAIN).unlink(), rf"{TRAIN} is missing, although report\.json lists it"),
        "a shard too many": (
            lambda f: shutil.copy(f / TRAIN, f / "data/es/more.parquet"), "does not list data/es/more",
        ),
        "a config too many": (lambda f: shutil.copytree(f / "data/es", f / "data/de"), "does not list data/de/"),
        "a link": (link, "is a link"),
        "the card is a link": (card, "is a link"),
        "no list": (lambda f: (f / "report.json").write_text('{"data_set": "mrs"}'), "does not list the files"),
        "a path that climbs": (lambda f: edit_report(f, climb), "path: string should match pattern"),
        "a config that is none": (
            lambda f: edit_report(f, lambda r: r["configs"].update(xx=r["configs"]["es"])), "for xx/train",
        ),
        "other rows": (
            lambda f: edit_report(f, lambda r: r["configs"]["es"]["train"].update(rows=7)), "report.json says 7",
        ),
        "other columns": (lambda f: with_hash(f, columns), r"of-00001\.parquet: has the columns question"),
        "no Parquet": (
            lambda f: with_hash(f, lambda path: path.write_bytes(b"PAR1")), r"001\.parquet: cannot be read as Parquet",
        ),
        "no report": (lambda f: (f / "report.json").unlink(), r"not a prepared folder \(no report\.json\)"),
    }  # fmt: skip


@pytest.mark.parametrize("kind", damages())
def test_a_folder_that_is_not_its_report_is_refused(folder: Path, kind: str) -> None:
    damage, named = damages()[kind]
    damage(folder)
    with pytest.raises(InputError, match=named):
        prepared_publication(folder, "org/mrs")
