"""Cuts the vocabulary of a dual encoder to the pieces that texts use most: most of a small multilingual model is its
embeddings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from tokenizers import Tokenizer
from torch import nn

from mrs_core.errors import InputError
from mrs_models.routes import prompts_of, transformers_of

_AT_A_TIME = 1_000


def prune_vocabulary(model: SentenceTransformer, texts: Iterable[str], pieces: int) -> None:
    """Keep the `pieces` most frequent pieces of the texts, and every single character in them, in place.

    A word whose piece is gone is read in smaller pieces. Special tokens stay. Ids change, so the tokenizer and the
    embeddings belong together afterwards.

    Args:
        texts: what frequencies are counted on; pieces of the model's prompts are kept, too.

    Raises:
        InputError: the tokenizer has no Unigram (SentencePiece) vocabulary.
    """
    counted: Counter[int] | None = None
    texts = list(texts)
    for module in transformers_of(model):
        tokenizer = cast(Any, module).tokenizer
        facts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
        if facts["model"].get("type") != "Unigram":
            raise InputError("--keep_pieces: only Unigram (SentencePiece) vocabularies can be cut; leave it out.")
        counted = counted or _counts(tokenizer.backend_tokenizer, texts, prompts_of(model))
        kept = _kept(facts, counted, pieces)
        _cut_tokenizer(tokenizer, facts, kept)
        _cut_embeddings(module, kept)


def _counts(backend: Tokenizer, texts: list[str], prompts: Sequence[str]) -> Counter[int]:
    found: Counter[int] = Counter()
    rest = iter(texts)
    while some := list(islice(rest, _AT_A_TIME)):
        for encoding in backend.encode_batch(some):
            found.update(encoding.ids)
    characters = sorted({character for text in texts for character in text})
    for encoding in backend.encode_batch([*characters, *prompts], add_special_tokens=False):
        found.update({number: len(texts) + 1 for number in encoding.ids})  # none of them may be lost
    return found


def _kept(facts: Mapping[str, Any], counted: Counter[int], pieces: int) -> list[int]:
    """Old ids of what stays, ascending."""
    special = {token["id"] for token in facts["added_tokens"]}
    often = sorted(counted, key=lambda number: (-counted[number], number))
    return sorted(special | set(often[:pieces]))


def _cut_tokenizer(tokenizer: Any, facts: dict[str, Any], kept: list[int]) -> None:
    new = {old: number for number, old in enumerate(kept)}
    vocabulary = facts["model"]["vocab"]
    facts["model"]["vocab"] = [vocabulary[old] for old in kept if old < len(vocabulary)]  # others were added to it
    facts["model"]["unk_id"] = new[facts["model"]["unk_id"]]
    for token in facts["added_tokens"]:
        token["id"] = new[token["id"]]
    for token in ((facts.get("post_processor") or {}).get("special_tokens") or {}).values():
        token["ids"] = [new[old] for old in token["ids"]]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(facts))


def _cut_embeddings(module: Transformer, kept: list[int]) -> None:
    encoder = cast(Any, module.auto_model)
    old = encoder.get_input_embeddings()
    new_pad = kept.index(encoder.config.pad_token_id) if encoder.config.pad_token_id in kept else None
    new = nn.Embedding(len(kept), old.embedding_dim, padding_idx=new_pad, dtype=old.weight.dtype)
    with torch.no_grad():
        new.weight.copy_(old.weight[torch.tensor(kept)])
    encoder.set_input_embeddings(new)
    encoder.config.vocab_size = len(kept)
    encoder.config.pad_token_id = new_pad
