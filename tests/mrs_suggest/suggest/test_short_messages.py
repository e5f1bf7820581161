"""Greetings, thanks, "ok", laughter and the like: found without a language, and answered with replies that fit."""

import csv
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_suggest.suggest.answering import Answer, reply_texts
from mrs_suggest.suggest.guard import NO_REPLIES
from mrs_suggest.suggest.short_messages import (
    fitting_kinds,
    fitting_languages,
    kind_of,
    locale_languages,
    preferred_language,
)
from mrs_suggest.suggest.suggester import Suggester

TESTS = Path(__file__).parents[2]
ALL = ["de", "en", "es", "fr", "it", "ja", "nl", "pt", "ru", "sv"]
ENGLISH = ()  # no preferred language, whatever the locale


@cache
def suggester() -> Suggester:
    return Suggester.from_pretrained("everyday-retriever")


def sheet(half: str) -> list[dict[str, str]]:
    with (TESTS / "short_messages.tsv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["half"] == half]


@cache
def acceptable() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load((TESTS / "short_messages.yaml").read_text(encoding="utf-8"))
    return content


def wrong(row: dict[str, str], answer: Answer, own_language: bool) -> str:
    """What is wrong with an answer to a message of the sheet; empty if nothing is."""
    content, kind, language = acceptable(), row["kind"], str(answer.language)
    if language != row["language"] and (own_language or row["language"] not in answer.among):
        return f"{row['message']}: {language}"
    if not answer:
        silent = answer.reason == NO_REPLIES and kind in content["silence"]
        return "" if silent else f"{row['message']}: {answer.reason}"
    suit = [part.casefold() for part in content["replies"].get(kind, {}).get(language, [])]
    odd = [one.reply for one in answer if not any(part in one.reply.casefold() for part in suit)]
    return f"{row['message']}: {odd}" if odd else ""


@pytest.mark.parametrize("half", ["build", "held"])
def test_ninety_five_of_a_hundred_short_messages_get_an_acceptable_answer(half: str) -> None:
    rows = sheet(half)
    assert len(rows) == 100
    assert {row["language"] for row in rows} == set(ALL)
    for preferred in (False, True):
        given = [(row["language"],) if preferred else ENGLISH for row in rows]
        answers = [suggester().suggest([row["message"]], prefer=p)[0] for row, p in zip(rows, given, strict=True)]
        faults = [found for row, one in zip(rows, answers, strict=True) if (found := wrong(row, one, preferred))]
        print(half, "preferred" if preferred else "", len(faults), sum(map(bool, answers)), faults)
        assert len(faults) <= 5, faults
        assert sum(map(bool, answers)) >= 70  # not silent


@pytest.mark.parametrize("language", ALL)
def test_the_model_that_ships_has_replies_to_most_kinds(language: str) -> None:
    kinds = {kind for reply in suggester().model.indexes[language].replies for kind in fitting_kinds(reply, language)}  # type: ignore[attr-defined]
    assert {"greeting", "morning", "day", "night", "bye", "how_are_you", "thanks", "sorry"} <= kinds


def test_spellings_count_and_longer_messages_do_not() -> None:
    assert fitting_languages("Graciaaas!!", ALL) == ["es"]
    assert fitting_languages("ADIOS", ALL) == ["es"]  # without the accent
    assert fitting_languages("hahahahaha", ALL) == fitting_languages("👍🏽👍🏽", ALL) == ALL
    assert (kind_of("ok thanks", "en"), kind_of("hola", "en"), kind_of("<3", "ja")) == ("thanks", "greeting", "love")
    for message in ("Thanks, but the parcel has not come", "123", "?!", "", "ok " * 100):
        assert kind_of(message, "en") is None


def test_the_caller_s_languages_then_the_locale_then_english_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "nl_NL.UTF-8")
    assert locale_languages() == ["nl"]
    assert preferred_language(["de", "en", "nl"]) == "nl"
    assert preferred_language(["de", "en", "nl"], ["pl", "de-CH", "nl"]) == "de"
    assert suggester().suggest(["ok"])[0].language == "nl"
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert locale_languages() == []
    (answer,) = suggester().suggest(["ok"])
    assert (answer.language, set(answer.among)) == ("en", set(ALL))
    assert preferred_language(["de", "nl"], []) == "de"


def test_a_named_language_answers_in_it_and_a_batch_as_single_messages() -> None:
    messages = ["hi", "Are you coming to dinner tonight?", "hola", "wow", "thanks"]
    batch = suggester().suggest(messages, "en")
    assert reply_texts(batch) == [reply_texts(suggester().suggest([message], "en"))[0] for message in messages]
    assert "Wonderful, blue sky all day!" not in reply_texts(batch)[0]
    assert [answer.reason for answer in batch] == [None, None, None, NO_REPLIES, None]
    assert all(answer.language == "en" and not answer.among for answer in batch)
