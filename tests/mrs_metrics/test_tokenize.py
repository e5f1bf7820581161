"""The tokenizers against golden output, against NLTK itself, and at their edges."""

import json
from importlib import metadata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics import tokenize
from mrs_metrics.tokenize import get_tokenizer, treebank_tokens
from tests.cases import cases

# What the rules look at, and what nearly looks the same.
_WORDS = (
    "cannot CANNOT d'ye gimme gonna gotta lemme more'n wanna 'tis 'TWAS 's 'll 're 've n't N'T 'd 'm 'S 'T 'n re a s t "
    "é ſ ı K gımme na 1 23 ٣ ² 日本 👍 Σ ß \u0301"
)
_MARKS = ". .. ... , : ,, ' '' ''' \" \"\" ` `` « » “ ” ‘ ’ „ ( ) [ ] { } < > - -- --- — ? ! * ; @ # $ % & _ /"
_SPACES = [" ", " ", "\n", "\t", "\u3000", "\xa0", "\x1c", "\u2028"]
_PIECES = [*_WORDS.split(), *_MARKS.split(), *_SPACES]


def test_treebank_equals_golden_tokens(shared_data):
    with open(shared_data / "golden" / "tokenize.jsonl", encoding="utf-8") as lines:
        cases = [json.loads(line) for line in lines]
    assert len(cases) > 2000
    assert [case for case in cases if treebank_tokens(case["text"]) != case["tokens"]] == []


@settings(max_examples=2000, deadline=None)
@given(st.one_of(st.lists(st.sampled_from(_PIECES), max_size=14).map("".join), st.text()))
def test_treebank_equals_nltk_on_any_text(text):
    nltk_tokenize = pytest.importorskip("nltk.tokenize", reason="needs nltk 3.8.1 to compare with")
    if metadata.version("nltk") != tokenize.TREEBANK_VERSION:
        pytest.skip("needs nltk 3.8.1 to compare with")
    assert treebank_tokens(text) == nltk_tokenize.word_tokenize(text, preserve_line=True)


@pytest.mark.parametrize(("text", "tokens"), cases(__file__, "test_treebank_worked_cases"))
def test_treebank_worked_cases(text, tokens):
    assert treebank_tokens(text) == tokens


_joined = st.lists(st.sampled_from([*_PIECES, " ", " ", ". ", " .", "."]), max_size=16).map("".join)


@settings(max_examples=1000, deadline=None)
@given(st.one_of(_joined, st.text()))
def test_remembered_words_are_what_the_rules_give(text):
    expected = tokenize._by_rules(text)
    assert treebank_tokens(text) == expected
    assert treebank_tokens(text) == expected, "from memory"


def test_japanese_keeps_the_white_space_that_mecab_writes(mecab):
    tokenizer = get_tokenizer("ja")
    assert tokenizer.spaced("はい、元気です。") == "はい 、 元気 です 。 \n"
    assert tokenizer("はい、元気です。") == ["はい", "、", "元気", "です", "。"]
    assert tokenizer.spaced("\u3000.") == "\u3000 . \n"
    assert (tokenizer.name, tokenizer.version) == ("mecab-unidic-lite", metadata.version("unidic-lite"))


def test_japanese_accepts_a_lone_surrogate_and_goes_on_after_a_nul(mecab):
    """MeCab alone would end the text there."""
    tokenizer = get_tokenizer("ja")
    assert tokenizer("はい\ud800") == ["はい", "?"]
    assert tokenizer("はい\0元気です") == ["はい", "\0", "元気", "です"]
    assert tokenizer.spaced("\0はい\0") == "\0 はい \0 \n"


def test_tokenizers_are_cached_and_chosen_by_language():
    assert get_tokenizer("en") is get_tokenizer("en")
    assert {get_tokenizer(code).name for code in ("en", "pt-BR", "ru", "qu")} == {"treebank"}


@pytest.mark.parametrize("language", ["", "english please", "en_XX", None])
def test_what_is_no_language_code_is_refused(language):
    with pytest.raises(ValueError, match="must be a BCP-47 code"):
        get_tokenizer(language)
