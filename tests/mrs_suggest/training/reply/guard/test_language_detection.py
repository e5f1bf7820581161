"""The detector of a run: how good it is on the embedded sample, where its threshold comes from, and adding it."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.common.io.manifest import require_undamaged
from mrs_suggest.evaluation.language_data import LanguageData, load_language
from mrs_suggest.suggest.language_detector import DETECTOR, SURE, LanguageDetector
from mrs_suggest.training.reply.guard.language_detection import add_detector, measure, train_detector

Texts = dict[str, list[str]]


@dataclass(frozen=True)
class Sample:
    parts: list[LanguageData]
    detector: LanguageDetector


@pytest.fixture(scope="module")
def sample() -> Sample:
    source = open_prepared("sample")
    parts = [load_language(source, code, {}, 42) for code in source.languages()]
    detector = train_detector(parts)
    assert detector is not None
    return Sample(parts, detector)


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
    """A chat bot's questions, with names, typing mistakes and missing accents; docs/training.md has the figures."""
    messages = {}
    for part in sample.parts:
        lines = (shared_data / "replies" / f"{part.language}.tsv").read_text(encoding="utf-8").split("\n")
        messages[part.language] = [line.partition("\t")[0] for line in lines if line]
    found = measure(sample.detector, messages)
    assert found.right / found.messages == pytest.approx(0.921, abs=0.005)
    assert found.sure / found.messages == pytest.approx(0.891, abs=0.005)
    assert found.sure_right / found.sure == pytest.approx(0.971, abs=0.005)


def test_one_language_needs_none(sample: Sample) -> None:
    assert train_detector(sample.parts[:1]) is None


def test_the_shipped_one_is_what_a_run_writes(sample: Sample, tmp_path: Path) -> None:
    sample.detector.save(tmp_path)
    shipped = read_baselines()["sample-retriever"].folder / DETECTOR
    assert shipped.read_bytes() == (tmp_path / DETECTOR).read_bytes()
    assert shipped.stat().st_size < 300_000


def test_adding_it_to_an_existing_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole, run = read_baselines()["sample-retriever"].folder, tmp_path / "run"
    shutil.copytree(whole, run)
    (run / DETECTOR).unlink()
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    del record["files"][DETECTOR]
    (run / "run.json").write_text(json.dumps(record))
    add_detector(run)
    assert "languages.safetensors; of 375 different test messages 3" in capsys.readouterr().out
    for name in (DETECTOR, "run.json", "README.md"):
        assert (run / name).read_bytes() == (whole / name).read_bytes()
    assert require_undamaged(run, verify=True) == len(record["files"]) + 1


def test_what_cannot_have_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no run\.json"):
        add_detector(tmp_path)
    record = {"trainer": "retrieval", "metrics": {}, "plan": {"test": ["es"]}, "arguments": {}}
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="answers only es, so there is nothing to detect"):
        add_detector(tmp_path)
