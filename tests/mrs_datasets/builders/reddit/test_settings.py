"""What a build may be asked for."""

from __future__ import annotations

import json

import pytest

from mrs_datasets.builders.reddit.settings import PROFILES, make_settings, read_months
from mrs_suggest.common.errors import InputError


def test_the_profile_paper_is_section_2() -> None:
    paper = make_settings("paper")
    assert (paper.min_score, paper.min_language_score, paper.min_examples) == (1, 0.7, 100_000)
    assert (paper.min_reply_count, paper.max_responses) == (20, 50_000)
    assert (paper.drop_bots, paper.clean, paper.split_by) == (False, False, "example")
    assert paper.english_months == ("2018-01", "2018-12")
    assert paper.departures() == {}


def test_the_profile_clean_differs_from_paper_in_what_it_says() -> None:
    paper, clean = (make_settings(name).as_dict() for name in ("paper", "clean"))
    differing = {name: value for name, value in clean.items() if value != paper[name]}
    assert differing == {
        "profile": "clean", "drop_bots": True, "clean": True, "split_by": "thread", "responses_from": "training"
    }  # fmt: skip
    assert make_settings("clean").departures() == {}, "a profile does not depart from itself"


def test_every_change_is_a_departure_and_goes_into_json() -> None:
    changes = {"min_score": 0, "english_months": ("2015-01", "2015-06"), "drop_bots": True, "max_characters": 500}
    settings = make_settings("paper", **changes, clean=None)
    assert settings.departures() == {**changes, "english_months": "2015-01:2015-06"}
    plain = json.loads(json.dumps(settings.as_dict()))
    assert plain == settings.as_dict(), "a report that was read again equals the settings"
    assert plain["english_months"] == "2015-01:2015-06"
    assert make_settings("paper", english_months=()).as_dict()["english_months"] == "all"
    assert set(plain) == set(PROFILES["paper"].as_dict())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"min_examples": 0}, "--min-examples: expected 1 or more, found 0"),
        ({"min_reply_count": -1}, "--min-reply-count: expected 1 or more"),
        ({"max_responses": 0}, "--max-responses"),
        ({"buckets": 0}, "--buckets"),
        ({"keep_rejects": -1}, "--keep-rejects: expected 0 or more"),
        ({"min_characters": -1}, "--min-characters: expected 0 or more"),
        ({"max_characters": 0}, "--max-characters: expected 1 or more"),
        ({"min_characters": 9, "max_characters": 8}, "--min-characters 9"),
        ({"min_language_score": 1.0}, "--min-language-score: expected 0 or more and below 1"),
        ({"min_language_score": float("nan")}, "--min-language-score"),
        ({"split_by": "day"}, "--split-by: expected one of example, thread, found 'day'"),
    ],
)
def test_values_out_of_range_name_their_flag(changes: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        make_settings("paper", **changes)


def test_a_profile_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="--profile mine: expected one of paper, clean"):
        make_settings("mine")


@pytest.mark.parametrize(
    ("text", "months"),
    [("2018-01:2018-12", ("2018-01", "2018-12")), ("2018-07", ("2018-07",) * 2), ("2017-12:2018-01", None)],
)
def test_months(text: str, months: tuple[str, str] | None) -> None:
    assert read_months(text) == (months or tuple(text.split(":")))


@pytest.mark.parametrize(
    "text", ["", ":", "2018", "2018-13", "2018-00", "2018-1", "2018-02:2018-01", "2018-01:x", "a:b:c"]
)
def test_what_is_no_month_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--english-months .*expected YYYY-MM:YYYY-MM"):
        read_months(text)
