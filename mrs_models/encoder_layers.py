"""The transformer layers of a dual encoder's encoders: freezing the lowest ones."""

from __future__ import annotations

from typing import cast

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from torch import nn

from mrs_core.errors import InputError
from mrs_models.routes import encoders


def freeze(model: SentenceTransformer, embeddings: bool, lowest_layers: int) -> int:
    """Freeze the embeddings and the lowest layers of every encoder; return how many parameters are frozen.

    The paper freezes the embeddings and two layers (section 4.3; official train.sh `embedding#transformer_0_1`).

    Raises:
        InputError: an encoder has fewer layers, or keeps them under names this function does not know.
    """
    frozen: list[nn.Module] = []
    for encoder in encoders(model):
        layers = getattr(getattr(encoder, "encoder", None), "layer", None)
        if isinstance(encoder, StaticEmbedding):
            raise InputError(
                "--encoders static: it has one table and no layers, so freezing leaves nothing to train; "
                "pass --freeze_layers 0 --freeze_embeddings false."
            )
        if layers is None or not hasattr(encoder, "embeddings"):
            raise InputError(
                f"--freeze_layers: {type(encoder).__name__} does not keep its layers as BERT and XLM-R do; "
                "pass --freeze_layers 0 --freeze_embeddings false."
            )
        if lowest_layers > len(layers):
            raise InputError(f"--freeze_layers {lowest_layers}: the encoder has only {len(layers)} layers.")
        frozen += [cast(nn.Module, encoder.embeddings)] if embeddings else []
        frozen += list(layers[:lowest_layers])
    parameters = [parameter for module in frozen for parameter in module.parameters()]
    for parameter in parameters:
        parameter.requires_grad_(False)
    return sum(parameter.numel() for parameter in parameters)
