"""Language identification: a small model that fastText really trains, damaged files, and downloads from loopback."""

import hashlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.common.text import language_id
from mrs_suggest.common.text.language_id import (
    MODEL_VARIABLE,
    LanguageIdentifier,
    default_model_path,
    download_language_model,
)
from tests.file_server import CUT, served

SENTENCES = {
    "en": "what are you doing tonight|thanks for the help|the weather is really nice|see you in the morning then",
    "de": "was machst du heute abend|danke für die hilfe|das wetter ist wirklich schön|wir sehen uns morgen früh",
    "ru": "что ты делаешь вечером|спасибо за помощь|погода сегодня хорошая|увидимся завтра утром",
}
Models = dict[str, Path]
NEW = {"the help is nice": "en", "wirklich danke": "de", "спасибо, увидимся": "ru"}


def train(folder: Path, labels: bool = True, **settings: Any) -> Any:
    """Return a fastText model of the sentences above."""
    fasttext = pytest.importorskip("fasttext")
    source = folder / "sentences.txt"
    lines = [
        f"__label__{code} {text}" if labels else text for code, texts in SENTENCES.items() for text in texts.split("|")
    ]
    source.write_text("\n".join(lines * 8) + "\n", encoding="utf-8")
    kind = fasttext.train_supervised if labels else fasttext.train_unsupervised
    # Each thread sets a tenth of the matrix at the start, rounded down: with fewer than 11 some numbers stay unset.
    settings = {"dim": 8, "epoch": 25, "lr": 0.5, "bucket": 500, "thread": 11, "verbose": 0} | settings
    return kind(str(source), **settings)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Files of models: of n-grams, quantised, of words alone, and one that is not a classifier."""
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.bin" for name in ("ngrams", "quantised", "words", "vectors")}
    model = train(folder, minn=1, maxn=3)
    model.save_model(str(paths["ngrams"]))
    model.quantize(input=str(folder / "sentences.txt"), cutoff=300, qnorm=True)
    model.save_model(str(paths["quantised"]))
    train(folder, minn=0, maxn=0).save_model(str(paths["words"]))
    train(folder, labels=False, minCount=1).save_model(str(paths["vectors"]))
    return paths


@pytest.fixture(scope="session", params=["compiled", "fasttext"])
def identifier(request: pytest.FixtureRequest, models: Models) -> LanguageIdentifier:
    """An identifier by the compiled reader, and one as where there is no compiler."""
    if request.param == "compiled":
        pytest.importorskip("mrs_suggest.common.text._lid", reason="needs the compiled part of the package")
        return LanguageIdentifier.open(models["ngrams"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_id, "_lid", None)
        return LanguageIdentifier.open(models["ngrams"])


def refusal(path: Path | None) -> str:
    """Return the sentence with which a model file is refused."""
    with pytest.raises(InputError) as caught:
        LanguageIdentifier.open(path)
    assert path is None or str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["ngrams", "quantised"])
def test_new_sentences_get_their_language(models: Models, kind: str) -> None:
    found = LanguageIdentifier.open(models[kind]).identify(list(NEW))
    assert [code for code, _ in found] == list(NEW.values())
    assert all(0.4 < probability <= 1.0 for _, probability in found)


@given(st.lists(st.text() | st.text("a\n\0 </s>_") | st.sampled_from(list(NEW)), max_size=12), st.integers(1, 12))
def test_any_text_gets_an_answer_that_the_batch_does_not_change(
    identifier: LanguageIdentifier, texts: list[str], batch_size: int
) -> None:
    found = identifier.identify(texts, batch_size=batch_size)
    assert found == identifier.identify(texts) == [identifier.identify([text])[0] for text in texts]
    for text, (code, probability) in zip(texts, found, strict=True):
        assert 0.0 <= probability <= 1.0
        assert code in identifier.languages if probability else code == "und"
        assert text.strip() or (code, probability) == ("und", 0.0)


@pytest.mark.parametrize("stop", ["\n", "\r\n", "\ud83d", " </s> ", "\n</s> </s>\n"])
def test_what_would_stop_fasttext_counts_as_a_space(models: Models, identifier: LanguageIdentifier, stop: str) -> None:
    (whole,) = identifier.identify(["what wirklich danke für die hilfe"])
    assert identifier.identify([f"what{stop}wirklich danke für die hilfe"]) == [whole]
    assert (whole[0], identifier.identify(["what"])[0][0]) == ("de", "en")
    inside = "x</s>y"  # here it is a part of a word, for fastText too
    _, probabilities = pytest.importorskip("fasttext").load_model(str(models["ngrams"])).predict([inside])
    assert identifier.identify([inside])[0][1] == pytest.approx(float(probabilities[0][0]))


def test_texts_of_which_the_model_knows_nothing_are_undetermined(
    models: Models, identifier: LanguageIdentifier
) -> None:
    words = LanguageIdentifier.open(models["words"])
    assert words.identify(["", " \u3000\n", "DANKE", "🎉", "danke"])[:4] == [("und", 0.0)] * 4
    assert words.identify(["DANKE danke"])[0][0] == "de"
    assert identifier.identify(["", " ", "\u3000", "\u2028\x85"]) == [("und", 0.0)] * 4


class Answers:
    """A model of fastText that answers as lid.176 may: above 1, and nothing at all."""

    def get_labels(self) -> list[str]:
        return ["__label__sv"]

    def predict(self, lines: list[str]) -> tuple[list[Any], list[Any]]:
        known = [line == "hej" for line in lines]
        return [("__label__sv",) if sv else () for sv in known], [(1.00003,) if sv else () for sv in known]


def test_a_probability_is_at_most_one_and_no_answer_is_undetermined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(language_id, "_lid", None)
    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(load_model=lambda path: Answers()))
    path = tmp_path / "lid.bin"
    path.write_bytes(language_id.MAGIC)
    identifier = LanguageIdentifier.open(path)
    assert identifier.identify(["hej", "HEJ", "hej"]) == [("sv", 1.0), ("und", 0.0), ("sv", 1.0)]


def test_a_list_is_needed_and_an_identifier_goes_to_other_processes(identifier: LanguageIdentifier) -> None:
    with pytest.raises(TypeError, match=r"\[text\]"):
        identifier.identify("danke")
    assert identifier.identify([]) == []
    copy = pickle.loads(pickle.dumps(identifier))
    assert copy.identify(list(NEW)) == identifier.identify(list(NEW))


def test_the_model_is_looked_for_in_the_variable_and_then_in_the_cache(
    models: Models, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    cached = default_model_path()
    assert cached == tmp_path / "mrs-suggest" / "lid.176.ftz"
    assert all(part in refusal(None) for part in ("`mrs install --language-model`", MODEL_VARIABLE, str(cached)))
    cached.parent.mkdir()
    cached.write_bytes(models["words"].read_bytes())
    monkeypatch.setattr(language_id, "KNOWN_SHA256", {})
    assert LanguageIdentifier.open().path == cached
    monkeypatch.setenv(MODEL_VARIABLE, str(models["ngrams"]))
    assert LanguageIdentifier.open(None).path == models["ngrams"]
    assert LanguageIdentifier.open(str(models["words"])).path == models["words"]
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "gone.bin"))
    assert f"gone.bin (from the environment variable {MODEL_VARIABLE})" in refusal(None)


def test_fasttext_is_imported_only_where_the_compiled_part_is_missing(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys, mrs_suggest.common.text.language_id; sys.exit('fasttext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    monkeypatch.setitem(sys.modules, "fasttext", None)
    if language_id._lid:
        assert LanguageIdentifier.open(models["ngrams"]).identify(["danke für die hilfe"])[0][0] == "de"
    monkeypatch.setattr(language_id, "_lid", None)
    with pytest.raises(MissingExtraError, match=r"\.\[langid\]"):
        LanguageIdentifier.open(models["ngrams"])


def test_files_that_are_not_a_language_model_are_refused(models: Models, tmp_path: Path) -> None:
    page = tmp_path / "model.bin"
    page.write_text("<html>Moved</html>")
    assert "expected a fastText model" in refusal(page)
    page.write_bytes(language_id.MAGIC + bytes(60))
    assert "damaged or incomplete" in refusal(page)
    assert "__label__CODE" in refusal(models["vectors"])
    assert "no such file" in refusal(tmp_path)
    for name in ("lid.176.ftz", "lid.176.bin"):  # published files, damaged
        (tmp_path / name).write_bytes(models["words"].read_bytes()[:-1])
        assert "its SHA-256 is not that of the published file" in refusal(tmp_path / name)


BODY = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def faults() -> list[int | None]:
    """What goes wrong with the next downloads."""
    return []


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, faults: list[int | None]) -> Iterator[str]:
    """Return the address of a server on loopback, which has BODY."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "whole").write_bytes(BODY)
    with served(folder, faults=faults) as url:
        yield url


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


