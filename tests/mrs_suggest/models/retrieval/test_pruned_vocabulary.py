"""A vocabulary that is cut to what texts use: equal vectors for what is kept, no unknown character."""

import json
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder, prune_vocabulary
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.routes import transformers_of
from tests.mrs_suggest.conftest import UNIGRAM_TEXTS as TEXTS


def built(folder: Path, encoders: str = "one") -> SentenceTransformer:
    return build_dual_encoder(str(folder), "mean", encoders=encoders, query_prompt="query: ", normalize=True)


def pieces_of(model: SentenceTransformer) -> int:
    return len(transformers_of(model)[0].tokenizer)


@pytest.mark.parametrize("encoders", ["one", "two"])
def test_vectors_stay_where_all_pieces_stay(unigram: Path, encoders: str, tmp_path: Path) -> None:
    model = built(unigram, encoders)
    before, pieces = (encode_messages(model, TEXTS), encode_replies(model, TEXTS)), pieces_of(model)
    prune_vocabulary(model, TEXTS, 10_000)
    assert pieces_of(model) < pieces
    for old, new in zip(before, (encode_messages(model, TEXTS), encode_replies(model, TEXTS)), strict=True):
        torch.testing.assert_close(old, new, atol=1e-6, rtol=1e-5)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    torch.testing.assert_close(encode_messages(load_dual_encoder(tmp_path), TEXTS), before[0], atol=1e-6, rtol=1e-5)


def test_few_pieces_still_read_every_character(unigram: Path, tmp_path: Path, checkpoint: Path) -> None:
    model = built(unigram)
    prune_vocabulary(model, TEXTS, 1)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    again = transformers_of(load_dual_encoder(tmp_path))[0]
    unknown = again.tokenizer.unk_token_id
    assert not any(unknown in ids for ids in again.tokenizer(["query: " + text for text in TEXTS])["input_ids"])
    facts = json.loads(again.tokenizer.backend_tokenizer.to_str())
    assert again.auto_model.get_input_embeddings().num_embeddings == len(again.tokenizer)
    assert again.tokenizer.mask_token_id == len(again.tokenizer) - 1
    assert facts["model"]["vocab"][again.tokenizer.pad_token_id][0] == "<pad>"
    with pytest.raises(InputError, match="--keep_pieces: only Unigram"):
        prune_vocabulary(build_dual_encoder(str(checkpoint), "mean"), TEXTS, 100)
