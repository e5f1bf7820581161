"""The tokens around texts: each row against the family's own tokenizer and model in transformers."""

from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BartConfig,
    ByT5Tokenizer,
    M2M100Config,
    MBart50Tokenizer,
    MBartConfig,
    MBartTokenizer,
    MT5Config,
    MT5ForConditionalGeneration,
    NllbTokenizer,
    PreTrainedTokenizerFast,
    T5Tokenizer,
    XLMRobertaConfig,
)
from transformers.models.m2m_100.modeling_m2m_100 import shift_tokens_right as shift_m2m100
from transformers.models.mbart.modeling_mbart import shift_tokens_right as shift_mbart

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.models.generation.generator import PairCollator
from mrs_suggest.models.generation.language_tokens import ROWS, row_of
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.text_coder import TextCoder

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
PIECES = [("▁", -2.0), *((letter, -3.0) for letter in LETTERS)]
MESSAGE, REPLY = "hola", "abc"


def mbart50() -> tuple[Any, Any]:
    tokenizer = MBart50Tokenizer(vocab=[("<unk>", 0.0), ("<s>", 0.0), ("</s>", 0.0), *PIECES])
    return tokenizer, MBartConfig(vocab_size=len(tokenizer))


def nllb() -> tuple[Any, Any]:
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL, "▁", *LETTERS])}
    tokenizer = NllbTokenizer(vocab=vocabulary, merges=[])
    return tokenizer, M2M100Config(vocab_size=len(tokenizer))


def mt5() -> tuple[Any, Any]:
    tokenizer = T5Tokenizer(vocab=[("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *PIECES], extra_ids=0)
    return tokenizer, mt5_config(len(tokenizer))


def byt5() -> tuple[Any, Any]:
    tokenizer = ByT5Tokenizer()
    return tokenizer, mt5_config(384)


def mt5_config(vocabulary: int) -> MT5Config:
    return MT5Config(vocab_size=vocabulary, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)


def coder_of(tokenizer: Any, config: Any, tokens: int = 20) -> TextCoder:
    return TextCoder(tokenizer, row_of(config, tokenizer), config, tokens, tokens)


def check_language(tokenizer: Any, config: Any, code: str, tag: str, shift: Any) -> None:
    """Encoder ids, and what the decoder reads and writes, are those of the family's own classes."""
    coder = coder_of(tokenizer, config)
    tokenizer.src_lang = tokenizer.tgt_lang = tag
    assert coder.messages([MESSAGE], code) == [tokenizer(MESSAGE)["input_ids"]]
    theirs = tokenizer(text_target=REPLY)["input_ids"]
    decoder = shift(torch.tensor([theirs]))
    (mine,) = coder.replies([REPLY])
    batch = PairCollator(1)([{"input_ids": [4], "labels": mine, "prompt": coder.prompt(code)}])
    assert batch["decoder_input_ids"].tolist() == decoder.tolist()
    assert batch["labels"].tolist() == [[IGNORED, *theirs[1:]]], "the tag is given, not learnt"
    assert coder.prompt(code) == decoder[0, :2].tolist()


@pytest.mark.parametrize("code", LANGUAGES)
def test_families_with_a_token_for_each_language(code: str) -> None:
    tokenizer, config = mbart50()
    assert row_of(config, tokenizer).name == "mbart50"
    (region,) = (token for token in tokenizer.lang_code_to_id if token.startswith(f"{code}_"))
    check_language(tokenizer, config, code, region, lambda labels: shift_mbart(labels, 1))
    tokenizer, config = nllb()
    assert row_of(config, tokenizer).name == "nllb"
    tag = f"{LANGUAGES[code].iso3}_{LANGUAGES[code].script}"
    assert tag in tokenizer.get_vocab()
    start = config.decoder_start_token_id
    check_language(tokenizer, config, code, tag, lambda labels: shift_m2m100(labels, 1, start))


@pytest.mark.parametrize("family", [mt5, byt5], ids=["mt5", "byt5"])
def test_families_without_a_token_of_the_language(family: Any) -> None:
    tokenizer, config = family()
    coder = coder_of(tokenizer, config)
    assert coder.row.name == "plain"
    for text in (MESSAGE, "¿Qué?"):
        assert coder.messages([text], "es") == coder.messages([text], "ja") == [tokenizer(text)["input_ids"]]
        assert coder.replies([text]) == [tokenizer(text_target=text)["input_ids"]]
    labels = coder.replies([REPLY])
    model = MT5ForConditionalGeneration(config)
    batch = PairCollator(0)([{"input_ids": [4], "labels": labels[0], "prompt": coder.prompt("es")}])
    expected = model.prepare_decoder_input_ids_from_labels(torch.tensor(labels))
    assert batch["decoder_input_ids"].tolist() == expected.tolist()
    assert batch["labels"].tolist() == labels


def words(*tokens: str, **special: str) -> PreTrainedTokenizerFast:
    """A tokenizer with one token a word."""
    listed = [*SPECIAL, *tokens, MESSAGE, REPLY]
    backend = Tokenizer(models.WordLevel({token: number for number, token in enumerate(listed)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    names = {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>", **special}
    extra = [token for token in tokens if token not in special.values()]
    return PreTrainedTokenizerFast(tokenizer_object=backend, additional_special_tokens=extra, **names)


@pytest.mark.parametrize(
    ("tokenizer", "config"),
    [
        (words(), M2M100Config()),
        (words("en", "<en>"), MBartConfig()),
        (words(), XLMRobertaConfig()),
        # The older mBART writes `text </s> en_XX`, although it has the same tokens.
        (MBartTokenizer(vocab=[("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), *PIECES]), MBartConfig()),
    ],
    ids=["no tokens", "other tokens", "encoder", "mbart of 25 languages"],
)
def test_an_unknown_way_is_refused_in_one_sentence(tokenizer: Any, config: Any) -> None:
    with pytest.raises(InputError) as refused:
        row_of(config, tokenizer)
    sentence = str(refused.value)
    assert sentence.startswith(f"--model_name_or_path: a checkpoint of type {config.model_type!r}")
    assert "use mBART-50" in sentence
    assert "\n" not in sentence


@pytest.mark.parametrize("row", [name for name, row in ROWS.items() if row.tag])
@pytest.mark.parametrize("code", ["ja", "xx"])
def test_a_language_without_a_token_is_refused_in_one_sentence(row: str, code: str) -> None:
    make_tag = ROWS[row].tag
    assert make_tag is not None
    coder = coder_of(words(make_tag("en"), sep_token="</s>"), M2M100Config())
    coder.prompt("en")
    with pytest.raises(InputError, match=rf"\w+ the language {code}; use another checkpoint\.$"):
        coder.prompt(code)


def test_a_checkpoint_that_lacks_another_token_is_refused_in_one_sentence() -> None:
    for tokenizer, config, named in (
        (words("[en]"), BartConfig(), "sep_token"),
        (words(), BartConfig(decoder_start_token_id=None), "decoder_start_token_id"),
    ):
        coder = coder_of(tokenizer, config)
        with pytest.raises(InputError, match=rf"has no {named}.*\.$"):
            coder.messages([MESSAGE], "en")
            coder.prompt("en")
