"""Prepared folders at URLs: the same data as the local folder, fetched once; files of another build are refused."""

import json
import shutil
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_suggest.common.errors import InputError
from tests.file_server import served
from tests.s3_server import S3, SECRET


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def folder(prepared: PreparedData, tmp_path: Path) -> Path:
    """A copy of the prepared folder."""
    assert prepared.folder is not None
    return Path(shutil.copytree(prepared.folder, tmp_path / "served" / "mrs"))


def same(found: PreparedData, folder: Path) -> bool:
    assert found.folder is not None
    here = {p.relative_to(found.folder): p.read_bytes() for p in found.folder.rglob("*") if p.is_file()}
    return here == {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_a_folder_in_s3_is_the_local_one(s3: S3, folder: Path, prepared: PreparedData) -> None:
    s3.send(folder, "sets/mrs")
    found = open_prepared("s3://texts/sets/mrs")
    assert same(found, folder)
    assert (found.name, found.languages()) == ("mrs", prepared.languages())
    assert found.identity(["en"])["content_hash"] == prepared.identity(["en"])["content_hash"]
    s3.files.rm_file("texts/sets/mrs/data/en/train-00000-of-00001.parquet")
    assert open_prepared("s3://texts/sets/mrs").load("en", "train").num_rows > 0, "it is not fetched again"


def test_a_folder_by_http_is_fetched_where_it_was_left(folder: Path) -> None:
    faults: list[int | None] = []
    with served(folder.parent, faults=faults) as url:
        faults += [None, None, None, 403]
        with pytest.raises(InputError, match=r"parquet\?\*\*\*: cannot be reached \(403"):
            open_prepared(f"{url}/mrs?token={SECRET}")
        found = open_prepared(f"{url}/mrs?token={SECRET}")
        assert same(found, folder)


def test_a_file_of_another_build_is_refused(folder: Path, home: Path) -> None:
    (path,) = (folder / "data" / "en").glob("validation-*.parquet")
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with served(folder.parent) as url, pytest.raises(InputError, match=r"does not match its SHA-256 in report\.json"):
        open_prepared(f"{url}/mrs")
    assert [found for found in home.rglob("*") if found.name in (path.name, "report.json")] == []


@pytest.mark.parametrize(
    "files",
    [[{"path": "../../evil.parquet", "bytes": 1, "sha256": "a"}], [{"path": "data/a/b.parquet", "bytes": 1}], [3], []],
)
def test_a_report_that_lists_no_sound_files_is_refused(folder: Path, files: list[object], home: Path) -> None:
    splits = {"train": {"rows": 1, "bytes": 1, "files": files}}
    (folder / "report.json").write_text(json.dumps({"configs": {"en": splits}}))
    with served(folder.parent) as url, pytest.raises(InputError, match="does not list the folder's files"):
        open_prepared(f"{url}/mrs")
    assert not home.exists()


def test_what_is_not_there_is_one_sentence(s3: S3) -> None:
    with pytest.raises(InputError, match=r"^s3://texts/sets/mrs: not a prepared folder \(no report.json in it\)"):
        open_prepared("s3://texts/sets/mrs")
    with pytest.raises(InputError, match=r"^s3://other/sets/mrs: cannot be reached \(the bucket does not exist"):
        open_prepared("s3://other/sets/mrs")
    with pytest.raises(InputError, match="is a URL"):
        open_prepared("s3://texts/sets/mrs", "v1")
    with s3.guarded(), pytest.raises(InputError, match="the storage does not know the access key") as told:
        open_prepared("s3://texts/sets/mrs")
    assert SECRET not in str(told.value)


def test_texts_to_train_on_come_from_urls(s3: S3, folder: Path, tmp_path: Path) -> None:
    from mrs_datasets.texts.text_sources import Reading, TextSource

    (tmp_path / "raw").mkdir()
    (tmp_path / "raw" / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "raw" / "b.txt").write_text("three\n")
    s3.send(tmp_path / "raw", "raw")
    s3.send(folder, "mrs")

    def read(where: str) -> list[str]:
        return list(TextSource.parse(f"en={where}", "--text").items(Reading()))

    assert read("s3://texts/raw") == ["one", "two", "three"]
    assert read("s3://texts/raw/b.txt") == ["three"]
    assert sorted(read("s3://texts/mrs")) == sorted(read(str(folder)))
    s3.files.pipe_file("texts/raw/b.txt", b"drei!\n")
    assert read("s3://texts/raw/b.txt") == ["drei!"], "another file is fetched again"
    with pytest.raises(InputError, match="s3://texts/nothing: no such file or folder"):
        read("s3://texts/nothing")
    with served(tmp_path / "raw") as url:
        assert read(f"{url}/a.txt") == ["one", "two"]
        source = TextSource.parse(f"en={url}/a.txt?token={SECRET}", "--text")
        assert (source.name(), SECRET in str(source)) == ("a.txt", False)
