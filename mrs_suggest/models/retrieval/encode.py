"""Vectors of messages and replies by a model of sentence-transformers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from sentence_transformers import SentenceTransformer

BATCH = 64


def encode_messages(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of messages, on the CPU."""
    return model.encode_query(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()


def encode_replies(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of replies, on the CPU."""
    return model.encode_document(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()
