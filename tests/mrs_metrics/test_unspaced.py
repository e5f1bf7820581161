"""Languages whose words no space separates: a tokenizer of their own or a refusal, never a whole sentence as a word."""

import sys
from importlib import metadata

import pytest

from mrs_metrics import tokenize
from mrs_metrics.rouge import score_examples
from mrs_metrics.tokenize import get_tokenizer


def test_chinese_is_split_by_jieba():
    pytest.importorskip("rjieba", reason="needs rjieba, of the extra [zh]")
    tokenizer = get_tokenizer("zh")
    assert tokenizer("我来到北京清华大学。 好\ud800") == ["我", "来到", "北京", "清华大学", "。", "好", "?"]
    assert tokenizer.spaced("谢谢 你") == "谢谢 你"
    assert (tokenizer.name, tokenizer.version) == ("rjieba", metadata.version("rjieba"))
    assert get_tokenizer("zh-Hant").name == get_tokenizer("cmn").name == "rjieba"
    scores = score_examples([["我来到北京"]], ["他来到北京"], "zh")
    assert scores.rouge[0].tolist() == pytest.approx([2 / 3, 1 / 2, 0])
    assert f"|tok:rjieba-{tokenizer.version}|sent:no|lang:zh|" in scores.signature


def test_words_that_a_program_adds_to_jieba_do_not_move_scores():
    rjieba = pytest.importorskip("rjieba", reason="needs rjieba, of the extra [zh]")
    before = get_tokenizer("zh")("我来到北京清华大学")
    rjieba.add_word("到北京清", 10**7, "n")
    assert tokenize._jieba()("我来到北京清华大学") == get_tokenizer("zh")("我来到北京清华大学") == before


def test_thai_is_split_by_newmm():
    pytest.importorskip("pythainlp", reason="needs pythainlp, of the extra [th]")
    tokenizer = get_tokenizer("th")
    assert tokenizer("ขอบคุณมากครับ 5.3") == ["ขอบคุณ", "มาก", "ครับ", "5.3"]
    assert (tokenizer.name, tokenizer.version) == ("pythainlp-newmm", metadata.version("pythainlp"))


@pytest.mark.parametrize("language", ["lo", "km", "my", "bo", "yue", "my-MM", "lo-Laoo", "pi-Thai", "nan-Hant"])
def test_a_language_without_spaces_and_tokenizer_is_refused(language):
    with pytest.raises(ValueError, match=rf"'{language}' has no spaces between words.*reply_bleu") as caught:
        get_tokenizer(language)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("language", ["ko", "vi", "ar", "hi", "ta", "zh-Latn", "nan-Latn", "sr-Cyrl-RS"])
def test_what_is_written_with_spaces_goes_through_the_treebank_rules(language):
    assert get_tokenizer(language).name == "treebank"


@pytest.mark.parametrize(
    ("language", "module", "packages"),
    [("zh", "rjieba", "rjieba"), ("th", "pythainlp.tokenize", "pythainlp"), ("ja", "fugashi", "fugashi unidic-lite")],
)
def test_a_missing_tokenizer_names_its_packages(language, module, packages, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"run pip install {packages}"):
        get_tokenizer.__wrapped__(language)


@pytest.mark.parametrize(
    ("language", "package", "text"), [("zh", "rjieba", "我来到\0清华大学"), ("th", "pythainlp", "สวัสดีครับ\0ขอบคุณครับ")]
)
def test_nothing_is_lost_after_a_nul(language, package, text):
    pytest.importorskip(package, reason=f"needs {package}")
    tokens = get_tokenizer(language)(text)
    assert "".join(tokens) == text
    assert len(tokens) > 3
