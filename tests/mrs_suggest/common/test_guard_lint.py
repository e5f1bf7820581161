"""The word lists against everyday messages, which they must not silence, and against wordings of harm.

`tests/guard_phrases.tsv` has both: everyday phrases with names, food, idioms and praise that look like something
grave, and messages about harm that a cheerful reply would hurt. Lists alone, without the linear model of a guard.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from mrs_suggest.suggest.guard import EVERYDAY
from mrs_suggest.suggest.guard.lists import GuardData

PHRASES = Path(__file__).parents[2] / "guard_phrases.tsv"
LANGUAGES = ("de", "en", "es", "fr", "it", "ja", "nl", "pt", "ru", "sv")
LEAST = 30  # everyday phrases of each language
MOST_SILENCED = 0.03  # of the different lines of real chat, some of which are about a death, an illness or a divorce
HARMS = {"self_harm", "exploitation", "extortion", "war"}


@pytest.fixture(scope="module")
def data() -> GuardData:
    return GuardData()


@pytest.fixture(scope="module")
def phrases() -> list[list[str]]:
    with PHRASES.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def test_every_language_has_enough_phrases(phrases: list[list[str]]) -> None:
    assert len({tuple(row) for row in phrases}) == len(phrases)
    counts = Counter((language, kind) for language, kind, _ in phrases)
    assert {language for language, _ in counts} == set(LANGUAGES)
    for language in LANGUAGES:
        assert counts[language, EVERYDAY] >= LEAST
        assert {kind for code, kind in counts if code == language} == {EVERYDAY, *HARMS}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lists_let_everyday_phrases_pass(data: GuardData, phrases: list[list[str]], language: str) -> None:
    own = [text for code, kind, text in phrases if (code, kind) == (language, EVERYDAY)]
    assert {text: reason for text in own if (reason := data[language].sensitive(text))} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lists_find_harm_with_its_reason(data: GuardData, phrases: list[list[str]], language: str) -> None:
    own = {text: kind for code, kind, text in phrases if code == language and kind != EVERYDAY}
    assert {text: data[language].sensitive(text) for text in own} == own


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lists_let_the_everyday_examples_pass(data: GuardData, language: str) -> None:
    texts = data.prototypes[language][EVERYDAY]
    assert {text: reason for text in texts if (reason := data[language].sensitive(text))} == {}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lists_silence_few_lines_of_real_chat(data: GuardData, shared_data: Path, language: str) -> None:
    files = [
        shared_data / folder / f"{language}.tsv" for folder in ("replies", "dialogues/persona", "dialogues/coffee")
    ]
    rows = [row for file in files if file.is_file() for row in file.read_text(encoding="utf-8").splitlines()]
    texts = list(dict.fromkeys(text for row in rows for text in row.split("\t")[:2] if text.strip()))
    silenced = [text for text in texts if data[language].sensitive(text)]
    assert len(silenced) <= MOST_SILENCED * len(texts), silenced[:50]


@pytest.mark.parametrize(
    ("reply", "slurs"),
    [("A spicy curry!", []), ("The hedge is prickly.", []), ("You pricks", ["pricks"]), ("What a spic", ["spic"])],
)
def test_slurs_are_whole_words(data: GuardData, reply: str, slurs: list[str]) -> None:
    assert data["en"].holds("slurs", reply) == slurs
