"""The form in which two replies count as one."""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mrs_core.text import is_blank, normalise_reply

ALPHABETS = "abcxyzéñüßçãåøйёжщ"  # without letters whose upper case has another way down, such as the Turkish ı
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


# What folding, composing and dropping can do to each other: marks of several classes, ligatures, letters whose
# lower case is longer or whose capital has no composed form, spaces and stops.
DELICATE = "aTtJjwyαιυωΑßẞſĳŉǰẖẗΐᾳᾴῷᾼÅÅﬁ…？！ ￣¨´½㍿ヷハ゛゙ｶﾞ가ᄀ\u1161\u11a8क़\u0300\u0301\u0308\u0323\u0345\u0130ı"
DELICATE += "\u00ad\u034f\u115f\u180e\u200d\u2028\u3000\u3164\ufe0f\ufdfa\ufffe\ud800 \t.?!-👍"


def plain_normalise_reply(text: str) -> str:
    """The definition as it reads, character by character."""
    form = unicodedata.normalize("NFKC", text)
    while True:
        folded = unicodedata.normalize("NFKC", form.casefold())
        kept = "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC") or "".join(folded.split())
        if kept == form:
            return form
        form = kept


@given(st.text(st.characters() | st.sampled_from(DELICATE)) | st.text(DELICATE))
@settings(max_examples=1000)
@example("ᾳ?\u0301")
@example("qͅ\u0323?")
def test_the_form_is_that_of_the_plain_definition(text: str) -> None:
    assert normalise_reply(text) == plain_normalise_reply(text)


def test_the_form_of_every_character_is_that_of_the_plain_definition() -> None:
    characters = map(chr, range(sys.maxunicode + 1))
    assert [c for c in characters if normalise_reply(c) != plain_normalise_reply(c)] == []


def test_the_form_of_real_texts_is_that_of_the_plain_definition(shared_data: Path) -> None:
    files = sorted((shared_data / "replies").glob("*.tsv"))
    texts = {text for file in files for line in file.open(encoding="utf-8") for text in line.split("\t")}
    assert len(texts) > 5000
    assert [text for text in texts if normalise_reply(text) != plain_normalise_reply(text)] == []


def test_a_character_is_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "Как дела？ 元気ですか。"
    form = normalise_reply(text)
    monkeypatch.setattr(unicodedata, "category", lambda c: pytest.fail(f"{c!r} was known"))
    assert normalise_reply(text) == form == "какдела元気ですか"


@given(TEXTS)
@example("T¨")
@example("a\u200d\u0301")
@example("ﬁ ½ Ǆ")
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    once = normalise_reply(text)
    assert normalise_reply(once) == once


@given(TEXTS)
@example("?!")
@example("…")
@example("👍")
def test_a_text_with_a_visible_character_never_becomes_empty(text: str) -> None:
    visible = any(unicodedata.category(c)[0] not in "ZC" for c in text)
    assert normalise_reply(text) or not visible


@given(st.lists(st.text(ALPHABETS, min_size=1, max_size=8), min_size=1, max_size=5))
def test_case_spaces_and_punctuation_make_no_difference(words: list[str]) -> None:
    plain = normalise_reply(" ".join(words))
    assert normalise_reply("  " + ", ".join(words).upper() + "!!! ") == plain
    assert normalise_reply("«" + "-".join(words).title() + "»…") == plain


@pytest.mark.parametrize(
    ("one", "other"),
    [("Thanks!", "thanks"), ("Ｏ Ｋ", "ok"), ("はい。", "はい"), ("¡Claro!", "claro"), ("Straße", "STRASSE")],
)
def test_these_replies_are_one(one: str, other: str) -> None:
    assert normalise_reply(one) == normalise_reply(other)


@pytest.mark.parametrize(
    ("one", "other"), [("?", "!"), ("?!", ""), ("👍", "👎"), ("si", "sí"), ("мой", "мои"), ("はい", "ばい"), ("1", "2")]
)
def test_these_replies_stay_two(one: str, other: str) -> None:
    assert normalise_reply(one) != normalise_reply(other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\u3000",
        "\x00",
        "\u200b",
        "\ufeff",
        "\u2060\u200d",
        "\u202e",
        "\u3164",
        "\u2800",
        "\u034f",
        "\xad",
        "\ue000",
    ],
)
def test_a_text_that_shows_nothing_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["?", "ok", " \u200bé", "\x00a", "日", "👍", "🤷\u200d♂\ufe0f", "़", "…"])
def test_a_text_that_shows_something_is_not(text: str) -> None:
    assert not is_blank(text)
