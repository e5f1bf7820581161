"""A corpus in stages: interrupted anywhere and resumed with equal bytes, duplicates in parts, thinning, thirds."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.stages import read_codes
from mrs_datasets.builders.reddit import repeated
from mrs_datasets.corpus import build as build_module
from mrs_datasets.corpus.build import build_corpus
from mrs_datasets.corpus.lines import LineRules, line_keys
from mrs_datasets.corpus.settings import Corpus, CorpusSettings, IdentifierFile, Source
from mrs_datasets.corpus.shards import clean_shard, duplicates_shard
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest.language_detector import LanguageDetector
from tests.corpus_texts import GOOD, contents, lines_of, write_texts
from tests.dumps import leftovers

RULES = LineRules(max_characters=300)


def stop(*arguments: Any) -> None:
    """Interrupts the run in place of a stage."""
    raise KeyboardInterrupt


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    write_texts(folder)
    return folder


@pytest.fixture(scope="module")
def corpus(texts: Path) -> Corpus:
    sources = [("en", "en/a.txt.gz"), ("de", "de.txt.zst"), ("en", "en/b.txt.xz")]
    return Corpus(
        tuple(Source(language, texts / name) for language, name in sources),
        IdentifierFile(texts / DETECTOR, LanguageDetector.load),
        references={language: (texts / f"reference.{language}.txt",) for language in ("en", "de")},
    )


@pytest.fixture(scope="module")
def settings() -> CorpusSettings:
    return CorpusSettings(RULES, min_language_score=0.9)


@pytest.fixture(scope="module")
def uninterrupted(
    corpus: Corpus, settings: CorpusSettings, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("whole") / "out"
    build_corpus(corpus, settings, out)
    return contents(out)


@pytest.mark.parametrize(
    ("place", "call", "shards"),
    [("model_shard", 2, 2), ("clean_shard", 3, 3), ("duplicates_shard", 2, 2), ("score_shard", 2, 3)],
)
def test_interrupted_in_a_stage(
    place: str, call: int, shards: int, corpus: Corpus, settings: CorpusSettings, uninterrupted: dict[str, bytes],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    calls, work = 0, getattr(build_module, place)

    def shard(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise KeyboardInterrupt
        return work(*arguments)

    monkeypatch.setattr(build_module, place, shard)
    with pytest.raises(KeyboardInterrupt):
        build_corpus(corpus, settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="holds an interrupted build; pass --resume"):
        build_corpus(corpus, settings, tmp_path / "out")
    build_corpus(corpus, settings, tmp_path / "out", resume=True)
    assert calls == shards + 1, "finished shards are not done again"
    assert contents(tmp_path / "out") == uninterrupted
    assert leftovers(tmp_path) == ["out"]


def test_interrupted_while_writing_and_after(
    corpus: Corpus, settings: CorpusSettings, uninterrupted: dict[str, bytes], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        patch.setattr(build_module, "corpus_card", stop)
        with pytest.raises(KeyboardInterrupt):
            build_corpus(corpus, settings, tmp_path / "out")
    assert leftovers(tmp_path) == [".out.build"]
    with monkeypatch.context() as patch:  # the corpus is whole, the work is not removed yet
        patch.setattr("mrs_datasets.builders.pipeline.work_folder.WorkFolder.remove", stop)
        with pytest.raises(KeyboardInterrupt):
            build_corpus(corpus, settings, tmp_path / "out", resume=True)
    assert contents(tmp_path / "out") == uninterrupted
    monkeypatch.setattr(build_module, "clean_shard", stop)
    report = build_corpus(corpus, settings, tmp_path / "out", resume=True)
    assert report == json.loads(uninterrupted["corpus.json"])
    assert leftovers(tmp_path) == ["out"]


def interrupted_before_writing(
    corpus: Corpus, settings: CorpusSettings, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begin a corpus that is interrupted before its last stage."""
    with monkeypatch.context() as patch:
        patch.setattr(build_module, "write_language", stop)
        with pytest.raises(KeyboardInterrupt):
            build_corpus(corpus, settings, out)


