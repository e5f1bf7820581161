"""The detector of a run: how good it is on the embedded sample, and where its threshold comes from."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.evaluation.language_data import LanguageData, load_language
from mrs_suggest.models.starting_points import DETECTOR
from mrs_suggest.suggest.language_detector import SURE, LanguageDetector
from mrs_suggest.training.retrieval.parts import train_detector

Texts = dict[str, list[str]]


@dataclass(frozen=True)
class Sample:
    parts: list[LanguageData]
    detector: LanguageDetector


@pytest.fixture(scope="module")
def sample() -> Sample:
    source = open_prepared("sample")
    parts = [load_language(source, code, {}, 42) for code in source.languages()]
    return Sample(parts, train_detector(parts))


@dataclass(frozen=True)
class Figures:
    """How many different messages a detector is right on, and sure of."""

    messages: int
    right: int
    sure: int
    sure_right: int


def measure(detector: LanguageDetector, messages: Texts, sure: float = SURE) -> Figures:
    found = [(code, *detector.rank(message)[0]) for code, own in messages.items() for message in dict.fromkeys(own)]
    right = [code == best for code, best, _ in found]
    sure_right = [code == best for code, best, probability in found if probability >= sure]
    return Figures(len(found), sum(right), len(sure_right), sum(sure_right))


def pieces(part: LanguageData) -> list[str]:
    """The messages of validation cut into pieces of two words, in Japanese of eight characters."""
    if part.language == "ja":
        return [text[at : at + 8] for text in part.validation["message"][:] for at in range(0, len(text), 8)]
    messages = [text.split() for text in part.validation["message"][:]]
    return [" ".join(words[at : at + 2]) for words in messages for at in range(0, len(words), 2)]


def test_test_messages_of_the_sample(sample: Sample) -> None:
    found = measure(sample.detector, {part.language: part.test["message"][:] for part in sample.parts})
    assert found.messages == 375
    assert found.right >= 0.97 * found.messages
    assert found.sure >= 0.97 * found.messages
    assert found.sure_right >= 0.99 * found.sure


def test_the_threshold_is_the_one_that_its_rule_gives(sample: Sample) -> None:
    """The least multiple of .05 with which 97 % of what is answered is right."""
    messages = {part.language: pieces(part) for part in sample.parts}
    figures = [(step / 20, measure(sample.detector, messages, step / 20)) for step in range(2, 20)]
    chosen = next(sure for sure, found in figures if found.sure_right >= 0.97 * found.sure)
    assert chosen == SURE


def test_messages_of_another_domain(sample: Sample, shared_data: Path) -> None:
    """A chat bot's questions, with names, typing mistakes and missing accents; docs/concepts/ranking.md rounds."""
    messages = {}
    for part in sample.parts:
        lines = (shared_data / "replies" / f"{part.language}.tsv").read_text(encoding="utf-8").split("\n")
        messages[part.language] = [line.partition("\t")[0] for line in lines if line]
    found = measure(sample.detector, messages)
    assert found.right / found.messages == pytest.approx(0.921, abs=0.005)
    assert found.sure / found.messages == pytest.approx(0.891, abs=0.005)
    assert found.sure_right / found.sure == pytest.approx(0.971, abs=0.005)


def test_the_shipped_one_knows_the_sample_too(sample: Sample) -> None:
    """It was trained on other conversations, mrs-everyday."""
    shipped = read_baselines()["everyday-retriever"].folder / DETECTOR
    assert shipped.stat().st_size < 300_000
    found = measure(LanguageDetector.load(shipped), {part.language: part.test["message"][:] for part in sample.parts})
    assert found.right / found.messages >= 0.97
    assert found.sure_right / found.sure >= 0.98
