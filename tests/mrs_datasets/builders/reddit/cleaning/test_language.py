"""The language of pairs: with an identifier that does what the test says, and with a model that fastText trains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.cleaning import language as language_module
from mrs_datasets.builders.reddit.cleaning.language import (
    KEPT,
    LOW_SCORE,
    UNKNOWN_LANGUAGE,
    identify_pairs,
    languages_with,
)
from mrs_suggest.common.text.language_id import LanguageIdentifier

WORDS = st.text("ab \n\r\u2028é日", max_size=5)


class Stub:
    """Names the language that the text begins with, sure of it by the number that follows: `en 0.9 ...`."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def identify(self, texts: Sequence[str], /) -> list[tuple[str, float]]:
        self.texts += texts
        return [(language, float(score)) for language, score, *_ in (text.split() for text in texts)]


def table(pairs: list[tuple[str, str]]) -> pa.Table:
    messages, replies = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    rows = pa.array(range(len(pairs)), pa.uint64())
    return pa.table(
        {"message": pa.array(messages, pa.string()), "reply": pa.array(replies, pa.string()), "order": rows}
    )


@given(
    st.lists(
        st.tuples(st.sampled_from(["en", "ja", "und"]), st.sampled_from([0.0, 0.3, 0.7, 0.71, 1.0]), WORDS, WORDS),
        max_size=20,
    ),
    st.integers(1, 8),
)
def test_every_pair_is_kept_or_counted_whatever_the_batches(
    rows: list[tuple[str, float, str, str]], batch: int
) -> None:
    pairs = table([(f"{language} {score} {message}", reply) for language, score, message, reply in rows])
    identifier = Stub()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(language_module, "BATCH_ROWS", batch)
        found, outcomes = identify_pairs(pairs, identifier, 0.7)
    expected = [number for number, row in enumerate(rows) if row[0] != "und" and row[1] > 0.7]
    assert found["order"].to_pylist() == expected
    assert found["language"].to_pylist() == [rows[number][0] for number in expected]
    assert found.column_names == [*pairs.column_names, "language"]
    assert outcomes.total() == len(rows)
    naive: Counter[tuple[str, str]] = Counter()
    for number, (language, *_) in enumerate(rows):
        reason = UNKNOWN_LANGUAGE if language == "und" else LOW_SCORE
        naive[language, KEPT if number in expected else reason] += 1
    assert outcomes == naive
    assert not any("\n" in text or "\r" in text for text in identifier.texts)


def test_message_and_reply_are_one_line_and_stay_as_they_were() -> None:
    identifier = Stub()
    found, _ = identify_pairs(table([("sv 0.9 hej\r\npå dig", "tack\n\tdetsamma")]), identifier, 0.7)
    assert identifier.texts == ["sv 0.9 hej  på dig tack \tdetsamma"]
    assert found["message"].to_pylist() == ["sv 0.9 hej\r\npå dig"]


def test_masks_are_of_no_language() -> None:
    identifier = Stub()
    found, _ = identify_pairs(table([("sv 0.9 se <url>, <user>", "tack <email> <phone><ip> < url >")]), identifier, 0.7)
    assert identifier.texts == ["sv 0.9 se  ,   tack      < url >"]
    assert found["message"].to_pylist() == ["sv 0.9 se <url>, <user>"]


@pytest.mark.parametrize(("bound", "kept"), [(0.0, 2), (0.7, 1), (0.9, 0), (1.0, 0)])
def test_a_score_at_the_bound_is_too_low(bound: float, kept: int) -> None:
    found, outcomes = identify_pairs(table([("en 0.7 a", "b"), ("en 0.9 a", "b")]), Stub(), bound)
    assert (found.num_rows, outcomes["en", KEPT], outcomes["en", LOW_SCORE]) == (kept, kept, 2 - kept)


def test_no_pairs_have_no_language() -> None:
    found, outcomes = identify_pairs(table([]), Stub(), 0.7)
    assert found.column_names == ["message", "reply", "order", "language"]
    assert found["language"].type == pa.string()
    assert outcomes == Counter()


def test_languages_with_enough_pairs_come_by_their_number() -> None:
    outcomes = {("en", KEPT): 3, ("de", KEPT): 5, ("es", KEPT): 3, ("sv", KEPT): 2, ("sv", LOW_SCORE): 9}
    assert languages_with(outcomes, 3) == ["de", "en", "es"]
    assert languages_with(outcomes, 6) == []


def test_a_model_of_fasttext_names_the_languages(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("fasttext")
    sentences = {"en": "what are you doing tonight", "ru": "что ты делаешь вечером", "de": "danke für deine hilfe"}
    source = tmp_path / "sentences.txt"
    source.write_text("".join(f"__label__{code} {text}\n" for code, text in sentences.items()) * 20, encoding="utf-8")
    # Eleven threads: with fewer some numbers of the matrix stay unset.
    settings = {"dim": 8, "epoch": 25, "lr": 0.5, "bucket": 500, "minn": 1, "maxn": 3, "thread": 11, "verbose": 0}
    fasttext.train_supervised(str(source), **settings).save_model(str(tmp_path / "model.bin"))
    identifier = LanguageIdentifier.open(tmp_path / "model.bin")
    pairs = table([("what are you\ndoing", "tonight"), ("что ты", "делаешь"), ("\n", "  "), ("danke", "für\nhilfe")])
    found, outcomes = identify_pairs(pairs, identifier, 0.5)
    assert found["language"].to_pylist() == ["en", "ru", "de"]
    assert outcomes["und", UNKNOWN_LANGUAGE] == 1
