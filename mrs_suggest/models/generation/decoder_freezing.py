"""Freezing parts of a sequence-to-sequence model while the rest trains: embeddings, lower decoder layers.

Fine-tuned on one language, a generator forgets the others; ZmBART freezes word embeddings and layers of the decoder
against it (Maurya et al. 2021).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import nn

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LAYERS = ("layers", "block", "blocks")  # of a decoder: BART and its like, T5, the convolutional model
TABLES = ("embed_tokens", "tokens", "embed_positions", "position_embeddings", "positions")  # of vectors, by name


def freeze_embeddings(model: PreTrainedModel) -> None:
    """Freeze the tokens' vectors, on both sides and in the output, and tables of positions.

    The output's matrix is mostly the same one (tied); where it is the model's own, as in mT5, it stays as well.
    """
    parts: list[Any] = [model.get_input_embeddings(), model.get_output_embeddings()]
    parts += [part for name, part in model.named_modules() if name.rpartition(".")[2] in TABLES]
    for part in filter(None, parts):
        part.requires_grad_(False)


def freeze_decoder_layers(model: PreTrainedModel, lowest: int) -> None:
    """Freeze the lowest layers of the decoder."""
    if not lowest:
        return
    decoder: Any = model.get_decoder()
    layers = next((found for name in LAYERS if isinstance(found := getattr(decoder, name, None), nn.ModuleList)), None)
    if layers is None:
        raise InputError(
            f"--freeze_decoder_layers {lowest}: {type(decoder).__name__} does not keep its layers as BART and T5 do; "
            "leave it out."
        )
    if lowest > len(layers):
        raise InputError(
            f"--freeze_decoder_layers {lowest}: expected at most {len(layers)}, the decoder's number of layers."
        )
    layers[:lowest].requires_grad_(False)
