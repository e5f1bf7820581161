"""New pieces keep the old ids, are used, survive saving, and begin as stated."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer as load_tokenizer
from mrs_suggest.models.generation.new_pieces import add_pieces, embed_pieces
from mrs_suggest.models.pretraining.masked_lm import load_masked_lm
from mrs_suggest.models.retrieval.tiny import train_tokenizer

OLD = ["wa", "ter", "the", "a"]
TEXTS = ["water the water", "warm wax", "the rat ate wheat", "ᏣᎳᎩ ᏣᎳᎩ a", "ᏣᎳᎩ the"] * 20


def old_tokenizer(kind: str) -> PreTrainedTokenizerFast:
    if kind == "Unigram":
        pieces = ["<pad>", "<unk>", "▁", *(f"▁{piece}" for piece in OLD), *OLD, *"waterhmx"]
        pieces = list(dict.fromkeys(pieces))
        backend = Tokenizer(models.Unigram([(piece, -8 - n / 10) for n, piece in enumerate(pieces)], 1, False))
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    else:
        pieces = ["<pad>", "<unk>", *OLD, *(f"##{piece}" for piece in OLD)]
        backend = Tokenizer(models.WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="<unk>"))
        backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", mask_token="<mask>"
    )  # the mask is behind the model's vocabulary


@pytest.mark.parametrize("kind", ["Unigram", "WordPiece"])
def test_pieces_are_added_behind_all_others_and_used(kind: str, tmp_path: Path) -> None:
    old = old_tokenizer(kind)
    assert old.unk_token_id in old(TEXTS[-1])["input_ids"], "a script that it does not know"
    new, pieces = add_pieces(old, TEXTS, 30)
    assert pieces
    before, after = old.get_vocab(), new.get_vocab()
    assert {piece: after[piece] for piece in before} == before
    assert sorted(after[piece] for piece in pieces) == list(range(len(before), len(before) + len(pieces)))
    for text in TEXTS[:5]:
        ids = new(text)["input_ids"]
        assert new.unk_token_id not in ids
        assert len(ids) <= len(old(text)["input_ids"]) or old.unk_token_id in old(text)["input_ids"]
    new.save_pretrained(tmp_path)
    torch.manual_seed(0)
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    model = BertForMaskedLM(BertConfig(vocab_size=len(old), **shape))
    model.cls.predictions.bias.data.fill_(1.0)
    table = model.get_input_embeddings().weight.detach().clone()
    embed_pieces(model, old, new, pieces, 0)
    rows = model.get_input_embeddings().weight
    assert torch.equal(rows[: len(old)], table)
    assert model.cls.predictions.bias[len(old) :].abs().sum() == 0
    cut = {piece: old(piece.strip("▁#"), add_special_tokens=False)["input_ids"] for piece in pieces}
    whole, parts = next((piece, ids) for piece, ids in cut.items() if old.unk_token_id not in ids)
    assert torch.allclose(rows[after[whole]], table[parts].mean(0))
    unknown = next(piece for piece in pieces if "Ꮳ" in piece)
    assert not torch.allclose(rows[after[unknown]], table.mean(0)), "drawn: equal rows could not be told apart"
    model.save_pretrained(tmp_path)
    again, fresh = load_masked_lm(str(tmp_path), None, 0)
    assert fresh == []
    assert len(load_tokenizer(str(tmp_path), None)) == again.config.vocab_size == len(after)
    assert again.get_output_embeddings().weight is again.get_input_embeddings().weight


def test_what_cannot_get_pieces_is_refused() -> None:
    with pytest.raises(InputError, match="--new_pieces: the tokenizer is of the kind BPE"):
        add_pieces(train_tokenizer(TEXTS, 100), TEXTS, 10)
    with pytest.raises(InputError, match="has all pieces of this text already"):
        add_pieces(old_tokenizer("WordPiece"), ["a", "a a"] * 3, 1)
