"""Whether the decoder starts with the language's token: prompts, added tokens, saved folders, plain transformers."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, MT5Config, MT5ForConditionalGeneration

from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.language_tokens import ROWS, row_of
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.retrieval.tiny import train_tokenizer

TEXTS = ["how are you?", "I am fine, thanks!", "¿qué tal estás?", "muy bien, gracias"] * 4


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint without a token of any language, whose table of vectors has rows to spare, as mT5's."""
    folder = tmp_path_factory.mktemp("t5")
    tokenizer = train_tokenizer(TEXTS, 150)
    tokenizer.add_special_tokens({"eos_token": "</s>"})
    config = MT5Config(
        vocab_size=len(tokenizer) + 1, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        MT5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_tiny_generator(TEXTS, ["en", "es"], tmp_path_factory.mktemp("tiny"), 1, 150)


def build(folder: Path, forced: bool | None, languages: tuple[str, ...] = ("en", "es")) -> Generator:
    decoding = Decoding(beams=3, max_tokens=6)
    generator = Generator.build(str(folder), languages, 20, 12, decoding, force_language_token=forced)
    generator.model.eval()
    return generator


def test_a_checkpoint_without_tokens_gets_them(t5: Path, tmp_path: Path) -> None:
    plain, told = build(t5, None), build(t5, True)
    assert plain.coder.row.name == "plain"
    assert plain.coder.prompt("en") == plain.coder.prompt("es")
    start, english = told.coder.prompt("en")
    assert [start] == plain.coder.prompt("en")
    assert told.coder.prompt("es")[1] != english
    assert told.coder.messages(TEXTS[:2], "es") == plain.coder.messages(TEXTS[:2], "en"), "the decoder alone is told"
    again: Any = build(t5, True).model
    for name, value in told.model.state_dict().items():
        assert torch.equal(value, again.state_dict()[name]), "the added vectors do not depend on chance"

    told.save(tmp_path)
    loaded = Generator.load(tmp_path)
    assert loaded.coder.row == ROWS["told"] == row_of(loaded.model.config, loaded.coder.tokenizer)
    assert loaded.suggest(TEXTS[:2], "es", 3) == told.suggest(TEXTS[:2], "es", 3)
    third = build(tmp_path, True, ("en", "fr"))
    assert third.coder.prompt("en") == [start, english]
    assert len(third.coder.prompt("fr")) == 2, "a language that comes later gets its token, too"
    # Plain transformers starts a reply with the token.
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    message = tokenizer([TEXTS[0]], return_tensors="pt")
    for language, more in (("en", {}), ("es", {"forced_bos_token_id": tokenizer.convert_tokens_to_ids("<to:es>")})):
        found = model.generate(**message, **more, num_return_sequences=1)[0].tolist()
        assert found[:2] == told.coder.prompt(language)
        assert "to:" not in tokenizer.decode(found, skip_special_tokens=True)


def test_a_decoder_that_is_not_told_answers_all_languages_alike(tiny: Path, tmp_path: Path) -> None:
    untold_one, told = build(tiny, False), build(tiny, True)
    assert told.coder.row.name == "unicoder", "it has tokens already"
    assert untold_one.coder.prompt("en") == untold_one.coder.prompt("es") == [untold_one.end]
    losses = [
        [float(one.losses(TEXTS[:1], TEXTS[1:2], code)[0][0]) for code in ("en", "es")] for one in (told, untold_one)
    ]
    assert losses[0][0] != losses[0][1]
    assert losses[1][0] == losses[1][1]
    untold_one.save(tmp_path)
    loaded = Generator.load(tmp_path)
    assert loaded.coder.row == untold_one.coder.row
    assert loaded.coder.row.name == "unicoder-untold"
    assert loaded.suggest(TEXTS[:1], "en", 3) == untold_one.suggest(TEXTS[:1], "es", 3)
    assert build(tmp_path, None).coder.row.name == "unicoder", "the next run decides for itself"
