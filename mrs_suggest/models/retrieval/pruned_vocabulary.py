"""Cuts the vocabulary of an encoder to the pieces that texts use most: most of a small multilingual model is its
embeddings."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError

LEAST_PIECES = 100  # fewer than the characters of most languages
_AT_A_TIME = 1_000
WORD_START = "▁"  # SentencePiece's space


def kept_pieces(tokenizer: Any, texts: Iterable[str], prompts: Sequence[str], pieces: int) -> list[int]:
    """The ids that stay, ascending: every single character of the texts, and their most frequent pieces.

    A word whose piece is gone is read in smaller pieces. Special tokens stay.

    Args:
        tokenizer: a fast one of `transformers`.
        texts: what frequencies are counted on.
        prompts: all of their pieces stay.
        pieces: characters, prompts and special tokens stay even where they are more.
    """
    backend = tokenizer.backend_tokenizer
    facts = json.loads(backend.to_str())
    if facts["model"].get("type") != "Unigram":
        raise InputError("--keep_pieces: only Unigram (SentencePiece) vocabularies can be cut; leave it out.")
    # Single characters, bare: a word whose piece is gone is spelt with them.
    read = backend.normalizer.normalize_str if backend.normalizer else str
    counted, characters = Counter[int](), {WORD_START}.union(*map(read, prompts))
    for some in in_batches(texts, _AT_A_TIME):
        characters.update(*map(read, some))
        for encoding in backend.encode_batch(some):
            counted.update(encoding.ids)
    needed = {token["id"] for token in facts["added_tokens"]}
    for encoding in backend.encode_batch(list(prompts), add_special_tokens=False):
        needed.update(encoding.ids)
    needed |= {number for character in characters if (number := backend.token_to_id(character)) is not None}
    often = sorted(counted.keys() - needed, key=lambda number: (-counted[number], number))
    return sorted(needed | set(often[: max(0, pieces - len(needed))]))


def cut_vocabulary(encoder: Any, tokenizer: Any, kept: Sequence[int]) -> None:
    """Leave the ids `kept` to an encoder and its tokenizer, in place. Ids change, so the two belong together then."""
    facts = json.loads(tokenizer.backend_tokenizer.to_str())
    new = {old: number for number, old in enumerate(kept)}
    vocabulary = facts["model"]["vocab"]
    facts["model"]["vocab"] = [vocabulary[old] for old in kept if old < len(vocabulary)]  # others were added to it
    facts["model"]["unk_id"] = new[facts["model"]["unk_id"]]
    for token in facts["added_tokens"]:
        token["id"] = new[token["id"]]
    for token in ((facts.get("post_processor") or {}).get("special_tokens") or {}).values():
        token["ids"] = [new[old] for old in token["ids"]]
    tokenizer._tokenizer = Tokenizer.from_str(json.dumps(facts))
    table = encoder.get_input_embeddings()
    new_pad = kept.index(encoder.config.pad_token_id) if encoder.config.pad_token_id in kept else None
    cut = nn.Embedding(len(kept), table.embedding_dim, padding_idx=new_pad, dtype=table.weight.dtype)
    with torch.no_grad():
        cut.weight.copy_(table.weight[torch.tensor(list(kept))])
    encoder.set_input_embeddings(cut)
    encoder.config.vocab_size = len(kept)
    encoder.config.pad_token_id = new_pad
