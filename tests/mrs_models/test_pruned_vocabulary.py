"""A vocabulary that is cut to what texts use: equal vectors for what is kept, no unknown character."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from mrs_core.errors import InputError
from mrs_models.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_models.pruned_vocabulary import prune_vocabulary
from mrs_models.retrieval_suggester import encode_messages, encode_replies
from mrs_models.routes import transformers_of

TEXTS = ["Are you coming tonight?", "¿Vienes esta noche?", "今晩来ますか？", "coming tonight", "Вечером придёшь?"]


@pytest.fixture(scope="module")
def unigram(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with SentencePiece-like pieces, and a mask token beyond its vocabulary, as e5 has it."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from mrs_models.tiny import write_checkpoint

    special = ["<s>", "<pad>", "</s>", "<unk>"]
    backend = Tokenizer(models.Unigram())
    backend.pre_tokenizer = pre_tokenizers.Metaspace()
    more = [
        f"{word} {other}" for word in ["abc", "query:", "message", "words", "nobody", "here", "uses"] for other in TEXTS
    ]
    trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
    backend.train_from_iterator([*TEXTS, *more] * 3, trainer)
    backend.add_special_tokens(["<mask>"])
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, unk_token="<unk>", pad_token="<pad>", cls_token="<s>", sep_token="</s>",
        mask_token="<mask>", model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=128, pad_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    torch.manual_seed(0)
    return write_checkpoint(BertModel(config), tokenizer, tmp_path_factory.mktemp("unigram"))


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


def test_few_pieces_still_read_every_character(unigram: Path, tmp_path: Path) -> None:
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


def test_other_vocabularies_are_refused(checkpoint: Path) -> None:
    with pytest.raises(InputError, match="--keep_pieces: only Unigram"):
        prune_vocabulary(build_dual_encoder(str(checkpoint), "mean"), TEXTS, 100)
