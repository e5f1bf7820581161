"""The encoders of a trained retriever for answering: BERT's forward pass on NumPy and tokenizers alone.

Loading torch, transformers and sentence-transformers takes seconds and gigabytes of disk, and their general paths
milliseconds per message. Vectors equal those of `encode_query` and `encode_document` up to float rounding (tests check
this). Anything but BERT goes through sentence-transformers.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from mrs_suggest.common.batches import by_length
from mrs_suggest.models.array_files import load_arrays
from mrs_suggest.models.starting_points import ROUTER, checkpoint_prompts

Array = NDArray[np.float32]
Mask = NDArray[np.bool_]
POOLINGS = ("pooler", "mean", "cls", "max")
MODULE = "sentence_bert_config.json"  # settings of a module of sentence-transformers
QUERY, DOCUMENT = "query", "document"  # the routes of messages and replies
# Abramowitz and Stegun 1964, "Handbook of Mathematical Functions", 7.1.26: the error function to 1.5e-7.
_P = 0.3275911
_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
_AT_A_TIME = 1 << 15  # numbers: what is computed in many steps stays in the processor's cache


class MessageEncoder:
    """Texts -> (n, dimension) float32 vectors; build it with `load`."""

    def __init__(
        self,
        config: Mapping[str, Any],
        weights: Mapping[str, Array],
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
                self._weights[f"{own}.{kind}"] = np.concatenate(parts)
        self._normalize, self._prompt = normalize, prompt

    @classmethod
    def load(cls, folder: Path, route: str = QUERY) -> Self | None:
        """Read the encoder of a route of a model folder; None if it is not a BERT that this class can run."""
        modules = _modules(folder, route)
        if modules is None:
            return None
        transformer, pooling, normalize = modules
        config = _json(transformer / "config.json")
        files = [transformer / name for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json")]
        plain = config.get("model_type") == "bert" and config.get("hidden_act") == "gelu"
        if not plain or pooling not in POOLINGS or not all(file.is_file() for file in files):
            return None
        weights = {name: np.asarray(array, np.float32) for name, array in load_arrays(files[0]).items()}
        tokenizer = Tokenizer.from_file(str(files[1]))
        length = _json(transformer / MODULE).get(f"{route}_length")  # of this route, where both share the encoder
        tokenizer.enable_truncation(int(length or _json(files[2])["model_max_length"]))
        tokenizer.no_padding()
        query_prompt, reply_prompt = checkpoint_prompts(str(folder))
        prompt = query_prompt if route == QUERY else reply_prompt
        rows = len(weights["embeddings.word_embeddings.weight"])
        if tokenizer.get_vocab_size() > rows:
            raise ValueError(f"{tokenizer.get_vocab_size():,} tokens, but vectors of {rows:,}")
        return cls(config, weights, tokenizer, pooling, normalize, prompt)

    def encode(self, texts: Sequence[str], batch_size: int = 64) -> Array:
        """Vectors in the order of the texts; texts of similar length share a batch."""
        result = np.empty((len(texts), self._config["hidden_size"]), np.float32)
        for numbers in by_length(texts, batch_size):
            result[numbers] = self._forward([texts[number] for number in numbers])
        return result

    def _forward(self, texts: list[str]) -> Array:
        """Vectors of a batch; between the attentions, the tokens of all texts are the rows of one matrix."""
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch([self._prompt + text for text in texts])]
        lengths = np.array([len(ids) for ids in tokens])
        mask = np.arange(lengths.max()) < lengths[:, None]
        positions = np.concatenate([np.arange(len(ids)) for ids in tokens])
        hidden = self._embed(np.concatenate([np.array(ids, np.int64) for ids in tokens]), positions)
        for layer in range(self._config["num_hidden_layers"]):
            hidden = self._layer(hidden, mask, f"encoder.layer.{layer}.")
        vectors = self._pool(_padded(hidden, mask), mask)
        if self._normalize:  # the least length is that of torch's `normalize`
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
        return vectors

    def _embed(self, ids: NDArray[np.int64], positions: NDArray[np.int64]) -> Array:
        """(t,) tokens and their positions -> (t, d)."""
        weight = self._weights
        words = weight["embeddings.word_embeddings.weight"][ids]
        places = weight["embeddings.position_embeddings.weight"][positions]
        return self._norm(words + places + weight["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")

    def _layer(self, hidden: Array, mask: Mask, name: str) -> Array:
        """(t, d) tokens of n texts, with the (n, L) mask of their places -> (t, d)."""
        mixed = self._attention(self._linear(hidden, f"{name}attention.self"), mask)
        attended = self._linear(mixed, f"{name}attention.output.dense")
        hidden = self._norm(hidden + attended, f"{name}attention.output.LayerNorm")
        inner = gelu(self._linear(hidden, f"{name}intermediate.dense"))
        return self._norm(hidden + self._linear(inner, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _attention(self, asked: Array, mask: Mask) -> Array:
        """(t, 3 d) queries, keys and values -> (t, d) their attention."""
        heads, (count, longest) = self._config["num_attention_heads"], mask.shape
        parts = _padded(asked, mask).reshape(count, longest, 3, heads, -1)
        query, key, value = parts.transpose(2, 0, 3, 1, 4)
        scores = (query * np.float32(query.shape[-1] ** -0.5)) @ key.swapaxes(-1, -2)
        if not mask.all():
            scores += np.where(mask, np.float32(0), np.float32(-np.inf))[:, None, None, :]
        scores -= scores.max(-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(-1, keepdims=True)
        return np.asarray((scores @ value).swapaxes(1, 2).reshape(count, longest, -1)[mask])

    def _pool(self, hidden: Array, mask: Mask) -> Array:
        if self._pooling == "pooler":
            return np.tanh(self._linear(hidden[:, 0], "pooler.dense"))
        if self._pooling == "cls":
            return hidden[:, 0]
        if self._pooling == "max":
            return np.asarray(np.where(mask[:, :, None], hidden, -np.inf).max(1))
        return np.asarray(hidden.sum(1) / mask.sum(1, keepdims=True, dtype=np.float32))

    def _linear(self, hidden: Array, name: str) -> Array:
        product = hidden @ self._weights[f"{name}.weight"].T
        product += self._weights[f"{name}.bias"]
        return product

    def _norm(self, hidden: Array, name: str) -> Array:
        centred = hidden - hidden.mean(-1, keepdims=True)
        variance = np.einsum("td,td->t", centred, centred)[:, None] / np.float32(hidden.shape[-1])
        centred /= np.sqrt(variance + np.float32(self._config["layer_norm_eps"]))
        return np.asarray(centred * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"])


def gelu(values: Array) -> Array:
    """`x * (probability that a standard normal number is below x)`, to 1e-7 of |x|, in place; NumPy lacks erf.

    Hendrycks and Gimpel 2016, "Gaussian Error Linear Units", in its exact form, not that with tanh.

    >>> [round(float(value), 6) for value in gelu(np.array([-1, 0, 1, 30], np.float32))]
    [-0.158655, 0.0, 0.841345, 30.0]
    """
    flat = values.reshape(-1)
    for begin in range(0, len(flat), _AT_A_TIME):
        some = flat[begin : begin + _AT_A_TIME]
        size = np.abs(some)
        fraction = 1 / (1 + np.float32(_P / 2**0.5) * size)
        above = fraction * np.float32(_COEFFICIENTS[0] / 2)  # becomes the probability of a number above |x|
        for coefficient in _COEFFICIENTS[1:]:
            above += np.float32(coefficient / 2)
            above *= fraction
        above *= np.exp(size * size * np.float32(-0.5))
        above *= size
        np.maximum(some, 0, out=some)
        some -= above
    return values


def _padded(rows: Array, mask: Mask) -> Array:
    """(t, d) rows of n texts -> (n, L, d), zero where the (n, L) mask is false."""
    if mask.all():
        return rows.reshape(*mask.shape, -1)
    padded = np.zeros((*mask.shape, rows.shape[-1]), rows.dtype)
    padded[mask] = rows
    return padded


def _modules(folder: Path, name: str) -> tuple[Path, str, bool] | None:
    """The transformer's folder, the pooling of a route and whether it normalises, as they are saved."""
    router = folder / ROUTER
    route = _json(router).get("structure", {}).get(name, []) if router.is_file() else []
    if not route or not route[0].endswith("_Transformer"):
        return None
    transformer = folder / route[0]
    normalize = route[-1].endswith("_Normalize") and _of_vectors(folder / route[-1] / "config.json")
    rest = route[1:-1] if normalize else route[1:]
    if len(rest) == 1 and rest[0].endswith("_Pooling"):
        settings = _json(folder / rest[0] / "config.json")
        if not settings.get("include_prompt", True):  # left to sentence-transformers
            return None
        return transformer, settings.get("pooling_mode", ""), normalize
    output = _json(transformer / MODULE).get("modality_config", {}).get("text", {})
    pooled = not rest and output.get("method_output_name") == "pooler_output"
    return (transformer, "pooler", normalize) if pooled else None


def _of_vectors(config: Path) -> bool:
    """Whether a normalisation is that of the text's vector, not of its tokens'."""
    return not config.is_file() or _json(config).get("module_output_name", "sentence_embedding") == "sentence_embedding"


def _json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))
