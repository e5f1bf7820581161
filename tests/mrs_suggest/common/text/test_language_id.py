"""Language identification: a small model that fastText really trains, damaged files, and downloads from loopback."""

from __future__ import annotations

import hashlib
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.common.text import language_id
from mrs_suggest.common.text.language_id import (
    MODEL_URL,
    MODEL_VARIABLE,
    LanguageIdentifier,
    default_model_path,
    download_language_model,
)

SENTENCES = {
    "en": "what are you doing tonight|thanks for the help|the weather is really nice|see you in the morning then",
    "de": "was machst du heute abend|danke für die hilfe|das wetter ist wirklich schön|wir sehen uns morgen früh",
    "ru": "что ты делаешь вечером|спасибо за помощь|погода сегодня хорошая|увидимся завтра утром",
}
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
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return files of models: of n-grams, quantised, of words alone, and one that is no classifier."""
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.bin" for name in ("ngrams", "quantised", "words", "vectors")}
    model = train(folder, minn=1, maxn=3)
    model.save_model(str(paths["ngrams"]))
    model.quantize(input=str(folder / "sentences.txt"), cutoff=300, qnorm=True)
    model.save_model(str(paths["quantised"]))
    train(folder, minn=0, maxn=0).save_model(str(paths["words"]))
    train(folder, labels=False, minCount=1).save_model(str(paths["vectors"]))
    return paths


@pytest.fixture(scope="session")
def identifier(models: dict[str, Path]) -> LanguageIdentifier:
    return LanguageIdentifier.open(models["ngrams"])


def refusal(path: Path | None) -> str:
    """Return the sentence with which a model file is refused."""
    with pytest.raises(InputError) as caught:
        LanguageIdentifier.open(path)
    assert path is None or str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("kind", ["ngrams", "quantised"])
def test_new_sentences_get_their_language(models: dict[str, Path], kind: str) -> None:
    found = LanguageIdentifier.open(models[kind]).identify(list(NEW))
    assert [code for code, _ in found] == list(NEW.values())
    assert all(0.4 < probability <= 1.0 for _, probability in found)


def test_the_languages_are_those_of_the_labels(identifier: LanguageIdentifier) -> None:
    assert identifier.languages == {"en", "de", "ru"}
    assert [identifier.knows(code) for code in ("de", "__label__de", "zh")] == [True, False, False]


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
def test_what_would_stop_fasttext_counts_as_a_space(identifier: LanguageIdentifier, stop: str) -> None:
    (whole,) = identifier.identify(["what wirklich danke für die hilfe"])
    assert identifier.identify([f"what{stop}wirklich danke für die hilfe"]) == [whole]
    assert (whole[0], identifier.identify(["what"])[0][0]) == ("de", "en")
    inside = "x</s>y"  # here it is a part of a word, for fastText too
    assert identifier.identify([inside])[0][1] == pytest.approx(float(identifier._model.predict([inside])[1][0][0]))


def test_texts_of_which_the_model_knows_nothing_are_undetermined(
    models: dict[str, Path], identifier: LanguageIdentifier
) -> None:
    words = LanguageIdentifier.open(models["words"])
    assert words.identify(["", " \u3000\n", "DANKE", "🎉", "danke"])[:4] == [("und", 0.0)] * 4
    assert words.identify(["DANKE danke"])[0][0] == "de"
    assert identifier.identify(["", " ", "\u3000", "\u2028\x85"]) == [("und", 0.0)] * 4


class Answers:
    """A model that answers as lid.176 may: above 1, and nothing at all."""

    def get_labels(self) -> list[str]:
        return ["__label__sv"]

    def predict(self, lines: list[str]) -> tuple[list[Any], list[Any]]:
        known = [line == "hej" for line in lines]
        return [("__label__sv",) if sv else () for sv in known], [(1.00003,) if sv else () for sv in known]


def test_a_probability_is_at_most_one_and_no_answer_is_undetermined() -> None:
    identifier = LanguageIdentifier(Answers(), Path("lid.bin"))
    assert identifier.identify(["hej", "HEJ", "hej"]) == [("sv", 1.0), ("und", 0.0), ("sv", 1.0)]


def test_one_text_in_place_of_a_list_and_an_empty_batch_are_refused(identifier: LanguageIdentifier) -> None:
    with pytest.raises(TypeError, match=r"\[text\]"):
        identifier.identify("danke")
    with pytest.raises(ValueError, match="batch_size"):
        identifier.identify(["danke"], batch_size=-1)
    assert identifier.identify([]) == []


def test_an_identifier_goes_to_other_processes(identifier: LanguageIdentifier) -> None:
    copy = pickle.loads(pickle.dumps(identifier))
    assert copy.identify(list(NEW)) == identifier.identify(list(NEW))


def test_the_model_is_looked_for_in_the_variable_and_then_in_the_cache(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(MODEL_VARIABLE, raising=False)
    cached = default_model_path()
    assert cached == tmp_path / "mrs-suggest" / "lid.176.ftz"
    assert all(part in refusal(None) for part in (MODEL_URL, MODEL_VARIABLE, str(cached)))
    cached.parent.mkdir()
    cached.write_bytes(models["words"].read_bytes())
    assert LanguageIdentifier.open().path == cached
    monkeypatch.setenv(MODEL_VARIABLE, str(models["ngrams"]))
    assert LanguageIdentifier.open(None).path == models["ngrams"]
    assert LanguageIdentifier.open(str(models["words"])).path == models["words"]
    monkeypatch.setenv(MODEL_VARIABLE, str(tmp_path / "gone.bin"))
    assert f"gone.bin (from the environment variable {MODEL_VARIABLE})" in refusal(None)


def test_fasttext_is_imported_when_a_model_is_opened(models: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import sys, mrs_suggest.common.text.language_id; sys.exit('fasttext' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(MissingExtraError, match=r"\.\[langid\]"):
        LanguageIdentifier.open(models["ngrams"])


def test_loading_says_nothing(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fasttext = pytest.importorskip("fasttext")
    load = fasttext.load_model

    def talkative(path: str) -> Any:  # as fasttext 0.9.2 does
        print("Warning : `load_model` does not return ...", file=sys.stderr)
        return load(path)

    monkeypatch.setattr(fasttext, "load_model", talkative)
    LanguageIdentifier.open(models["ngrams"])
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", ["ngrams", "quantised", "words"])
def test_a_model_that_is_cut_off_is_refused(models: dict[str, Path], kind: str, tmp_path: Path) -> None:
    whole = models[kind].read_bytes()
    path = tmp_path / "cut.bin"
    for cut in (0, 3, 4, 8, 50, 63, 64, 70, 96, 300, *(len(whole) * part // 99 for part in (33, 50, 96)), -90, -1):
        path.write_bytes(whole[:cut])
        assert "fastText model" in refusal(path)
    path.write_bytes(whole + b"\0")
    assert "more bytes" in refusal(path)


def places(model: bytes) -> dict[str, int]:
    """Return where the parts of a model with float32 matrices (or of a pruned one, up to its n-grams) start."""
    size, words, labels, _, kept = struct.unpack_from("<3i2q", model, 64)
    at = entry = 92
    for _ in range(size):
        at = model.index(b"\0", at) + 1 + 9
    found = {"count": model.index(b"\0", entry) + 1, "n-grams": at, "matrix": at + 8 * max(kept, 0) + 1}
    return found | {"output": len(model) - 4 * 8 * labels - 16, "words": words}


@pytest.mark.parametrize(
    ("at", "layout", "values"),
    [
        (4, "i", [99]),  # version
        (8, "i", [0]),  # dim
        (8, "i", [9]),
        (32, "i", [0]),  # loss
        (36, "i", [9]),  # kind of model
        (40, "i", [0]),  # bucket: fastText divides by it
        (40, "i", [1 << 30]),
        (64, "i", [-1]),  # size of the dictionary
        (68, "i", [1]),  # words
        (72, "i", [0]),  # labels
        (84, "q", [1 << 30]),  # kept n-grams
        ("count", "q", [-1]),
        ("count", "qb", [1, 1]),  # a label among the words
        ("matrix", "2q", [-1, -8]),
        ("output", "2q", [2, 12]),  # as many numbers as before
    ],
)
def test_a_number_that_would_take_fasttext_down_is_refused(
    models: dict[str, Path], tmp_path: Path, at: int | str, layout: str, values: list[int]
) -> None:
    contents = bytearray(models["ngrams"].read_bytes())
    place = places(bytes(contents))[at] if isinstance(at, str) else at
    struct.pack_into(f"<{layout}", contents, place, *values)
    path = tmp_path / "damaged.bin"
    path.write_bytes(contents)
    assert "damaged" in refusal(path)


def test_vectors_and_n_grams_that_do_not_fit_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    words, pruned = models["words"].read_bytes(), models["quantised"].read_bytes()
    rows = places(words)["words"]
    damages = [
        (words, places(words)["matrix"], struct.pack("<2q", 2 * rows, 4)),  # as many numbers as before
        (words, places(words)["matrix"], struct.pack("<2q", rows // 2, 16)),
        (pruned, places(pruned)["n-grams"] + 4, struct.pack("<i", -1)),
        (pruned, places(pruned)["n-grams"] + 4, struct.pack("<i", 1 << 20)),
        (pruned, places(pruned)["matrix"] + 1, struct.pack("<q", 1 << 40)),
    ]
    path = tmp_path / "damaged.bin"
    for model, at, value in damages:
        path.write_bytes(model[:at] + value + model[at + len(value) :])
        assert "damaged" in refusal(path)


def test_numbers_that_are_not_finite_are_the_files_fault(models: dict[str, Path], tmp_path: Path) -> None:
    contents = bytearray(models["words"].read_bytes())
    path = tmp_path / "nan.bin"
    nan = struct.pack("<8f", *[float("nan")] * 8)
    first = places(bytes(contents))["matrix"] + 16  # the vector of the first word: that of the line's end
    contents[first : first + 32] = nan
    path.write_bytes(contents)
    assert "damaged" in refusal(path)
    contents[first : first + 32] = bytes(32)
    contents[first + 32 : first + 64] = nan
    path.write_bytes(contents)
    identifier = LanguageIdentifier.open(path)
    with pytest.raises(InputError, match=r"nan\.bin.*damaged"):
        identifier.identify(" ".join(SENTENCES.values()).replace("|", " ").split())


def test_files_that_are_no_language_model_are_refused(models: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "lid.176.ftz"
    page.write_text("<html>Moved</html>")
    assert "expected a fastText model" in refusal(page)
    assert "word vectors" in refusal(models["vectors"])
    assert "no language model there" in refusal(tmp_path)
    labelled = tmp_path / "labelled.bin"
    labelled.write_bytes(models["ngrams"].read_bytes().replace(b"__label__", b"__topic__"))
    assert "__label__CODE" in refusal(labelled)


BODY = bytes(range(256)) * 1000
DIGEST = hashlib.sha256(BODY).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """Sends BODY: whole, cut off, without its length, after a redirect; anything else is not there."""

    def do_GET(self) -> None:
        name = self.path.strip("/")
        if name == "moved":
            self.send_response(302)
            self.send_header("Location", "/whole")
        elif name in ("whole", "cut", "endless"):
            self.send_response(200)
            if name != "endless":
                self.send_header("Content-Length", str(len(BODY)))
        else:
            self.send_error(404)
            return
        self.end_headers()
        self.wfile.write({"moved": b"", "cut": BODY[:100_000]}.get(name, BODY))

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """Return the address of a server on loopback."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join(timeout=5)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.parametrize("name", ["whole", "moved", "endless"])
def test_a_download_with_the_right_checksum_arrives(
    server: str, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "new" / "lid.ftz"
    assert download_language_model(target, f"{server}/{name}", DIGEST.upper()) == target
    assert target.read_bytes() == BODY
    assert [path.name for path in target.parent.iterdir()] == ["lid.ftz"]
    assert target.stat().st_mode & 0o444 == 0o444 & ~language_id.umask()
    assert capfd.readouterr() == ("", "")  # a bar is for terminals


def test_a_file_that_is_right_already_is_kept(server: str, tmp_path: Path) -> None:
    target = tmp_path / "lid.ftz"
    target.write_bytes(BODY)
    download_language_model(target, f"{server}/not-there", DIGEST.upper())
    target.write_bytes(b"an older model")
    download_language_model(target, f"{server}/whole", DIGEST)
    assert target.read_bytes() == BODY


@pytest.mark.parametrize(
    ("name", "settings", "sentence"),
    [
        ("whole", {"sha256": "0" * 64}, f"got {DIGEST}"),
        ("cut", {}, "after 100,000 of 256,000 bytes"),
        ("cut", {"sha256": hashlib.sha256(BODY[:100_000]).hexdigest()}, "after 100,000 of 256,000 bytes"),
        ("not-there", {}, "404"),
        ("whole", {"max_bytes": len(BODY) - 1}, "at most 255,999 bytes"),
        ("endless", {"max_bytes": len(BODY) - 1}, "at most 255,999 bytes"),
        ("whole", {"sha256": "md5"}, "is not a SHA-256"),
    ],
)
def test_a_download_that_fails_leaves_nothing_behind(
    server: str, tmp_path: Path, name: str, settings: dict[str, Any], sentence: str
) -> None:
    old = tmp_path / "old.ftz"
    old.write_bytes(b"an older model")
    for target in (old, tmp_path / "a" / "b" / "lid.ftz"):
        with pytest.raises(InputError) as caught:
            download_language_model(target, f"{server}/{name}", **{"sha256": DIGEST} | settings)
        assert sentence in str(caught.value)
        assert f"{server}/{name}" in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["old.ftz"]
    assert old.read_bytes() == b"an older model"


def test_places_and_addresses_that_cannot_be_are_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    cases = {
        (tmp_path / "file" / "lid.ftz", f"{server}/whole"): "choose another place",
        (tmp_path, f"{server}/whole"): "is a folder",
        (tmp_path / "lid.ftz", (tmp_path / "file").as_uri()): "https://",
        (tmp_path / "lid.ftz", "http://127.0.0.1:1/lid.ftz"): "cannot be fetched",
    }
    for (target, url), sentence in cases.items():
        with pytest.raises(InputError) as caught:
            download_language_model(target, url, DIGEST)
        assert sentence in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_interrupted_download_leaves_nothing_behind(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[bytes]:
        yield BODY
        raise KeyboardInterrupt

    monkeypatch.setattr(language_id, "_fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        download_language_model(tmp_path / "a" / "lid.ftz", f"{server}/whole", DIGEST)
    assert list(tmp_path.iterdir()) == []