def test_a_download_with_the_right_checksum_arrives(server: str, tmp_path: Path) -> None:
    target = tmp_path / "new" / "lid.ftz"
    assert download_language_model(target, f"{server}/whole", DIGEST) == target
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["lid.ftz"]
    download_language_model(target, f"{server}/not-there", DIGEST)  # is there already
    target.write_bytes(b"an older model")
    download_language_model(target, f"{server}/whole", DIGEST)
    assert target.read_bytes() == BODY


@pytest.mark.parametrize(
    ("name", "fault", "sha256", "sentence"),
    [
        ("whole", None, "0" * 64, f"found {DIGEST}"), ("whole", CUT, DIGEST, "in 85,333 bytes"),
        ("not-there", None, DIGEST, "404"),
    ],
)  # fmt: skip
def test_a_download_that_fails_leaves_the_old_file(
    server: str, faults: list[int | None], tmp_path: Path, name: str, fault: int | None, sha256: str, sentence: str
) -> None:
    faults.append(fault)
    old = tmp_path / "old.ftz"
    old.write_bytes(b"an older model")
    with pytest.raises(InputError, match=sentence) as caught:
        download_language_model(old, f"{server}/{name}", sha256)
    assert f"{server}/{name}" in str(caught.value)
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"an older model"]


def test_targets_and_addresses_that_cannot_be_used_are_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cases = {
        (tmp_path / "file" / "lid.ftz", f"{server}/whole"): "cannot be written",
        (tmp_path, f"{server}/whole"): "cannot be written",
        (tmp_path / "lid.ftz", "lid.176.ftz"): "cannot be downloaded",
        (tmp_path / "lid.ftz", "http://127.0.0.1:1/lid.ftz"): "cannot be downloaded",
    }
    for (target, url), sentence in cases.items():
        with pytest.raises(InputError, match=sentence):
            download_language_model(target, url, DIGEST)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
