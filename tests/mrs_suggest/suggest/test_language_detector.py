"""The language of a message among few: training, probabilities, and the file."""

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest import language_detector
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.suggester import Suggester

TEXTS = {
    "en": ["where are you", "are you there", "see you there"],
    "es": ["¿dónde estás?", "¿estás ahí?", "hasta mañana, ¿eh?"],
    "ja": ["どこですか", "そうですか", "はい、そうです"],
}


@pytest.fixture(scope="module")
def detector() -> LanguageDetector:
    return LanguageDetector.train(TEXTS)


def test_probabilities_of_all_languages_best_first(detector: LanguageDetector) -> None:
    for message, language in (("you there?", "en"), ("¿Y mañana?", "es"), ("そうで", "ja"), ("ＹＯＵ", "en")):
        ranked = detector.rank(message)
        assert ranked[0][0] == language
        assert {code for code, _ in ranked} == set(TEXTS)
        probabilities = [probability for _, probability in ranked]
        assert probabilities == sorted(probabilities, reverse=True)
        assert sum(probabilities) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("message", ["", "  \n", "123 456", "👍🏽", "안녕", "\ud800"])
def test_what_says_nothing_leaves_all_languages_equal(detector: LanguageDetector, message: str) -> None:
    assert [probability for _, probability in detector.rank(message)] == pytest.approx([1 / 3] * 3)


def test_equal_texts_count_once_and_the_order_does_not_matter(tmp_path: Path) -> None:
    again = LanguageDetector.train({code: [*reversed(texts), *texts] for code, texts in TEXTS.items()})
    for message in ("you", "está", "です"):
        assert again.rank(message) == LanguageDetector.train(TEXTS).rank(message)
    LanguageDetector.train({"en": ["hello"], "es": ["hola"]}).save(tmp_path)
    assert LanguageDetector.load(tmp_path / DETECTOR).rank("hello") == [("en", 0.5), ("es", 0.5)]


def test_the_file(detector: LanguageDetector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    detector.save(tmp_path)
    other = LanguageDetector.load(tmp_path / DETECTOR)
    assert other.languages == list(TEXTS)
    for message in ("you there?", "¿Y mañana?", "どこ"):
        assert other.rank(message) == detector.rank(message)
    assert {name: table.dtype for name, table in load_file(tmp_path / DETECTOR).items()} == {
        "languages": np.uint8, "ngrams": np.uint8, "weights": np.float16,
    }  # fmt: skip
    monkeypatch.setattr(language_detector, "MOST_NGRAMS", 10)
    LanguageDetector.train(TEXTS).save(tmp_path)
    assert load_file(tmp_path / DETECTOR)["weights"].shape == (10, 3)


def test_a_damaged_file_is_refused(detector: LanguageDetector, tmp_path: Path) -> None:
    path = tmp_path / DETECTOR
    detector.save(tmp_path)
    whole = load_file(path)
    for name, table in (
        ("weights", whole["weights"][:, :2]),
        ("weights", whole["weights"] * np.float16("nan")),
        ("ngrams", whole["ngrams"][:-5]),
        ("languages", np.array([255], np.uint8)),
    ):
        save_file({**whole, name: np.ascontiguousarray(table)}, path)
        with pytest.raises(InputError, match=r"languages\.safetensors: damaged"):
            LanguageDetector.load(path)
    save_file({"weights": whole["weights"]}, path)
    with pytest.raises(InputError, match="damaged"):
        LanguageDetector.load(path)
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(InputError, match="damaged"):
        LanguageDetector.load(path)


class Echo(ServedModel):
    """Answers with the language."""

    @property
    def languages(self) -> list[str]:
        return list(TEXTS)

    def suggest(self, messages: object, language: str, k: int = 3) -> list[list[Suggestion]]:
        assert isinstance(messages, list)
        return [[Suggestion(f"{language}: {message}", 0.0)] * k for message in messages]


def test_a_suggester_detects_message_by_message(detector: LanguageDetector, tmp_path: Path) -> None:
    detector.save(tmp_path)
    suggester = Suggester(Echo(), tmp_path)
    messages = ["where are you", "", "はい、そうです", "안녕", "¿estás ahí?", "are you there"]
    found = suggester.suggest(messages, k=1)
    expected = ["en: where are you", None, "ja: はい、そうです", None, "es: ¿estás ahí?", "en: are you there"]
    assert [row[0].reply if row else None for row in found] == expected
    assert suggester.suggest([]) == []
    assert suggester.detect("are you there")[0] == suggester.sure_language("are you there") == "en"
    assert suggester.sure_language("안녕") is None
    assert suggester.suggest("are you there", k=1) == found[-1]
    with pytest.raises(ArgumentError, match="k=0"):
        suggester.suggest(["are you there"], k=0)
    with pytest.raises(ArgumentError, match="found NoneType"):
        suggester.detect(None)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"no languages\.safetensors"):
        Suggester(Echo()).detect("are you there")
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter.json").write_text("{}")
    detector.save(tmp_path)
    assert Suggester(Echo(), tmp_path / "adapter").detect("are you there")[0] == "en"


def test_it_identifies_as_fasttext_does() -> None:
    detector = LanguageDetector.train({"en": ["the cat", "the dog"], "es": ["el gato", "el perro"]})
    texts = ["the bird", "el pájaro", "123", ""]
    expected = [detector.rank(text)[0] for text in texts[:2]]
    assert detector.identify(texts) == [*expected, ("und", 0.0), ("und", 0.0)]
    assert [language for language, _ in expected] == ["en", "es"]
    assert LanguageDetector.train({"en": ["the cat", "the dog"]}).identify(["the bird"]) == [("en", 1.0)]
