"""BERT's forward pass in numpy and float64, and the loss of masked language modelling."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import erf

from mrs_suggest.models.generation.padding import IGNORED


def norm(x: NDArray[np.float64], weight: Any, bias: Any, eps: float) -> NDArray[np.float64]:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return x * 0.5 * (1 + erf(x / np.sqrt(2)))


class Weights:
    """Layers of a model in float64."""

    def __init__(self, model: torch.nn.Module, eps: float) -> None:
        self.eps = eps
        self.of = {name: value.double().numpy() for name, value in model.state_dict().items()}

    def linear(self, x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ self.of[f"{name}.weight"].T + self.of[f"{name}.bias"]

    def normed(self, x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return norm(x, self.of[f"{name}.weight"], self.of[f"{name}.bias"], self.eps)


def bert_states(w: Weights, at: str, config: Any, ids: Any, mask: Any, types: Any = 0) -> NDArray[np.float64]:
    """BERT's last states, (rows, tokens, width), by the formulas of Devlin et al. 2019.

    Args:
        at: what its weights' names begin with.
        ids, mask, types: (rows, tokens).
    """
    tables, (n, length) = f"{at}embeddings.", ids.shape
    x = w.of[f"{tables}word_embeddings.weight"][ids] + w.of[f"{tables}position_embeddings.weight"][:length]
    x = w.normed(x + w.of[f"{tables}token_type_embeddings.weight"][types], f"{tables}LayerNorm")
    for number in range(config.num_hidden_layers):
        layer = f"{at}encoder.layer.{number}."
        parts = [w.linear(x, f"{layer}attention.self.{name}") for name in ("query", "key", "value")]
        q, k, v = (part.reshape(n, length, config.num_attention_heads, -1).transpose(0, 2, 1, 3) for part in parts)
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(q.shape[-1])
        scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        mixed = (weights @ v).transpose(0, 2, 1, 3).reshape(n, length, -1)
        x = w.normed(x + w.linear(mixed, f"{layer}attention.output.dense"), f"{layer}attention.output.LayerNorm")
        inner = gelu(w.linear(x, f"{layer}intermediate.dense"))
        x = w.normed(x + w.linear(inner, f"{layer}output.dense"), f"{layer}output.LayerNorm")
    return x


def reference_losses(model: Any, batch: dict[str, torch.Tensor]) -> NDArray[np.float64]:
    """Cross-entropy of the tokens that a masked language model predicts, row by row."""
    w = Weights(model, model.config.layer_norm_eps)
    x = bert_states(w, "bert.", model.config, batch["input_ids"].numpy(), batch["attention_mask"].numpy())
    at = "cls.predictions."
    x = w.normed(gelu(w.linear(x, at + "transform.dense")), at + "transform.LayerNorm")
    logits = x @ w.of["bert.embeddings.word_embeddings.weight"].T + w.of[at + "bias"]
    top = logits.max(-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    labels = batch["labels"].numpy()
    rows, places = np.nonzero(labels != IGNORED)
    return -log_p[rows, places, labels[rows, places]]
