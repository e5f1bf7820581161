"""What a run of STAPLE reads: tracks, blind splits, general translations, and the facts of its record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.catalogue import DatasetRecord
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.texts.text_sources import PairSource, Reading
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.generation.options import GenerationArguments
from mrs_suggest.training.staple.data import StapleData, is_blind, load_staple_data
from mrs_suggest.training.staple.draws import pairs_of
from tests.staple_source import write_source


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("staple")
    prepare("staple", [str(write_source(place / "source", blind=["test"]))], place / "data")
    return place


def load(folder: Path, **options: Any) -> StapleData:
    return load_staple_data(GenerationArguments(task="staple", data=str(folder / "data"), **options), 1, True)


def test_splits_and_facts(folder: Path) -> None:
    data = load(folder, max_train_examples=20)
    assert {name: len(rows["pt"]) for name, rows in (("train", data.train), ("test", data.test))} == {
        "train": 20, "test": 14
    }  # fmt: skip
    assert is_blind(data.test["pt"])
    assert not is_blind(data.validation["pt"])
    assert data.complete == [], "it has 14 prompts, the task's split 500"
    facts = data.facts()
    assert facts["data"]["licence"] == "cc-by-nc-4.0"
    assert facts["data"]["rows"]["pt"] == {"train": 20, "validation": 14, "test": 14}
    assert {data.train["pt"][0]["prompt"], data.train["pt"][0]["translations"][3]["text"]} <= set(data.texts())
    assert len(data.pairs()["pt"].pairs) == 80


def test_a_whole_split_is_known_and_a_sample_of_it_is_not(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_datasets.prepared.prepared import PreparedData

    report = PreparedData.report
    monkeypatch.setattr(PreparedData, "report", lambda self: {**report(self), "partial_splits": ["pt/train"]})
    assert load(folder).complete == ["pt"]
    assert load(folder, max_test_examples=13).complete == []
    assert load(folder, max_test_examples=14).complete == ["pt"]


@pytest.mark.parametrize(("value", "direction"), [
    ("en-pt=general.tsv", "from_english"), ("pt-en=turned.tsv", "from_english"), ("pt-en=turned.tsv", "to_english"),
])  # fmt: skip
def test_general_translations_are_turned_to_the_direction(
    folder: Path, value: str, direction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("general.tsv").write_text("a cat\tum gato\n\nhi \toi\n", encoding="utf-8")
    Path("turned.tsv").write_text("um gato\ta cat\noi\thi\n", encoding="utf-8")
    data = load(folder, parallel=[value], direction=direction)
    pairs = list(zip(data.parallel["pt"]["message"][:], data.parallel["pt"]["reply"][:], strict=True))
    expected = [("a cat", "um gato"), ("hi", "oi")]
    assert pairs == (expected if direction == "from_english" else [pair[::-1] for pair in expected])
    assert data.parallel_sources[0]["pairs"] == 2
    assert set(data.texts()) >= {"um gato", "hi"}


def test_general_text_alone_needs_no_training_split(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("hi\toi\n", encoding="utf-8")
    data = load(folder, parallel=[f"en-pt={tmp_path / 'a.tsv'}"], parallel_mode="first")
    assert (data.train, data.facts()["plan"]["draw"]) == ({}, None)
    assert data.languages == ["pt"]


def test_translations_of_a_known_data_set_need_no_columns(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the catalogue knows one column in each of the languages; a track has two in its own."""
    source = PairSource.parse(f"pt-en={folder / 'data'}:pt:validation", "--parallel")
    with pytest.raises(InputError, match="no columns pt and en; pass --parallel_columns, two of id prompt reference"):
        list(source.items(Reading()))
    kind_of, texts = DatasetRecord.kind_of, {"{language}": ("reference",), "en": ("prompt",)}
    monkeypatch.setattr(DatasetRecord, "kind_of", lambda self, config: replace(kind_of(self, config), texts=texts))
    pairs = list(source.items(Reading()))
    assert pairs[0] == ("eu como o pão", "i eat the bread")


def test_accepted_translations_read_once_score_as_each_time(folder: Path) -> None:
    from mrs_metrics.translations_f1 import score_translations
    from mrs_suggest.evaluation.scores.score_staple import Accepted

    rows = load(folder).validation["pt"].to_list()
    predictions = {row["id"]: [row["translations"][n]["text"].upper() + "!" for n in (0, 2)] for row in rows[1:]}
    ours, theirs = Accepted(rows).score(predictions), score_translations(rows, predictions)
    assert ours.weighted_f1.tolist() == theirs.weighted_f1.tolist()
    assert (ours.missing, ours.signature) == (theirs.missing, theirs.signature)


def test_prompts_of_the_task_are_read(shared_data: Path, tmp_path: Path) -> None:
    """Its sample has a validation split alone; weights of each prompt sum to 1."""
    prepare("staple", [str(shared_data / "staple")], tmp_path / "data")
    (tmp_path / "a.tsv").write_text("hi\toi\n", encoding="utf-8")
    data = load(tmp_path, parallel=[f"en-pt={tmp_path / 'a.tsv'}"], parallel_mode="first")
    assert (len(data.validation["pt"]), data.test) == (150, {})
    drawn = pairs_of(data.validation["pt"], "weighted", None, "from_english")
    assert len(drawn.sizes) == 150
    assert drawn.weights.sum() == pytest.approx(150, abs=1e-6)
    best = pairs_of(data.validation["pt"], "top", 1, "from_english")
    assert best.pairs["message"][:] == data.validation["pt"]["prompt"][:]
    with pytest.raises(InputError, match="pt/train: there is no such split, and the run needs it; pt has validation"):
        load(tmp_path)
