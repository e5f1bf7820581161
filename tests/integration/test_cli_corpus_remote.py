"""`mrs data corpus` from and to S3: the same bytes as with local folders, also where sending broke off."""

import shutil
from pathlib import Path

import pytest

from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from tests.cases import cases
from tests.corpus_texts import OPTIONS, Texts, contents, write_texts
from tests.dumps import leftovers
from tests.s3_server import S3

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def corpus(texts: Texts) -> dict[str, bytes]:
    """Return the files of the corpus of local folders."""
    run_verb("data", ["corpus", *texts.options, "--out", str(texts.folder / "out"), "--workers", "1"])
    found = contents(texts.folder / "out")
    shutil.rmtree(texts.folder / "out")
    return found


def options(texts: Texts) -> list[str]:
    """The same with URLs: a folder, a pattern, files."""
    return [
        "--text", "en=s3://texts/raw/en", "de=s3://texts/raw/de.*.zst", "ru=s3://texts/raw/ru.txt",
        "--reference", "en=s3://texts/raw/reference.en.txt", f"de={texts.folder / 'reference.de.txt'}",
        "--language-model", str(texts.folder), *map(str, OPTIONS), "--workers", "1",
    ]  # fmt: skip


def test_a_corpus_in_s3_is_the_local_one(
    s3: S3, texts: Texts, corpus: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.send(texts.folder, "raw")
    command = ["corpus", *options(texts), "--out", "s3://texts/corpora/one", "--scratch", str(tmp_path / "scratch")]
    put = type(s3.files)._put_file

    async def breaks(self: object, source: str, target: str, **named: object) -> None:
        if "score/00001" in target:
            raise OSError("the storage is full")
        await put(self, source, target, **named)

    with monkeypatch.context() as patch:
        patch.setattr(type(s3.files), "_put_file", breaks)
        with pytest.raises(InputError, match=r"cannot be written \(the storage is full\).*--resume"):
            run_verb("data", command)
    type(s3.files).clear_instance_cache()  # it is bound to the method that fails
    assert any("clean/" in path for path in s3.below("corpora/.one.build"))
    monkeypatch.setattr("mrs_datasets.corpus.build.clean_shard", lambda *_: 1 / 0)  # finished files are not read again
    run_verb("data", [*command, "--resume"])
    assert s3.contents("corpora") == {f"one/{name}": data for name, data in corpus.items()}
    assert leftovers(tmp_path / "scratch") == []
    run_verb("data", [*command, "--resume"])


@pytest.mark.parametrize(("source", "words"), cases(__file__, "test_what_cannot_be_is_one_sentence"))
def test_what_cannot_be_is_one_sentence(s3: S3, texts: Texts, tmp_path: Path, source: str, words: str) -> None:
    s3.send(texts.folder, "raw")
    with pytest.raises(InputError, match=words):
        run_verb("data", ["corpus", *options(texts), "--out", str(tmp_path / "out"), source])
    assert leftovers(tmp_path) == []
