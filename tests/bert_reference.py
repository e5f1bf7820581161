"""BERT's forward pass and loss in numpy: what the losses of masked language modelling are compared with."""

from __future__ import annotations

from math import erf
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mrs_suggest.models.generation.padding import IGNORED


def norm(x: NDArray[np.float64], weight: Any, bias: Any, eps: float) -> NDArray[np.float64]:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def reference_losses(model: Any, batch: dict[str, torch.Tensor]) -> NDArray[np.float64]:
    """Cross-entropy of the predicted tokens by BERT's formulas in numpy, float64, row by row."""
    w = {name: value.double().numpy() for name, value in model.state_dict().items()}
    eps, heads = model.config.layer_norm_eps, model.config.num_attention_heads

    def linear(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def normed(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return norm(x, w[f"{name}.weight"], w[f"{name}.bias"], eps)

    gelu = np.vectorize(lambda x: x * 0.5 * (1 + erf(x / 2**0.5)))
    ids, attend = batch["input_ids"].numpy(), batch["attention_mask"].numpy()
    n, length = ids.shape
    at = "bert.embeddings."
    x = w[at + "word_embeddings.weight"][ids] + w[at + "position_embeddings.weight"][:length]
    x = normed(x + w[at + "token_type_embeddings.weight"][0], at + "LayerNorm")
    for layer in range(model.config.num_hidden_layers):
        at = f"bert.encoder.layer.{layer}."
        parts = [linear(x, f"{at}attention.self.{name}") for name in ("query", "key", "value")]
        q, k, v = (part.reshape(n, length, heads, -1).transpose(0, 2, 1, 3) for part in parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        scores = np.where(attend[:, None, None, :] == 1, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(n, length, -1)
        x = normed(x + linear(mixed, f"{at}attention.output.dense"), f"{at}attention.output.LayerNorm")
        inner = gelu(linear(x, f"{at}intermediate.dense"))
        x = normed(x + linear(inner, f"{at}output.dense"), f"{at}output.LayerNorm")
    at = "cls.predictions."
    x = normed(gelu(linear(x, at + "transform.dense")), at + "transform.LayerNorm")
    logits = x @ w["bert.embeddings.word_embeddings.weight"].T + w[at + "bias"]
    top = logits.max(-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    labels = batch["labels"].numpy()
    rows, places = np.nonzero(labels != IGNORED)
    return -log_p[rows, places, labels[rows, places]]
