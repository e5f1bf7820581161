"""The expressions that the phrases of the guard become: folding, borders of words, distances, and errors."""

from __future__ import annotations

import pytest

from mrs_suggest.suggest.guard.patterns import Phrases, fold, spellings


@pytest.mark.parametrize("quote", ["’", "‘", "ʼ", "´", "`", "'"])
def test_every_apostrophe_is_the_same(quote: str) -> None:
    assert Phrases(["don't"], {}).first(fold(f"I don{quote}t")) == "don't"
    assert Phrases([f"don{quote}t"], {}).first("i don't") == "don't", "in a phrase, too"


@pytest.mark.parametrize("hidden", ["\u00ad", "\u200b", "\u200d", "\u200f", "\u2060", "\ufeff"])
def test_invisible_characters_are_left_out(hidden: str) -> None:
    assert fold(f"di{hidden}ed") == "died"


def test_other_characters_stay() -> None:
    assert fold("a-b c\u00a0d") == "a-b c d"
    assert fold("\u2014 \u2010") == "\u2014 \u2010"


def test_accents_tell_words_apart_unless_they_are_dropped() -> None:
    assert (fold("VÅLD"), fold("VÅLD", accents=False)) == ("våld", "vald")
    assert (Phrases(["våld"], {}).first("vald"), Phrases(["våld"], {}).first("våld")) == (None, "våld")
    assert Phrases(["våld"], {}, accents=False).first("vald") == "vald"
    assert fold("パパ", accents=False) == "パパ", "marks of kana are no accents"


def test_stretched_letters_are_three_or_more_of_one() -> None:
    assert spellings("soooo") == ["soooo", "soo", "so"]
    assert spellings("noo") == ["noo"]
    assert spellings("111 ___ !!!") == ["111 ___ !!!"]


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("died", "studied", None),
        ("want [really to/to] die", "i want really to die", "want really to die"),
        ("my dad", "my dad", "my dad"),
        ("dad (my/your)", "dad your", "dad your"),
        ("dad my", "dad my dad", "dad my"),
        ("my dad", "my daddy, your dad", None),
        ("my dad", "anatomy dad, my mum", None),
        ("ad*", "a bad ad", "ad"),
        ("🔪", "🔪!", "🔪"),
        ("*ad", "a bad idea", "bad"),
        ("*a*", "yes bad", "bad"),
        ("counterrevolutionar*", "a counterrevolutionary", "counterrevolutionary"),
        ("counterrevolutionar*", "a counterrevolution", None),
        ("counterrevolutionary", "a counterrevolutionary", "counterrevolutionary"),
        ("my dad", "my, dad", "my, dad"),
        ("my dad", "my. dad", None),
        ("my dad", "my! dad", None),
        ("my dad", "my? dad", None),
        ("my dad", "my\ndad", None),
        ("a.b c", "a.b c", "a.b c"),
        ("a.b c", "axb c", None),
        ("(a/b) [c] d", "b c d", "b c d"),
        ("(a/b) [c] d", "b d", "b d"),
        ("(a/b) [c] d", "b c c d", None),
        ("(a/b) [c/d] e", "a d e", "a d e"),
        ("x(a/b)y z", "xby z", "xby z"),
        ("(a (b/c)/d) e", "a c e", "a c e"),
        ("(a (b/c)/d) e", "d e", "d e"),
        ("a ... b", "a b", "a b"),
        ("a ... b", "a 1 2 3 4 b", "a 1 2 3 4 b"),
        ("a ... b", "a 1 2 3 4 5 b", None),
        ("a ... b", "a o'1-x b", "a o'1-x b"),
    ],
)
def test_phrases_of_a_language_with_spaces(phrase: str, text: str, found: str | None) -> None:
    assert Phrases([phrase], {}).first(text) == found


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("死", "父は死んだ", "死"),
        ("父 死", "父死", "父死"),
        ("父 死", "父 死", "父 死"),
        ("父 死", "父が死", None),
        ("父 [が/は] 死", "父は死", "父は死"),
        ("父 [が/は] 死", "父も死", None),
        ("父 ... 死", "父が12345678死", None),
        ("父 ... 死", "父12345678死", "父12345678死"),
        ("父 ... 死", "父。死", None),
        ("父 ... 死", "父！死", None),
        ("(薬/酒) & 二", "二回、酒", "二回、酒"),
        ("(薬/酒) & 二", "二回。酒", None),
    ],
)
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


def test_the_first_phrase_of_the_list_is_told_and_all_are_listed() -> None:
    phrases = Phrases(["b", "a", "b c"], {})
    assert phrases.first("a b c") == "b"
    assert phrases.every("a b c a") == ["b", "a", "a", "b c"]
    assert phrases.every("x") == []


def test_every_phrase_is_taken_out() -> None:
    assert Phrases(["died laughing", "my phone"], {}).without("my phone died laughing", "_") == "_ _"


def test_groups_stand_for_their_words() -> None:
    phrases = Phrases(["<my> <kin> died"], {"my": "my/our", "kin": "dad/step mum"})
    assert phrases.first("our step mum died") == "our step mum died"
    assert phrases.first("our mum died") is None


def test_all_phrases_are_compiled_when_asked() -> None:
    phrases = Phrases(["a", "b", "c"], {})
    assert phrases.first("b") == "b"
    phrases.compile_all()
    assert len(phrases._compiled) == 3


@pytest.mark.parametrize(
    ("phrase", "problem"),
    [
        ("", "'' must begin with a word, and so must each part after a &"),
        ("... died", "'... died' must begin with a word, and so must each part after a &"),
        ("[my] dad", r"'\[my\] dad' must begin with a word, and so must each part after a &"),
        ("a & ", "'a & ' must begin with a word, and so must each part after a &"),
        ("a & b & c & d", "'a & b & c & d' has more than 2 &"),
        ("(a", r"'\(a' has unbalanced brackets"),
        ("a)", r"'a\)' has unbalanced brackets"),
        ("a [b", r"'a \[b' has unbalanced brackets"),
        ("<kin> died", "'<kin> died' names the group <kin>, which is not under `groups`"),
    ],
)
def test_a_phrase_that_cannot_be_read_is_named(phrase: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        Phrases([phrase], {})
