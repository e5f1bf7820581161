"""ProphetNet (Yan et al. 2020) as transformers has it: its limits, and a correction of its predicting streams.

The library's `get_predict_relative_pos_embeddings` (5.23) reads the terms of the relative positions in the order (step,
stream, head) and adds them in the order (stream, head, step). So a token's logits depend on the length of its batch,
the second stream sees tokens that it is to predict, and a search with a cache disagrees with one without. `corrected`
puts each term where it belongs, as in the authors' code.
"""

from __future__ import annotations

from types import MethodType
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    Model = TypeVar("Model", bound=PreTrainedModel)

TYPE = "prophetnet"


def corrected(model: Model) -> Model:
    """The model with the terms of relative positions in their places, if it is a ProphetNet; any other as it is."""
    if _is_prophetnet(model.config):
        base: Any = model.base_model
        for layer in base.decoder.layers:
            attention = layer.self_attn
            attention.get_predict_relative_pos_embeddings = MethodType(_predict_relative_positions, attention)
    return model


def most_tokens(config: Any) -> int | None:
    """How many tokens a model reads or writes, a start token included; None for relative positions.

    ProphetNet's table begins behind the padding's row, and a predicting stream has the position after the token's.
    """
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None or not _is_prophetnet(config):
        return positions
    return int(positions) - 2 - int(config.pad_token_id)


def may_cache(config: Any) -> bool:
    """Whether a search can keep the states of earlier tokens.

    The library's ProphetNet counts positions from the padding's id, and its cache has a place for each of the encoder's
    layers: with another padding id than 0, or a deeper decoder, it fails.
    """
    return not _is_prophetnet(config) or (
        config.pad_token_id == 0 and config.num_decoder_layers <= config.num_encoder_layers
    )


def _is_prophetnet(config: Any) -> bool:
    return getattr(config, "model_type", None) == TYPE


def _predict_relative_positions(
    self: Any, hidden_states: Tensor, attn_weights: Tensor, position_ids: Tensor, buckets: Tensor | None
) -> Tensor:
    """What relative positions add to the attention of the predicting streams.

    Args:
        hidden_states: (batch, steps, streams, width).
        attn_weights: (batch, streams, heads, steps, keys).
        position_ids: (1, 1) of the step of a search with a cache, where `buckets` is None.
        buckets: (batch, steps, keys) of the distances.

    Returns:
        (batch, streams, heads, steps, keys).
    """
    from transformers.models.prophetnet.modeling_prophetnet import compute_relative_buckets

    batch, steps = hidden_states.shape[:2]
    keys = attn_weights.shape[-1]
    if buckets is None:
        distances = torch.arange(keys, device=position_ids.device) - position_ids[0, 0]
        buckets = compute_relative_buckets(self.num_buckets, self.relative_max_distance, distances, False)
        buckets = buckets.expand(batch, steps, keys)
    terms = self.relative_pos_embeddings(hidden_states.transpose(1, 2))
    terms = terms.view(batch, self.ngram, steps, self.num_buckets, self.num_attn_heads).permute(0, 1, 4, 2, 3)
    places = buckets.long()[:, None, None].expand(batch, self.ngram, self.num_attn_heads, steps, keys)
    return terms.gather(-1, places)
