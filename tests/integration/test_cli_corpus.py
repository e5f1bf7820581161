"""`mrs data corpus` through the command line: synthetic texts with every kind of dirt, every line accounted for."""

import json
from pathlib import Path

import pytest
from datasets import load_dataset

from mrs_datasets.texts.text_sources import Reading, TextSource
from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.pretraining.texts import read_texts
from tests.cases import cases
from tests.conftest import Mrs
from tests.corpus_texts import DROPPED, GARBLED, GOOD, LINES, Texts, contents, lines_of, write_texts

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    return write_texts(tmp_path_factory.mktemp("texts"))


@pytest.fixture(scope="module")
def corpus(mrs: Mrs, texts: Texts) -> Path:
    """Return the folder that two processes wrote."""
    done = mrs("data", "corpus", *texts.options, "--out", "out", "--workers", 2, cwd=texts.folder)
    assert done.returncode == 0, done.stderr
    assert "wrote out: a folder per language, README.md, corpus.json" in done.stdout
    assert not (texts.folder / ".out.build").exists()
    for stage in ("clean", "duplicates", "models", "score", "write"):
        assert f"{stage}: 100%" in done.stderr
    return texts.folder / "out"


def test_every_line_is_accounted_for(corpus: Path, texts: Texts) -> None:
    report = json.loads((corpus / "corpus.json").read_text(encoding="utf-8"))
    for language in ("en", "de"):
        facts = report["languages"][language]
        assert facts["lines"] == LINES
        assert facts["dropped"] == {**DROPPED, "tail third left out": GARBLED}
        assert list(facts["dropped"]) == [*DROPPED, "tail third left out"], "in the order of the rules"
        assert facts["kept"] == GOOD
        assert facts["thirds"] == {"head": 20, "middle": 20, "tail": 20}
        found = lines_of(corpus / language)
        assert sorted(found) == ["head", "middle"]
        assert sorted(found["head"] + found["middle"]) == sorted(texts.good[language]), "all garbled lines are the tail"
        assert [text for text in texts.good[language] if text in found["head"]] == found["head"], "in their order"
    without = report["languages"]["ru"]
    assert (without["lines"], without["kept"], without["dropped"]) == (LINES, GOOD + GARBLED, DROPPED)
    assert lines_of(corpus / "ru") == {"all": texts.good["ru"] + texts.garbled["ru"]}
    assert report["languages"]["en"]["other_languages"] == {"de": 6}
    assert [(text["language"], text["name"]) for text in report["texts"]] == [
        ("en", "a.txt.gz"), ("en", "b.txt.xz"), ("de", "de.txt.zst"), ("ru", "ru.txt"),
    ]  # fmt: skip
    assert str(texts.folder) not in json.dumps(report), "no folders of this machine"
    card = (corpus / "README.md").read_text(encoding="utf-8")
    assert "140 of 273 lines of text in en, de, ru, one sentence or document per line." in card
    assert str(texts.folder) not in card


def test_the_same_bytes_from_one_process_and_from_the_models(
    corpus: Path, texts: Texts, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_verb("data", ["corpus", *texts.options, "--out", str(tmp_path / "again"), "--workers", "1"])
    assert contents(tmp_path / "again") == contents(corpus)
    at = texts.options.index("--reference")
    given = [f"{language}={corpus / 'models' / language}.safetensors" for language in ("en", "de")]
    options = [*texts.options[:at], "--model", *given, *texts.options[at + 3 :]]
    run_verb("data", ["corpus", *options, "--out", str(tmp_path / "given"), "--workers", "1"])
    for language in ("en", "de", "ru"):
        assert contents(tmp_path / "given" / language) == contents(corpus / language)
    assert not (tmp_path / "given" / "models").exists()
    assert "kept" in capsys.readouterr().out


def test_pretraining_and_datasets_read_it(corpus: Path, texts: Texts) -> None:
    sources = [TextSource.parse(f"{code}={corpus / code}", "--text") for code in ("en", "ru")]
    data = read_texts([sources, (), ()], Reading(), 0)
    assert sorted(data.train["en"]) == sorted(texts.good["en"])
    assert len(data.train["ru"]) == GOOD + GARBLED
    rows = load_dataset(str(corpus), "de")["train"]
    assert sorted(rows["text"]) == sorted(texts.good["de"])


def test_every_third_and_small_files(
    texts: Texts, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mrs_datasets.corpus.write.SHARD_LINES", 7)
    keep = ["--keep", "head", "middle", "tail"]
    run_verb("data", ["corpus", *texts.options, "--workers", "1", "--out", str(tmp_path / "a"), *keep])
    report = json.loads((tmp_path / "a" / "corpus.json").read_text(encoding="utf-8"))["languages"]
    assert report["de"]["dropped"] == DROPPED
    found = lines_of(tmp_path / "a" / "de")
    assert sorted(found) == ["head", "middle", "tail"]
    assert sorted(found.pop("tail")) == sorted(texts.garbled["de"])
    assert [entry["lines"] for entry in report["de"]["files"]] == [7, 7, 6] * 3
    assert found == lines_of(corpus / "de")


REFUSED = cases(__file__, "REFUSED")


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_one_sentence_and_leaves_nothing(case: str, texts: Texts, corpus: Path, tmp_path: Path) -> None:
    (texts.folder / "empty").mkdir(exist_ok=True)
    (texts.folder / "blank.txt").write_text("\n\n")
    (texts.folder / "cut.txt.gz").write_bytes((texts.folder / "en" / "a.txt.gz").read_bytes()[:-20])
    options, expected = REFUSED[case]
    given = [option.format(folder=texts.folder) for option in options]
    with pytest.raises(InputError) as caught:
        run_verb("data", ["corpus", *texts.options, "--workers", "1", *given, "--out", str(tmp_path / "out")])
    assert expected in str(caught.value)
    assert str(caught.value).endswith(".")
    assert not (tmp_path / "out").exists()
    assert [path.name for path in tmp_path.iterdir()] in ([], [".out.build"]), "work stays for --resume"


def test_without_a_language_model_the_ways_out_are_named(
    texts: Texts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MRS_LANGUAGE_MODEL", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    start = ["corpus", "--text", f"ru={texts.folder / 'ru.txt'}", "--workers", "1", "--out", str(tmp_path / "out")]
    with pytest.raises(InputError, match="--language-model: none is installed; .* or `none` to leave them unchecked"):
        run_verb("data", start)
    run_verb("data", [*start, "--language-model", "none"])
    assert set(lines_of(tmp_path / "out" / "ru")["all"]) > set(texts.good["ru"] + texts.garbled["ru"])


def test_texts_of_which_nothing_stays(tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("Hi\n\nBye\n")
    with pytest.raises(InputError, match=r"no line passes \(too short 2, empty 1\); pass other texts"):
        run_verb(
            "data",
            ["corpus", "--text", f"en={tmp_path}/short.txt", "--language-model", "none", "--out", str(tmp_path / "o")],
        )
