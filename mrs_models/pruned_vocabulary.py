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
WORD_START = "▁"  # SentencePiece's space


def prune_vocabulary(model: SentenceTransformer, texts: Iterable[str], pieces: int) -> None:
    """Keep `pieces` pieces: every single character of the texts, and their most frequent pieces; in place.

    A word whose piece is gone is read in smaller pieces. Special tokens stay. Ids change, so the tokenizer and the
    embeddings belong together afterwards.

    Args:
        texts: what frequencies are counted on; pieces of the model's prompts are kept, too.
        pieces: characters, prompts and special tokens stay even where they are more.

    Raises:
        InputError: the tokenizer has no Unigram (SentencePiece) vocabulary.
    """
    texts, kept = list(texts), list[int]()
    for module in transformers_of(model):
        tokenizer = cast(Any, module).tokenizer
        facts: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
        if facts["model"].get("type") != "Unigram":
            raise InputError("--keep_pieces: only Unigram (SentencePiece) vocabularies can be cut; leave it out.")
        kept = kept or _kept(tokenizer.backend_tokenizer, facts, texts, prompts_of(model), pieces)
        _cut_tokenizer(tokenizer, facts, kept)
        _cut_embeddings(module, kept)


def _kept(
    backend: Tokenizer, facts: Mapping[str, Any], texts: list[str], prompts: Sequence[str], pieces: int
) -> list[int]:
    """Old ids of what stays, ascending."""
    counted: Counter[int] = Counter()
    rest = iter(texts)
    while some := list(islice(rest, _AT_A_TIME)):
        for encoding in backend.encode_batch(some):
            counted.update(encoding.ids)
    needed = {token["id"] for token in facts["added_tokens"]}
    for encoding in backend.encode_batch(list(prompts), add_special_tokens=False):
        needed.update(encoding.ids)
    # Single characters, bare: a word whose piece is gone is spelt with them.
    read = backend.normalizer.normalize_str if backend.normalizer else str
    characters = {character for text in (*texts, *prompts) for character in read(text)} | {WORD_START}
    needed |= {number for character in characters if (number := backend.token_to_id(character)) is not None}
    often = sorted(counted.keys() - needed, key=lambda number: (-counted[number], number))
    return sorted(needed | set(often[: max(0, pieces - len(needed))]))


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
