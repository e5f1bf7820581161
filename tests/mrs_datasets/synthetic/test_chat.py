"""The generated conversations: languages with the same content, splits that share no message, and a language model."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.synthetic import chat, generate
from mrs_datasets.synthetic.chat import LANGUAGES, SIZES, Drawn, draw_chat
from mrs_datasets.synthetic.generate import CHAT, LANGUAGE_MODEL, read_synthetic
from mrs_datasets.synthetic.grammar.surface import surfaces
from mrs_suggest.common.text.language_id import LanguageIdentifier

SEED = 3
Tables = dict[tuple[str, str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def drawn() -> Drawn:
    return draw_chat(SEED)


@pytest.fixture(scope="module")
def prepared(drawn: Drawn, tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    folder = tmp_path_factory.mktemp("chat") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chat, "draw_chat", lambda seed: drawn)  # once is enough
        prepare(CHAT, [f"synthetic:{SEED}"], folder)
    return open_prepared(str(folder))


@pytest.fixture(scope="module")
def tables(prepared: PreparedData) -> Tables:
    return {
        (config, split): pq.read_table(prepared.files(config, split)).to_pylist()
        for config in prepared.configs()
        for split in prepared.splits(config)
    }


def test_a_seed_gives_the_same_rows_and_another_seed_other_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "TEXT", 50)
    for split in SIZES:
        monkeypatch.setitem(SIZES, split, 20)
    once, again, other = (list(chat.tables(seed)) for seed in (SEED, SEED, 4))
    assert once == again
    assert once != other
    one, another = surfaces(SEED)["qaa"].words, surfaces(4)["qaa"].words
    assert sum(one[key] == another[key] for key in one) < len(one) / 4


def test_no_message_of_test_or_validation_is_seen_in_any_language(drawn: Drawn) -> None:
    """By meaning: neither as a message of training, nor as text for pretraining."""
    held_out = {message.clause() for exchanges in drawn.held_out.values() for message, _ in exchanges}
    assert len(held_out) == SIZES["validation"] + SIZES["test"]
    for code in LANGUAGES:
        assert held_out.isdisjoint(message.clause() for message, _ in drawn.seen[code])
        assert held_out.isdisjoint(drawn.text[code])
    assert drawn.seen["qaa"] != drawn.seen["qab"]


def test_the_folder_is_sound_and_has_a_language_model(prepared: PreparedData) -> None:
    assert not [finding for finding in check(prepared) if finding.level == "error"]
    assert prepared.languages() == list(LANGUAGES)
    pytest.importorskip("fasttext", reason="needs fasttext")
    path = Path(str(prepared.folder)) / LANGUAGE_MODEL
    identifier = LanguageIdentifier.open(path)
    for language in LANGUAGES:
        replies = prepared.load(language, "test")["reply"][:]
        found = identifier.identify(replies)
        assert sum(code == language and score > 0.7 for code, score in found) >= 0.95 * len(replies)
    assert path.stat().st_size < 500_000


def test_without_fasttext_the_report_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "can_train", lambda: False)
    monkeypatch.setattr(chat, "draw_chat", lambda seed: pytest.fail("drawn"))
    report = Report(CHAT)
    with pytest.raises(pytest.fail.Exception, match="drawn"):
        next(read_synthetic(CHAT, 1, report))
    assert any(LANGUAGE_MODEL in note for note in report.notes)
