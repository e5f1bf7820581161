"""The paper's dual encoder as a sentence-transformers model (Zhang et al. 2021, section 4.1).

Two separate encoders start from the same checkpoint; a message goes through the query route, a reply through the
document route, and their score is the dot product, unscaled. `encode()` alone would take the document route: use
`encode_query` and `encode_document`.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer, SentenceTransformerModelCardData
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Pooling, Router, Transformer
from torch import nn
from transformers.utils.logging import disable_progress_bar

from mrs_core.errors import InputError
from mrs_models.message_encoder import POOLINGS

MESSAGE_TOKENS, REPLY_TOKENS = 70, 30  # official train.sh: --max_msg_len 70 --max_rsp_len 30
ROUTES = ("query", "document")


def build_dual_encoder(
    model_name_or_path: str,
    pooling: str = "pooler",
    message_tokens: int = MESSAGE_TOKENS,
    reply_tokens: int = REPLY_TOKENS,
    revision: str | None = None,
) -> SentenceTransformer:
    """Two encoders from one transformers checkpoint.

    Args:
        model_name_or_path: a hub id or a local folder with a transformers encoder.
        pooling: `pooler` (BERT's pooler output, as in the official code), `mean`, `cls` or `max`.
        message_tokens, reply_tokens: longer texts are cut.
        revision: of the hub repository.

    Raises:
        InputError: the checkpoint cannot be loaded, or has no pooler where one is asked for.
    """
    routes = [_encoder(model_name_or_path, pooling, tokens, revision) for tokens in (message_tokens, reply_tokens)]
    router = Router.for_query_document(query_modules=routes[0], document_modules=routes[1])
    card = SentenceTransformerModelCardData(generate_widget_examples=False)  # they would show training texts
    return SentenceTransformer(modules=[router], similarity_fn_name="dot", device="cpu", model_card_data=card)


def load_dual_encoder(folder: str | Path) -> SentenceTransformer:
    """Load a trained dual encoder from a folder or the hub, ready for `encode_query` and `encode_document`."""
    disable_progress_bar()  # of reading the weights
    return SentenceTransformer(str(folder), trust_remote_code=False, model_kwargs={"use_safetensors": True})


def freeze(model: SentenceTransformer, embeddings: bool, lowest_layers: int) -> int:
    """Freeze the embeddings and the lowest layers of both encoders; return how many parameters are frozen.

    The paper freezes the embeddings and two layers (section 4.3; official train.sh `embedding#transformer_0_1`).

    Raises:
        InputError: an encoder has fewer layers, or keeps them under names this function does not know.
    """
    frozen: list[nn.Module] = []
    for encoder in encoders(model):
        layers = getattr(getattr(encoder, "encoder", None), "layer", None)
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


def encoders(model: SentenceTransformer) -> list[nn.Module]:
    """The transformers encoders, message first."""
    router = cast(Router, model[0])
    return [cast(Transformer, cast(nn.ModuleList, router.sub_modules[route])[0]).auto_model for route in ROUTES]


def _encoder(name: str, pooling: str, tokens: int, revision: str | None) -> list[Module]:
    if pooling not in POOLINGS:
        raise InputError(f"--pooling: expected one of {', '.join(POOLINGS)}, found {pooling!r}.")
    by_pooler = {
        "modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}},
        "module_output_name": "sentence_embedding",
    }
    arguments = {"revision": revision} if revision else {}
    try:
        transformer = Transformer(
            name,
            max_seq_length=tokens,
            model_kwargs={**arguments, "use_safetensors": True},
            processor_kwargs=dict(arguments),
            config_kwargs=dict(arguments),
            **(by_pooler if pooling == "pooler" else {}),
        )
    except (OSError, ValueError, SafetensorError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"--model_name_or_path {name}: cannot load the encoder ({first}).") from None
    positions = getattr(transformer.config, "max_position_embeddings", None)
    if positions is not None and not 0 < tokens <= positions:
        raise InputError(f"--message_tokens, --reply_tokens: {name} reads 1 to {positions} tokens, not {tokens}.")
    pooler = getattr(transformer.auto_model, "pooler", None)
    if pooling == "pooler":
        if pooler is None:
            raise InputError(f"--pooling pooler: {name} has no pooler; choose mean, cls or max.")
        return [transformer]
    if pooler is not None:  # it is in the checkpoint but not in the graph: nothing may wait for its gradient
        pooler.requires_grad_(False)
    return [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)]
