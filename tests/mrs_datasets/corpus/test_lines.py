"""Lines: their normal form, the rules by which they stay, and what counts as the same line."""

import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.corpus.lines import (
    EMPTY,
    FEW_LETTERS,
    NOT_UTF8,
    TOO_LONG,
    TOO_SHORT,
    LineRules,
    clean_lines,
    key_text,
    line_keys,
    normalise_line,
)

ANY = st.text(max_size=30)  # without surrogates
ODD = st.text("aé\u0301가\u00ad\ufeff\u200d\u202e\t\x00\x85 \u3000.٣7猫क्", max_size=20)


@given(st.one_of(ANY, ODD))
def test_the_normal_form_is_stable_and_one_line(text: str) -> None:
    found = normalise_line(text)
    assert normalise_line(found) == found == found.strip()
    assert found.split() == found.split(" ") if found else True
    assert unicodedata.is_normalized("NFC", found)
    assert not any(unicodedata.category(c) == "Cc" for c in found)


def test_letters_and_joiners_stay() -> None:
    assert normalise_line("ﬁ ² Ａ") == "ﬁ ² Ａ", "NFC, not NFKC"
    assert normalise_line("می\u200cخواهم 👩\u200d🚀") == "می\u200cخواهم 👩\u200d🚀"
    assert normalise_line("a\u202ebc\u2066d") == "abcd"


@given(st.one_of(ANY, ODD))
def test_keys_depend_on_the_key_text_alone(text: str) -> None:
    key = key_text(text)
    assert line_keys([text, key]).tolist()[0] == line_keys([text])[0]
    if any(unicodedata.category(c)[0] == "L" for c in text):
        assert key_text(text.replace("7", "3") + " !") == key_text(text.replace("7", "0"))


def test_equal_lines() -> None:
    same = ["Él llegó el 3 de mayo.", "el llego, el 7 de MAYO", "«El» llego el 0 de mayo!"]
    assert len(set(line_keys(same).tolist())) == 1
    different = ["か き", "が き", "कि", "की", "?!", "!?", "", "a b", "ab"]
    assert len(set(line_keys(different).tolist())) == len(different)


@given(st.lists(st.one_of(ANY, ODD), max_size=20))
def test_every_line_has_one_outcome(lines: list[str]) -> None:
    dropped: Counter[str] = Counter()
    rules = LineRules(min_characters=2, max_characters=12)
    found = clean_lines(lines, rules, dropped)
    assert len(found) + dropped.total() == len(lines)
    assert all(2 <= len(text) <= 12 and normalise_line(text) == text for text in found)
    assert clean_lines(found, rules, Counter()) == found


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (" \ufeff\t", EMPTY),
        ("neun hier", TOO_SHORT),
        ("ja " * 40, TOO_LONG),
        ("17:45 +++ 3,50 abc", FEW_LETTERS),
        ("halb \udce9 kaputt und lang", NOT_UTF8),
    ],
)
def test_the_reasons(line: str, reason: str) -> None:
    dropped: Counter[str] = Counter()
    assert clean_lines([line, "ein guter Satz, 1"], LineRules(max_characters=100), dropped) == ["ein guter Satz, 1"]
    assert +dropped == {reason: 1}


def test_the_build_s_repairs_and_masks() -> None:
    line = "voilÃ\xa0 â\x80\x93 <b>une</b> page: https://example.com/a?b=c"
    repairs: Counter[str] = Counter()
    assert clean_lines([line], LineRules(repair=True, mask=True), Counter(), repairs) == ["voilà – une page: <url>"]
    assert repairs == {"mojibake repaired": 1, "HTML tags stripped": 1}
    assert clean_lines([line], LineRules(), Counter(), repairs) == [
        "voilÃ â <b>une</b> page: https://example.com/a?b=c"
    ]
