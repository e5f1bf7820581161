"""Vectors of messages and replies by a model of sentence-transformers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

BATCH = 64
ENCODER_TOKENS = 128  # ours: replies, and STAPLE's prompts and translations, are single sentences
Encode = Callable[[list[str]], NDArray[np.floating]]


def encode_messages(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of messages, on the CPU."""
    return model.encode_query(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()


def encode_replies(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of replies, on the CPU."""
    return model.encode_document(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()


def load_encoder(name: str) -> tuple[Encode, str]:
    """A function that encodes texts with a multilingual sentence encoder, and eight digits of the weights' hash.

    All texts take the same route, with the checkpoint's own text before queries (E5's `query: `), as its authors advise
    if no text is a passage.

    Args:
        name: a folder, or `ORG/NAME[@REVISION]`: any checkpoint that a retriever can start from.
    """
    from mrs_suggest.common.hub.hub import split_revision
    from mrs_suggest.models.retrieval.distillation import load_teacher

    checkpoint, revision = split_revision(name, None)
    try:
        model = load_teacher(checkpoint, ENCODER_TOKENS, ENCODER_TOKENS, None, revision)
    except InputError as error:
        raise InputError(str(error).replace("--teacher", "--encoder")) from None
    digest = hashlib.sha256(b"".join(tensor.float().numpy().tobytes() for tensor in model.state_dict().values()))
    return lambda texts: np.asarray(encode_messages(model, texts).numpy()), digest.hexdigest()[:8]
