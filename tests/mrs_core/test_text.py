"""The form in which two replies count as one."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrs_core.text import normalise_reply

ALPHABETS = "abcxyzéñüßçãåøйёжщ"  # without letters whose upper case has another way down, such as the Turkish ı
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


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
