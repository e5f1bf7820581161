"""The expressions that the phrases of the guard become: folding, borders of words, distances, and errors."""

import pytest

from mrs_suggest.suggest.guard.patterns import Phrases, fold, spellings
from tests.cases import cases


@pytest.mark.parametrize("quote", ["’", "‘", "ʼ", "´", "`", "'"])
def test_every_apostrophe_is_the_same(quote: str) -> None:
    assert Phrases(["don't"], {}).first(fold(f"I don{quote}t")) == "don't"
    assert Phrases([f"don{quote}t"], {}).first("i don't") == "don't", "in a phrase, too"


def test_invisible_characters_are_left_out_and_others_stay() -> None:
    for hidden in ("\u00ad", "\u200b", "\u200d", "\u200f", "\u2060", "\ufeff"):
        assert fold(f"di{hidden}ed") == "died"
    assert fold("a-b c\u00a0d") == "a-b c d"
    assert fold("\u2014 \u2010") == "\u2014 \u2010"


def test_accents_and_stretched_letters() -> None:
    assert (fold("VÅLD"), fold("VÅLD", accents=False)) == ("våld", "vald")
    assert (Phrases(["våld"], {}).first("vald"), Phrases(["våld"], {}).first("våld")) == (None, "våld")
    assert Phrases(["våld"], {}, accents=False).first("vald") == "vald"
    assert fold("パパ", accents=False) == "パパ", "marks of kana are no accents"
    assert spellings("soooo") == ["soooo", "soo", "so"]
    assert spellings("noo") == ["noo"]
    assert spellings("111 ___ !!!") == ["111 ___ !!!"]


@pytest.mark.parametrize(("phrase", "text", "found"), cases(__file__, "test_phrases_of_a_language_with_spaces"))
def test_phrases_of_a_language_with_spaces(phrase: str, text: str, found: str | None) -> None:
    assert Phrases([phrase], {}).first(text) == found


@pytest.mark.parametrize(("phrase", "text", "found"), cases(__file__, "test_phrases_of_a_language_without_spaces"))
def test_phrases_of_a_language_without_spaces(phrase: str, text: str, found: str | None) -> None:
    assert Phrases([phrase], {}, spaced=False).first(text) == found


def test_sides_are_at_most_eighty_characters_apart_in_one_sentence() -> None:
    assert Phrases(["a & b & c"], {}).first("c x a x b") == "c x a x b"
    phrases = Phrases(["rent & owe"], {})
    for text in ("rent " + "x" * 78 + " owe", "owe " + "x" * 78 + " rent"):
        assert phrases.first(text) == text
        assert phrases.first(text.replace("x ", "xx ")) is None
    assert [phrases.first(f"rent{end}owe") for end in [".", "!", "?", "。", "！", "？", "\n"]] == [None] * 7


def test_a_phrase_is_found_by_each_of_its_first_words() -> None:
    phrases = Phrases(["(dad/mum/gran*) died", "*tod & (arzt/not)"], {})
    assert [phrases.first(f"my {word} died") for word in ("dad", "mum", "granny")] == [
        "dad died",
        "mum died",
        "granny died",
    ]
    assert phrases.first("notarzt, arzt und freitod") == "arzt und freitod"
    assert phrases.first("freitod vor not") == "freitod vor not"


def test_the_first_phrase_is_told_all_are_listed_and_taken_out() -> None:
    phrases = Phrases(["b", "a", "b c"], {})
    assert phrases.first("a b c") == "b"
    assert phrases.every("a b c a") == ["b", "a", "a", "b c"]
    assert phrases.every("x") == []
    assert Phrases(["died laughing", "my phone"], {}).without("my phone died laughing", "_") == "_ _"


def test_groups_stand_for_their_words() -> None:
    phrases = Phrases(["<my> <kin> died"], {"my": "my/our", "kin": "dad/step mum"})
    assert phrases.first("our step mum died") == "our step mum died"
    assert phrases.first("our mum died") is None
    phrases = Phrases(["a", "b", "c"], {})
    assert phrases.first("b") == "b"
    phrases.compile_all()
    assert len(phrases._compiled) == 3


@pytest.mark.parametrize(("phrase", "problem"), cases(__file__, "test_a_phrase_that_cannot_be_read_is_named"))
def test_a_phrase_that_cannot_be_read_is_named(phrase: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        Phrases([phrase], {})
