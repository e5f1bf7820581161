"""The message encoder of a trained retriever for answering: BERT's forward pass on torch and tokenizers alone.

Loading sentence-transformers and transformers takes seconds, and their general paths milliseconds per message; to
answer a message only one of the two encoders is needed, and it is a plain BERT. Vectors equal those of `encode_query`
up to float rounding (a test checks this). Anything but BERT goes through sentence-transformers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from mrs_models.starting_points import ROUTER, checkpoint_prompts

POOLINGS = ("pooler", "mean", "cls", "max")


class MessageEncoder:
    """Texts -> (n, dimension) float32 vectors; build it with `load`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, Tensor],
        tokenizer: Tokenizer,
        pooling: str,
        normalize: bool = False,
        prompt: str = "",
    ) -> None:
        self._config, self._tokenizer, self._pooling = config, tokenizer, pooling
        self._weights = dict(weights)
        for layer in range(config["num_hidden_layers"]):  # one product in place of three
            own = f"encoder.layer.{layer}.attention.self"
            for kind in ("weight", "bias"):
                parts = [self._weights.pop(f"{own}.{part}.{kind}") for part in ("query", "key", "value")]
                self._weights[f"{own}.{kind}"] = torch.cat(parts)
        self._normalize, self._prompt = normalize, prompt

    @classmethod
    def load(cls, folder: Path) -> MessageEncoder | None:
        """Read the message encoder of a model folder; None where it is not a BERT that this class can run."""
        modules = _message_modules(folder)
        if modules is None:
            return None
        transformer, pooling, normalize = modules
        config = _json(transformer / "config.json")
        files = [transformer / name for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json")]
        plain = config.get("model_type") == "bert" and config.get("hidden_act") == "gelu"
        if not plain or pooling not in POOLINGS or not all(file.is_file() for file in files):
            return None
        weights = {name: tensor.float() for name, tensor in load_file(files[0]).items()}
        tokenizer = Tokenizer.from_file(str(files[1]))
        tokenizer.enable_truncation(int(_json(files[2])["model_max_length"]))
        tokenizer.no_padding()
        prompt, _ = checkpoint_prompts(str(folder))
        return cls(config, weights, tokenizer, pooling, normalize, prompt)

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], batch_size: int = 64) -> Tensor:
        """Message vectors in the order of the texts; texts of similar length share a batch."""
        order = sorted(range(len(texts)), key=lambda number: -len(texts[number]))
        vectors = [
            self._forward([texts[number] for number in order[begin : begin + batch_size]])
            for begin in range(0, len(order), batch_size)
        ]
        result = torch.empty(len(texts), self._config["hidden_size"])
        if vectors:
            result[order] = torch.cat(vectors)
        return result

    def _forward(self, texts: list[str]) -> Tensor:
        """Vectors of a batch; between the attentions, the tokens of all texts are the rows of one matrix."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([self._prompt + text for text in texts])]
        lengths = torch.tensor([len(ids) for ids in tokens])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        positions = torch.cat([torch.arange(len(ids)) for ids in tokens])
        hidden = self._embed(torch.tensor([number for ids in tokens for number in ids]), positions)
        for layer in range(self._config["num_hidden_layers"]):
            hidden = self._layer(hidden, mask, f"encoder.layer.{layer}.")
        vectors = self._pool(_padded(hidden, mask), mask)
        return functional.normalize(vectors, dim=-1) if self._normalize else vectors

    def _embed(self, ids: Tensor, positions: Tensor) -> Tensor:
        """(t,) tokens and their positions -> (t, d)."""
        weight = self._weights
        words = functional.embedding(ids, weight["embeddings.word_embeddings.weight"])
        places = functional.embedding(positions, weight["embeddings.position_embeddings.weight"])
        types = weight["embeddings.token_type_embeddings.weight"][0]
        return self._norm(words + places + types, "embeddings.LayerNorm")

    def _layer(self, hidden: Tensor, mask: Tensor, name: str) -> Tensor:
        """(t, d) tokens of n texts, with the (n, L) mask of their places -> (t, d)."""
        heads = self._config["num_attention_heads"]
        asked = _padded(self._linear(hidden, f"{name}attention.self"), mask)
        query, key, value = asked.unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        seen = None if mask.all() else mask[:, None, None, :]
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen).transpose(1, 2).flatten(-2)
        attended = self._linear(mixed[mask], f"{name}attention.output.dense")
        hidden = self._norm(hidden + attended, f"{name}attention.output.LayerNorm")
        inner = functional.gelu(self._linear(hidden, f"{name}intermediate.dense"))
        return self._norm(hidden + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _pool(self, hidden: Tensor, mask: Tensor) -> Tensor:
        if self._pooling == "pooler":
            return torch.tanh(self._linear(hidden[:, 0], "pooler.dense"))
        if self._pooling == "cls":
            return hidden[:, 0]
        if self._pooling == "max":
            return hidden.masked_fill(~mask[:, :, None], -torch.inf).max(1).values
        return (hidden * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)

    def _linear(self, hidden: Tensor, name: str) -> Tensor:
        return functional.linear(hidden, self._weights[f"{name}.weight"], self._weights[f"{name}.bias"])

    def _norm(self, hidden: Tensor, name: str) -> Tensor:
        weight, bias = self._weights[f"{name}.weight"], self._weights[f"{name}.bias"]
        return functional.layer_norm(hidden, hidden.shape[-1:], weight, bias, self._config["layer_norm_eps"])


def _padded(rows: Tensor, mask: Tensor) -> Tensor:
    """(t, d) rows of n texts -> (n, L, d), zero where the (n, L) mask is false."""
    if mask.all():
        return rows.view(*mask.shape, -1)
    padded = rows.new_zeros(*mask.shape, rows.shape[-1])
    padded[mask] = rows
    return padded


def _message_modules(folder: Path) -> tuple[Path, str, bool] | None:
    """The transformer's folder, the pooling of the query route and whether it normalises, as they are saved."""
    router = folder / ROUTER
    route = _json(router).get("structure", {}).get("query", []) if router.is_file() else []
    if not route or not route[0].endswith("_Transformer"):
        return None
    transformer = folder / route[0]
    normalize = route[-1].endswith("_Normalize") and _of_vectors(folder / route[-1] / "config.json")
    rest = route[1:-1] if normalize else route[1:]
    if len(rest) == 1 and rest[0].endswith("_Pooling"):
        settings = _json(folder / rest[0] / "config.json")
        # A pooling that leaves the prompt out is the library's to compute.
        return (
            (transformer, settings.get("pooling_mode", ""), normalize) if settings.get("include_prompt", True) else None
        )
    output = _json(transformer / "sentence_bert_config.json").get("modality_config", {}).get("text", {})
    pooled = not rest and output.get("method_output_name") == "pooler_output"
    return (transformer, "pooler", normalize) if pooled else None


def _of_vectors(config: Path) -> bool:
    """Whether a normalisation is that of the text's vector, not of its tokens'."""
    return not config.is_file() or _json(config).get("module_output_name", "sentence_embedding") == "sentence_embedding"


def _json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
