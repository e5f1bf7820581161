"""The generated conversations: languages that say the same, splits that share no message, and a language model."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.synthetic.grammar.clauses import NAMES, english
from mrs_datasets.synthetic.grammar.exchanges import ACTS, World, draw_message, known_pairs
from mrs_datasets.synthetic.grammar.surface import LEFT_WORD, RULES, surfaces
from mrs_datasets.synthetic.readers.synthetic_chat import (
    LANGUAGE_MODEL,
    RECORD,
    SIZES,
    TEXT,
    draw_chat,
    read_synthetic_chat,
)
from mrs_suggest.common.text.language_id import LanguageIdentifier

Tables = dict[tuple[str, str], list[dict[str, Any]]]
MADE_UP = tuple(RULES)


def generated(seed: int) -> Tables:
    report = Report("synthetic-chat")
    return {(config, split): table.to_pylist() for config, split, table in read_synthetic_chat(seed, report)}


@pytest.fixture(scope="module")
def tables() -> Tables:
    return generated(3)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("chat") / "data"
    prepare("synthetic-chat", ["synthetic:5"], folder)
    return folder


def test_a_seed_gives_the_same_rows_and_another_seed_other_words(tables: Tables) -> None:
    assert generated(3) == tables
    one, other = surfaces(3)["qaa"].words, surfaces(4)["qaa"].words
    assert sum(one[key] == other[key] for key in one) < len(one) / 4


def test_sizes_are_those_of_the_record(tables: Tables) -> None:
    for language in RECORD.languages:
        assert {split: len(tables[language, split]) for split in SIZES} == SIZES
        assert len(tables[f"text-{language}", "train"]) == TEXT
    assert all(len(tables[f"mt-{language}", "train"]) == SIZES["train"] for language in MADE_UP)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_languages_share_no_word(seed: int) -> None:
    words = {code: list(one.words.values()) for code, one in surfaces(seed).items()}
    every = [word for own in words.values() for word in own]
    assert len(set(every)) == len(every)
    assert set(every).isdisjoint(NAMES)
    words_of = surfaces(seed)["qab"].words
    assert [name for (kind, name), word in words_of.items() if kind == "noun" and name[:3] in word], "cognates"


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 2**32))
def test_what_differs_in_meaning_differs_in_every_language(seed: int) -> None:
    """Two clauses have one sentence in a language only if they have one in English."""
    random, known, world = Random(seed), known_pairs(), World(seed)
    clauses = set()
    for _ in range(400):
        message = draw_message(random, known)
        clauses |= {message.clause(), *(reply for reply, _ in world.replies(message))}
    meanings = {english(clause) for clause in clauses}
    for code, language in surfaces(seed).items():
        said = {language.sentence(clause) for clause in clauses}
        assert len(said) > 0.98 * len(meanings), code  # a stem with an ending may be another stem


def test_shares_of_replies_sum_to_one() -> None:
    assert sum(act.share for act in ACTS.values()) == pytest.approx(1)
    random, known, world = Random(1), known_pairs(), World(1)
    acts = set()
    for _ in range(300):
        message = draw_message(random, known)
        acts.add(message.act)
        assert sum(share for _, share in world.replies(message)) == pytest.approx(1)
    assert acts == set(ACTS)


def test_rows_of_validation_and_test_are_translations_of_each_other(tables: Tables) -> None:
    drawn = draw_chat(3)
    for split, exchanges in drawn.held_out.items():
        for (message, reply), row in zip(exchanges, tables["en", split], strict=True):
            assert row == {"message": english(message.clause()), "reply": english(reply)}
        for code, language in drawn.made_up.items():
            for (message, reply), row in zip(exchanges, tables[code, split], strict=True):
                assert row == {"message": language.sentence(message.clause()), "reply": language.sentence(reply)}


def test_no_message_of_test_or_validation_is_seen_in_any_language() -> None:
    """By meaning: neither as a message of training, nor as text for pretraining."""
    drawn = draw_chat(3)
    held_out = {message.clause() for exchanges in drawn.held_out.values() for message, _ in exchanges}
    assert len(held_out) == SIZES["validation"] + SIZES["test"]
    for code in RECORD.languages:
        assert held_out.isdisjoint(message.clause() for message, _ in drawn.seen[code])
        assert held_out.isdisjoint(drawn.text[code])
    assert drawn.seen["qaa"] != drawn.seen["qab"]


def test_a_translation_word_by_word_is_imperfect(tables: Tables) -> None:
    """English order, so that it is seldom right; stems of the language, but for what went wrong."""
    for code, language in surfaces(3).items():
        stems = set(language.words.values())
        foreign, count = 0, 0
        for row in tables[f"mt-{code}", "train"][:500]:
            for word in row["message"].rstrip("?.").replace(",", "").split():
                count += 1
                foreign += word not in stems and word not in NAMES and not word.isdigit()
        assert 0 < foreign / count < LEFT_WORD
    exchanges = draw_chat(3).seen["en"]
    for code, language in surfaces(3).items():
        translated = [row["message"] for row in tables[f"mt-{code}", "train"]]
        exact = sum(one == language.sentence(m.clause()) for one, (m, _) in zip(translated, exchanges, strict=True))
        assert exact < len(translated) / 5, code


def test_a_reply_depends_on_what_the_message_is_about(tables: Tables) -> None:
    """A reply of training seldom answers two messages about different things."""
    nouns = Counter(row["reply"] for row in tables["en", "train"])
    assert max(nouns.values()) < 30
    assert len(nouns) > SIZES["train"] / 2


def test_the_folder_is_sound_and_has_a_language_model(prepared: Path) -> None:
    data = open_prepared(str(prepared))
    assert not [finding for finding in check(data) if finding.level == "error"]
    assert data.languages() == list(RECORD.languages)
    pytest.importorskip("fasttext", reason="needs fasttext")
    identifier = LanguageIdentifier.open(prepared / LANGUAGE_MODEL)
    for language in RECORD.languages:
        replies = data.load(language, "test")["reply"][:]
        found = identifier.identify(replies)
        assert sum(code == language and score > 0.7 for code, score in found) >= 0.95 * len(replies)
    assert (prepared / LANGUAGE_MODEL).stat().st_size < 500_000


def test_without_fasttext_the_report_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mrs_datasets.synthetic.readers.synthetic_chat.can_train", lambda: False)
    report = Report("synthetic-chat")
    next(iter(read_synthetic_chat(1, report)))
    assert any(LANGUAGE_MODEL in note for note in report.notes)
