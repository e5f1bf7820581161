"""Greetings, thanks, "ok", laughter and the like: found without a language, and answered with replies that fit."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest
import yaml

from mrs_core.guard import NO_REPLIES
from mrs_models.answering import Answer, reply_texts
from mrs_models.short_messages import (
    fits_kind,
    fitting_languages,
    kind_of,
    locale_languages,
    preferred_language,
)
from mrs_models.suggester import Suggester

TESTS = Path(__file__).parents[1]
ALL = "de en es fr it ja nl pt ru sv".split()
ENGLISH = ()  # no preferred language, whatever the locale


@cache
def suggester() -> Suggester:
    return Suggester.load("sample-retriever")


def sheet(half: str) -> list[dict[str, str]]:
    with (TESTS / "short_messages.tsv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["half"] == half]


def wrong(row: dict[str, str], answer: Answer, own_language: bool) -> str:
    """What is wrong with an answer to a message of the sheet; empty if nothing is."""
    content = yaml.safe_load((TESTS / "short_messages.yaml").read_text(encoding="utf-8"))
    kind, language = row["kind"], str(answer.language)
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
    assert len(rows) == 100 and {row["language"] for row in rows} == set(ALL)
    for preferred in (False, True):
        given = [(row["language"],) if preferred else ENGLISH for row in rows]
        answers = [suggester().suggest([row["message"]], prefer=p)[0] for row, p in zip(rows, given, strict=True)]
        faults = [found for row, one in zip(rows, answers, strict=True) if (found := wrong(row, one, preferred))]
        print(half, "preferred" if preferred else "", len(faults), sum(map(bool, answers)), faults)
        assert len(faults) <= 5, faults
        assert sum(map(bool, answers)) >= 70  # not silent
