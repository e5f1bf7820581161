"""More pieces in the vocabulary of an encoder, for text that its tokenizer cuts badly or does not know at all.

XCOPA's two unseen languages are written in a seen script, and the paper leaves other scripts out (Ponti et al. 2020,
section 4.4, footnote 12). New pieces are those of the same kind of tokenizer, trained on the text, that the
checkpoint's lacks, the most frequent first. The embedding of a new piece begins as the mean of those of the old pieces
that its text was cut into (Hewitt 2021, "Initializing New Word Embeddings for Pretrained Language Models", has the mean
of all); if the old tokenizer knows none of it, it is drawn from a normal distribution with mean and deviation of all
old embeddings, number by number.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from tokenizers import Tokenizer, models, trainers
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.pretraining.masking import SENTENCEPIECE

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

# As if one word in so many of the text that made the old vocabulary were of the new text: without it, short pieces that
# are frequent in a small text would cut the words that the tokenizer knows (ours).
RARE = 100
KINDS = ("Unigram", "WordPiece")  # of XLM-R and of BERT; byte-pair vocabularies would need merges too


def add_pieces(
    tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], most: int
) -> tuple[PreTrainedTokenizerFast, list[str]]:
    """A tokenizer with more pieces, which keep all old ids, and the new pieces in the order of their ids.

    Args:
        tokenizer: of SentencePiece's Unigram kind or WordPiece; is not changed.
        texts: of the training, from which the new pieces are taken.
        most: how many at most.
    """
    backend: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    kind = backend["model"]["type"]
    if kind not in KINDS:
        raise InputError(
            f"--new_pieces: the tokenizer is of the kind {kind}, and pieces can be added to {' and '.join(KINDS)}; "
            "leave it out, or start from an encoder such as FacebookAI/xlm-roberta-base."
        )
    own = _trained(backend, texts, most + len(backend["added_tokens"]))
    known = tokenizer.get_vocab()
    used = Counter(piece for found in own.encode_batch(texts, add_special_tokens=False) for piece in found.tokens)
    ranked = sorted(used, key=lambda piece: (-used[piece], piece))
    unknown = {token["content"] for token in backend["added_tokens"]}
    pieces = [piece for piece in ranked if piece not in known and piece not in unknown][:most]
    if not pieces:
        raise InputError("--new_pieces: the tokenizer has all pieces of this text already; leave it out.")
    _append(backend, pieces, json.loads(own.to_str())["model"])
    with tempfile.TemporaryDirectory() as name:
        tokenizer.save_pretrained(name)
        (Path(name) / "tokenizer.json").write_text(json.dumps(backend, ensure_ascii=False), encoding="utf-8")
        return from_pretrained("AutoTokenizer", name), pieces


def _trained(backend: dict[str, Any], texts: Iterable[str], size: int) -> Tokenizer:
    """A tokenizer of the same kind, with the same normalization and words, trained on the texts."""
    model = backend["model"]
    special = [token["content"] for token in backend["added_tokens"]]
    unknown = model["vocab"][model["unk_id"]][0] if model["type"] == "Unigram" else model["unk_token"]
    fresh = Tokenizer.from_str(json.dumps(backend))
    trainer: Any
    if model["type"] == "Unigram":
        fresh.model = models.Unigram()
        trainer = trainers.UnigramTrainer(
            vocab_size=size, special_tokens=special, unk_token=unknown, show_progress=False
        )
    else:
        prefix = model["continuing_subword_prefix"]
        fresh.model = models.WordPiece(unk_token=unknown, continuing_subword_prefix=prefix)
        trainer = trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=special, continuing_subword_prefix=prefix, show_progress=False
        )
    fresh.train_from_iterator(texts, trainer)
    return fresh


def _append(backend: dict[str, Any], pieces: Sequence[str], own: dict[str, Any]) -> None:
    """Put the pieces behind all old ids; a Unigram piece has the logarithm of its probability in both texts."""
    vocabulary = backend["model"]["vocab"]
    # Special tokens behind the model's vocabulary keep their ids if they become part of it.
    behind = sorted((token["id"], token["content"]) for token in backend["added_tokens"])
    behind = [(number, content) for number, content in behind if number >= len(vocabulary)]
    if backend["model"]["type"] == "Unigram":
        scores = dict(own["vocab"])
        vocabulary += [[content, 0.0] for _, content in behind]
        vocabulary += [[piece, scores[piece] - math.log(RARE)] for piece in pieces]
    else:
        vocabulary |= {content: number for number, content in behind}
        first = max(vocabulary.values()) + 1
        vocabulary |= {piece: first + number for number, piece in enumerate(pieces)}


def embed_pieces(
    model: PreTrainedModel, old: PreTrainedTokenizerFast, new: PreTrainedTokenizerFast, pieces: Sequence[str], seed: int
) -> None:
    """Give the model rows for the new pieces, in place; the head's biases of them begin at 0. `old` and `new` are the
    tokenizers before and after `add_pieces`."""
    before = _table(model).detach().clone()
    model.resize_token_embeddings(max(len(new), len(before)), mean_resizing=False)
    rows = _table(model)
    generator = torch.Generator().manual_seed(seed)
    vocabulary, special = new.get_vocab(), set(old.all_special_ids)
    with torch.no_grad():
        for piece in pieces:
            text = piece.replace(SENTENCEPIECE, " ").removeprefix("##").strip()
            parts = [number for number in old(text, add_special_tokens=False)["input_ids"] if number not in special]
            noise = torch.randn(before.shape[1], generator=generator)
            drawn = before.mean(0) + before.std(0) * noise
            rows[vocabulary[piece]] = before[parts].mean(0) if parts else drawn
        bias = getattr(model.get_output_embeddings(), "bias", None)
        if bias is not None:
            bias[len(before) :] = 0


def _table(model: PreTrainedModel) -> Tensor:
    return cast(nn.Embedding, model.get_input_embeddings()).weight
