"""The transformer layers of a dual encoder: keeping or freezing the lowest, learning rates by layer, dropout."""

from typing import Any, cast

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import nn
from transformers import PreTrainedModel

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import set_dropout as set_all_dropout
from mrs_suggest.models.retrieval.routes import encoders


def keep_layers(encoder: nn.Module, layers: int) -> None:
    """Keep the first layers of an encoder and drop the others, in place: weights and configuration."""
    config: Any = getattr(encoder, "config", None)
    if layers < 1:
        raise InputError(f"--layers: expected 1 or more, found {layers}.")
    if layers == getattr(config, "num_hidden_layers", None):
        return
    own = _layers(encoder, "--layers", "leave it out")
    if layers > len(own):
        raise InputError(f"--layers {layers}: expected at most {len(own)}, the encoder's number of layers.")
    cast(Any, encoder).encoder.layer = own[:layers]
    config.num_hidden_layers = layers


def freeze(model: SentenceTransformer, embeddings: bool, lowest_layers: int) -> None:
    """Freeze the embeddings and the lowest layers of every encoder.

    The paper freezes the embeddings and two layers (section 4.3; official train.sh `embedding#transformer_0_1`).
    """
    for encoder in encoders(model):
        if isinstance(encoder, StaticEmbedding):
            raise InputError(
                "--encoders static: it has one table and no layers, so freezing leaves nothing to train; "
                "pass --freeze_layers 0 --freeze_embeddings false."
            )
        layers = _layers(encoder, "--freeze_layers", "pass --freeze_layers 0 --freeze_embeddings false")
        if lowest_layers > len(layers):
            raise InputError(
                f"--freeze_layers {lowest_layers}: expected at most {len(layers)}, the encoder's number of layers."
            )
        if embeddings:
            cast(nn.Module, encoder.embeddings).requires_grad_(False)
        layers[:lowest_layers].requires_grad_(False)


def rate_factors(model: SentenceTransformer, decay: float) -> dict[int, float]:
    """Layer-wise learning rates (Howard and Ruder 2018, section 3.2: discriminative fine-tuning).

    Args:
        decay: the rate of a layer over that of the one above it, in (0, 1].

    Returns:
        `id` of a parameter -> the share of the learning rate that it gets: 1 in the top layer, `decay` in the one
        below, and so on down to the embeddings. Parameters above the layers have the whole rate and are not listed.
    """
    factors: dict[int, float] = {}
    for encoder in encoders(model):
        layers = _layers(encoder, "--layer_decay", "leave it out")
        for below, part in enumerate([*reversed(layers), cast(nn.Module, encoder.embeddings)]):
            factors |= {id(parameter): decay**below for parameter in part.parameters()}
    return factors


def set_dropout(model: SentenceTransformer, probability: float) -> None:
    """Give all dropout of the encoders one probability, in place; their configurations keep the checkpoint's."""
    if not 0 <= probability < 1:
        raise InputError(f"--dropout: expected 0 or more and less than 1, found {probability:g}.")
    for encoder in encoders(model):
        _layers(encoder, "--dropout", "leave it out")
        set_all_dropout(encoder, probability)


def attend_in_bfloat16(model: SentenceTransformer) -> None:
    """Avoid fused attention, in place: in bfloat16 on a CPU, its backward pass is slow (multilingual-e5-small, 256
    texts of 18 tokens, without dropout: 5.4 s a pass, without it 2.3 s)."""
    for encoder in encoders(model):
        if isinstance(encoder, PreTrainedModel):
            encoder.set_attn_implementation("eager")


def _layers(encoder: nn.Module, option: str, advice: str) -> nn.ModuleList:
    if isinstance(encoder, StaticEmbedding):
        raise InputError(f"{option}: static vectors are one table without layers; {advice}.")
    layers = getattr(getattr(encoder, "encoder", None), "layer", None)
    if layers is None or not hasattr(encoder, "embeddings"):
        raise InputError(f"{option}: {type(encoder).__name__} does not keep its layers as BERT and XLM-R do; {advice}.")
    return cast(nn.ModuleList, layers)
