"""A generator made of an encoder: the same vectors, copied and fresh layers, and a folder like any generator's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BertConfig,
    BertModel,
    PreTrainedTokenizerFast,
    XLMRobertaConfig,
    XLMRobertaModel,
)

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.encoder_decoder import COPIED, FRESH, LAYER, build_from_encoder, is_encoder
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.suggest.suggester import Suggester
from tests.mrs_suggest.conftest import UNIGRAM_TEXTS

PAIRS = {
    "en": [("how are you?", "i am fine, thanks!"), ("hola", "yes, see you there.")],
    "es": [("¿qué tal?", "muy bien, gracias."), ("hola", "sí, nos vemos allí.")],
}
TEXTS = [text for pairs in PAIRS.values() for pair in pairs for text in pair]
SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32,
    "initializer_range": 0.3, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip


def tokenizer_of(first: str, last: str, pad: str) -> PreTrainedTokenizerFast:
    """A small tokenizer whose special tokens have these names."""
    tokenizer = train_tokenizer(TEXTS * 4, 150)
    tokenizer.add_special_tokens({"cls_token": first, "sep_token": last, "pad_token": pad})
    return tokenizer


@pytest.fixture(scope="module", params=["bert", "xlm-roberta"])
def encoder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    bert = request.param == "bert"
    tokenizer = tokenizer_of("[CLS]", "[SEP]", "[PAD]") if bert else tokenizer_of("<s>", "</s>", "<pad>")
    special = {"vocab_size": len(tokenizer) + 3, "pad_token_id": tokenizer.pad_token_id}  # some models have spare rows
    kind: Any = BertModel if bert else XLMRobertaModel
    config: Any = BertConfig if bert else XLMRobertaConfig
    positions = 40 if bert else 40 + 1 + int(tokenizer.convert_tokens_to_ids("<pad>"))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        kind(config(**SHAPE, **special, max_position_embeddings=positions)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def build(encoder: Path, folder: Path, **options: Any) -> Generator:
    build_from_encoder(str(encoder), None, ["en", "es"], folder, 1, **options)
    return Generator.build(str(folder), ["en", "es"], 20, 14, Decoding(max_tokens=12))


def test_the_encoder_gives_the_same_vectors(encoder: Path, tmp_path: Path) -> None:
    generator = build(encoder, tmp_path / "made")
    generator.model.eval()
    original = AutoModel.from_pretrained(encoder).eval()
    texts = [*TEXTS, " ".join(TEXTS)]
    batch = PairCollator(generator.pad)(
        [{"input_ids": ids, "labels": [1], "prompt": [1]} for ids in generator.coder.messages(texts, "en")]
    )
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        ours = generator.model.get_encoder()(**inputs).last_hidden_state
        theirs = original(**inputs).last_hidden_state
    counted = inputs["attention_mask"].bool()
    torch.testing.assert_close(ours[counted], theirs[counted], rtol=1e-3, atol=1e-3)
    assert generator.model.config.max_position_embeddings == 40
    tokenizer = AutoTokenizer.from_pretrained(encoder)
    first, *_, last = generator.coder.messages(["hola"], "es")[0]
    assert (first, last) == (tokenizer.cls_token_id, tokenizer.sep_token_id)


def test_a_cut_vocabulary_gives_the_same_vectors_where_all_pieces_stay(unigram: Path, tmp_path: Path) -> None:
    texts, whole = ["Are you coming tonight?", "coming tonight"], AutoTokenizer.from_pretrained(unigram)
    generator = build(unigram, tmp_path / "made", texts=UNIGRAM_TEXTS, pieces=10_000, layers=1)
    generator.model.eval()
    assert generator.model.config.vocab_size == len(generator.coder.tokenizer) < len(whole)
    original = AutoModel.from_pretrained(unigram).eval()
    for text, ids in zip(texts, generator.coder.messages(texts, "en"), strict=True):
        with torch.no_grad():
            ours = generator.model.get_encoder()(torch.tensor([ids])).last_hidden_state
            theirs = original(**whole(text, return_tensors="pt")).last_hidden_state
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)
    generator.save(tmp_path / "saved")
    again, replies = Generator.load(tmp_path / "saved"), ["Вечером придёшь?", "今晩来ますか？"]
    for one, other in zip(*(g.losses(texts, replies, "es") for g in (generator, again)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_what_is_copied_and_what_is_fresh(encoder: Path, tmp_path: Path) -> None:
    copied, again, other_seed, tensors = (
        load_file(build_from_encoder(str(encoder), None, ["en"], tmp_path / name, *how) / "model.safetensors")
        for name, *how in (("a", 1), ("b", 1), ("c", 2), ("d", 1, FRESH, 5))
    )
    assert all(torch.equal(copied[name], again[name]) for name in copied)
    differing = {name for name in copied if not torch.equal(copied[name], other_seed[name])}
    assert differing
    assert all("encoder_attn" in name or name == "model.shared.weight" for name in differing)
    for number, source in ((0, 0), (1, 2)):  # two of three layers
        for part in LAYER:
            name = f"{part}.weight"
            one, other = (
                copied[f"model.encoder.layers.{source}.{name}"],
                copied[f"model.decoder.layers.{number}.{name}"],
            )
            if (number, part) == (1, "final_layer_norm"):  # the last one: see `build_from_encoder`
                one = torch.ones_like(one)
            assert torch.equal(one, other)
    assert "model.decoder.layers.4.fc1.weight" in tensors
    assert not torch.equal(tensors["model.decoder.layers.0.fc1.weight"], tensors["model.encoder.layers.0.fc1.weight"])
    place = "model.encoder.layers.2.fc1.weight"
    assert torch.equal(tensors[place], copied[place])


@pytest.mark.parametrize("decoder", [COPIED, FRESH])
def test_it_learns_is_saved_and_answers_in_the_language_asked_for(encoder: Path, tmp_path: Path, decoder: str) -> None:
    generator = build(encoder, tmp_path / "made", decoder=decoder)
    coder = generator.coder
    examples = [
        {"input_ids": coder.messages([message], code)[0], "labels": coder.replies([reply])[0],
         "prompt": coder.prompt(code)}
        for code, pairs in PAIRS.items() for message, reply in pairs
    ]  # fmt: skip
    batch = PairCollator(generator.pad)(examples)
    optimizer = torch.optim.Adam(generator.model.parameters(), lr=5e-3)
    for _ in range(80):
        optimizer.zero_grad()
        generator.model(**batch).loss.backward()
        optimizer.step()
    generator.model.eval()
    generator.save(tmp_path / "saved")
    suggester = Suggester.from_pretrained(tmp_path / "saved")
    assert suggester.languages == ["en", "es"]
    for code, pairs in PAIRS.items():
        for message, reply in pairs:
            assert suggester.suggest([message], code)[0][0].reply == reply
    # As the card shows it, with transformers alone.
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "saved")
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "saved")
    for code, start in (("en", {}), ("es", {"decoder_start_token_id": tokenizer.convert_tokens_to_ids("<2es>")})):
        found = model.generate(**tokenizer("hola", return_tensors="pt"), **start)
        assert tokenizer.batch_decode(found, skip_special_tokens=True)[0].strip() == PAIRS[code][1][1]
    again = Generator.build(
        str(tmp_path / "saved"), ["en"], 20, 14, Decoding(max_tokens=12)
    )  # training can go on from it
    assert again.coder.row.name == "encoder"


def test_refusals(encoder: Path, tmp_path: Path) -> None:
    assert is_encoder(str(encoder))
    assert not is_encoder(str(tmp_path))
    assert not is_encoder(str(build_from_encoder(str(encoder), None, ["en"], tmp_path / "made", 1)))
    with pytest.raises(InputError, match="--decoder_layers 4: .* has 3 layers to copy; pass at most as many, or"):
        build_from_encoder(str(encoder), None, ["en"], tmp_path / "out", 1, COPIED, 4)
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").write_bytes((encoder / "config.json").read_bytes())
    assert is_encoder(str(tmp_path / "bare"))
    with pytest.raises(InputError, match="cannot load the encoder"):
        build_from_encoder(str(tmp_path / "bare"), None, ["en"], tmp_path / "out", 1)
    tokenizer = train_tokenizer(TEXTS * 4, 150)
    tokenizer.cls_token = None
    tokenizer.save_pretrained(tmp_path / "bare")
    (tmp_path / "bare" / "model.safetensors").write_bytes((encoder / "model.safetensors").read_bytes())
    with pytest.raises(InputError, match="its tokenizer has no cls_token"):
        build_from_encoder(str(tmp_path / "bare"), None, ["en"], tmp_path / "out", 1)
    assert not (tmp_path / "out").exists()