def test_resuming_with_other_settings(
    corpus: Corpus, settings: CorpusSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_before_writing(corpus, settings, tmp_path / "out", monkeypatch)
    with pytest.raises(InputError, match="was begun with other min_language_score"):
        build_corpus(corpus, replace(settings, min_language_score=0.5), tmp_path / "out", resume=True)
    with pytest.raises(InputError, match="was begun with other texts"):
        build_corpus(replace(corpus, sources=corpus.sources[:2]), settings, tmp_path / "out", resume=True)
    monkeypatch.setattr(build_module, "score_shard", stop)  # what is kept is decided last
    build_corpus(corpus, replace(settings, keep=("tail",)), tmp_path / "out", resume=True)
    assert list(lines_of(tmp_path / "out" / "en")) == ["tail"]


def test_an_existing_folder_is_kept_or_replaced(corpus: Corpus, settings: CorpusSettings, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "diary.txt").write_text("mine")
    for overwrite, problem in ((False, "exists already"), (True, r"does not look like .* \(no corpus\.json\)")):
        with pytest.raises(InputError, match=problem):
            build_corpus(corpus, settings, out, overwrite=overwrite)
    (out / "corpus.json").write_text("{}")
    build_corpus(corpus, settings, out, overwrite=True)
    assert not (out / "diary.txt").exists()


def test_fasttext_names_the_languages(lid_model: Path, tmp_path: Path) -> None:
    from mrs_suggest.common.text.language_id import LanguageIdentifier

    (tmp_path / "de.txt").write_text("Das klingt gut, danke dir!\nQuesto è molto bello, grazie!\n12345 abcdefgh\n")
    source = Source("de-AT", tmp_path / "de.txt")
    corpus = Corpus((source,), IdentifierFile(lid_model, LanguageIdentifier.open))
    report = build_corpus(corpus, CorpusSettings(), tmp_path / "out")
    assert lines_of(tmp_path / "out" / "de-AT")["all"][0] == "Das klingt gut, danke dir!"
    assert report["languages"]["de-AT"]["other_languages"] == {"it": 1}


@given(
    st.lists(
        st.sampled_from(["one line here", "One line, here!", "another line", "a third line", "x" * 12]), max_size=30
    )
)
def test_the_first_of_equal_lines_stays(lines: list[str]) -> None:
    keys = line_keys(lines).tolist()
    expected = [keys.index(key) < number for number, key in enumerate(keys)]
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(repeated, "PART_PAIRS", 4)  # several parts, several reads
        folder = Path(name)
        cleaned = []
        for number, part in enumerate((lines[:7], lines[7:])):
            (folder / f"{number}.txt").write_text("".join(f"{line}\n" for line in part))
            cleaned.append(folder / f"{number}.arrow")
            clean_shard(folder / f"{number}.txt", cleaned[-1], LineRules(), lambda _: None)
        counts = duplicates_shard(cleaned, folder / "codes.npy", len(lines), lambda _: None)
        assert read_codes(folder / "codes.npy", len(lines)).astype(bool).tolist() == expected
        assert counts == {"duplicate": sum(expected)}
        assert not list(folder.glob(".*"))


def test_damaged_work_is_refused(
    corpus: Corpus, settings: CorpusSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted_before_writing(corpus, settings, tmp_path / "out", monkeypatch)
    path = next((tmp_path / ".out.build" / "score").glob("*.arrow"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"arrow: is damaged .* delete it and continue with --resume"):
        build_corpus(corpus, settings, tmp_path / "out", resume=True)
    path.unlink()
    report = build_corpus(corpus, settings, tmp_path / "out", resume=True)
    assert report["languages"]["en"]["kept"] == GOOD
