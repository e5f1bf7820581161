"""The compiled reader of language models: fastText's own answers, and one sentence for any damaged file."""

import random
import struct
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier, open_identifier
from tests.cases import cases

_lid = pytest.importorskip("mrs_suggest.common.text._lid", reason="needs the compiled part of the package")

LETTERS = "abcdefghijklmnoäßéçñдежзий日本語한국🙂"
ODD = [
    "", "</s>", "</s> </s>", "x</s>", "__label__l001", "__label__", "__label__xx y", "_", "<", ">", "\0", "a\0b",
    "\t\v\f\r", "\u3000", "\u00a0", "\u2028", "🎉", "👩\u200d👩\u200d👧", "e\u0301", "\ud800", "a\udfffb",
    "\ud83d\ude00", "\ufffd", "a" * 5000,
]  # fmt: skip
KINDS: dict[str, dict[str, Any]] = cases(__file__, "KINDS")
QUANTISED: dict[str, dict[str, Any]] = cases(__file__, "QUANTISED")


def words(draw: random.Random, count: int) -> list[str]:
    return ["".join(draw.choices(LETTERS, k=draw.randint(1, 7))) for _ in range(count)]


def make_model(folder: Path, kind: str, quantised: str) -> Path:
    """Train on 260 languages, as many as a quantised output needs, of four words each and of 40 common ones."""
    fasttext = pytest.importorskip("fasttext")
    draw = random.Random(5)
    common, lines = words(draw, 40), []
    for number in range(260):
        own = words(draw, 4) * 3 + common
        lines += [f"__label__l{number:03} {' '.join(draw.choices(own, k=6))}\n" for _ in range(1 + number % 6)]
    source, path = folder / "lines.txt", folder / "model.bin"
    source.write_text("".join(lines), encoding="utf-8")
    # Each thread sets a tenth of the matrix at the start, rounded down: with fewer than 11 some numbers stay unset.
    settings = {"epoch": 20, "lr": 0.5, "bucket": 900, "thread": 11, "verbose": 0} | KINDS[kind]
    model = fasttext.train_supervised(str(source), **settings)
    if QUANTISED[quantised]:
        model.quantize(input=str(source), **QUANTISED[quantised])
    model.save_model(str(path))
    return path


@cache
def texts(count: int) -> list[str]:
    """Words that models know, words that they do not know, and what is not a word, in any order."""
    draw, pieces = random.Random(5), random.Random(7)
    known = [word for number in range(261) for word in words(draw, 4 if number else 40)]

    def piece() -> str:
        kind = pieces.random()
        if kind < 0.6:
            return pieces.choice(known)
        return pieces.choice(ODD) if kind < 0.75 else "".join(words(pieces, 1)) + pieces.choice(known)[:3]

    lengths = (pieces.randint(0, 12) for _ in range(count))
    made = [pieces.choice((" ", "\n", "", "\r\n")).join(piece() for _ in range(length)) for length in lengths]
    return [*ODD, *made, " ".join(known) * 15]


def assert_fasttexts_answers(path: Path, asked: Sequence[str]) -> None:
    """Compare with fastText's answers for the same lines; it refuses halves of pairs, and would stop at `</s>`."""
    model = pytest.importorskip("fasttext").load_model(str(path))
    ours = LanguageIdentifier.open(path).identify(asked)
    plain = ["".join(" " if "\ud800" <= c <= "\udfff" else c for c in text).replace("\n", " ") for text in asked]
    lines = [" ".join(word for word in _split(text) if word != "</s>") for text in plain]
    labels, probabilities = model.predict([*lines, ""])
    nothing = (labels[-1], [float(share) for share in probabilities[-1]])
    for text, (language, share), label, probability in zip(asked, ours, labels, probabilities, strict=False):
        if language == "und":
            assert not text.strip() or (label, [float(one) for one in probability]) == nothing, text
        else:
            assert label == [f"__label__{language}"], text
            assert share == pytest.approx(min(float(probability[0]), 1.0), abs=1e-5), text
    assert {language for language, _ in ours} > {"und"}


def _split(text: str) -> list[str]:
    for space in "\r\t\v\f\0":
        text = text.replace(space, " ")
    return text.split(" ")


@pytest.mark.parametrize("quantised", QUANTISED)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answers_are_those_of_fasttext(tmp_path: Path, kind: str, quantised: str) -> None:
    assert_fasttexts_answers(make_model(tmp_path, kind, quantised), texts(1500))


def test_the_answers_of_lid_176_are_those_of_fasttext(shared_texts: list[str]) -> None:
    identifier = open_identifier(None)
    if identifier is None or not identifier.path.name.startswith("lid.176"):
        pytest.skip("needs lid.176: run `mrs install --language-model`, or set MRS_LANGUAGE_MODEL")
    assert_fasttexts_answers(identifier.path, [*shared_texts, *texts(1500)])


@pytest.fixture
def shared_texts(repository: Path) -> list[str]:
    """Real dialogues in many languages, where they are present."""
    files = (repository.parent / "shared" / "data" / "dialogues").rglob("*.tsv")
    return [line for file in sorted(files) for line in file.read_text(encoding="utf-8").splitlines()[:3000]]


@pytest.fixture(scope="module", params=["exact", "pruned"])
def content(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A model's file."""
    return make_model(tmp_path_factory.mktemp("damaged"), "tree", request.param).read_bytes()


def damaged(content: bytes) -> Iterator[bytes]:
    """The file cut off anywhere, and with wrong numbers, mostly in its first kilobytes, which hold the sizes."""
    draw = random.Random(3)
    for end in [*range(0, 400, 7), *(draw.randrange(len(content)) for _ in range(150)), len(content) - 1]:
        yield content[:end]
    numbers = [struct.pack("<i", number) for number in (-1, 0, 1, 2, 255, 70_000, 1 << 24, (1 << 31) - 1, -(1 << 31))]
    for place in [*range(0, 120, 4), *(draw.randrange(len(content)) for _ in range(300))]:
        for number in numbers if place < 120 else [draw.choice(numbers)]:
            yield content[:place] + number + content[place + 4 :]


def test_a_damaged_file_is_refused_or_answers(content: bytes) -> None:
    asked = "\n".join(texts(1500)[20:60]).encode("utf-8", "surrogatepass")
    refused = 0
    for changed in damaged(content):
        try:
            _lid.Model(changed).predict(asked)
        except (ValueError, MemoryError):
            refused += 1
    assert refused > 250


def test_an_early_end_numbers_that_are_not_finite_and_no_bytes_are_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.bin"
    path.write_bytes(content[:-1])
    with pytest.raises(InputError, match=r"cut\.bin: .* damaged or incomplete \(it ends too early\); fetch it again"):
        LanguageIdentifier.open(path)
    broken = content[:-400] + struct.pack("<f", float("nan")) * 100
    with pytest.raises(ValueError, match="not finite"):
        _lid.Model(broken).predict("\n".join(texts(1500)).encode("utf-8", "surrogatepass"))
    with pytest.raises(TypeError):
        _lid.Model(3)
    with pytest.raises(TypeError):
        _lid.Model(content).predict(["a text"])


def test_other_threads_run_during_a_prediction(content: bytes) -> None:
    model, lines = _lid.Model(content), "\n".join(texts(1500) * 5).encode("utf-8", "surrogatepass")
    steps, during = [0], [0]

    def predict() -> None:
        before = steps[0]
        model.predict(lines)
        during[0] = steps[0] - before

    thread = threading.Thread(target=predict)
    thread.start()
    while thread.is_alive():
        steps[0] += 1
    thread.join()
    assert during[0] > 0
