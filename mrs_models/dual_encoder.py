"""The paper's dual encoder as a sentence-transformers model (Zhang et al. 2021, section 4.1).

A message goes through the query route, a reply through the document route, and their score is the dot product,
unscaled. The paper has two separate encoders that start from the same checkpoint; one encoder for both routes and two
tables of token vectors are the alternatives. `encode()` alone would take the document route: use `encode_query` and
`encode_document`.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import torch
from safetensors import SafetensorError
from sentence_transformers import SentenceTransformer, SentenceTransformerModelCardData
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Pooling, Router, StaticEmbedding, Transformer
from sentence_transformers.util import load_file_path
from tokenizers import Tokenizer
from torch import nn
from transformers.utils.logging import disable_progress_bar

from mrs_core.errors import InputError
from mrs_models.message_encoder import POOLINGS
from mrs_models.starting_points import RETRIEVAL, require_start

MESSAGE_TOKENS, REPLY_TOKENS = 70, 30  # official train.sh: --max_msg_len 70 --max_rsp_len 30
ROUTES = ("query", "document")
ENCODERS = ("two", "one", "static")
DIMENSION = 256  # of static vectors
# The output of a Transformer module, as its configuration file names it.
POOLER_OUTPUT: Any = {"text": {"method": "forward", "method_output_name": "pooler_output"}}
TOKEN_OUTPUT: Any = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}


def build_dual_encoder(
    model_name_or_path: str,
    pooling: str | None = "pooler",
    message_tokens: int = MESSAGE_TOKENS,
    reply_tokens: int = REPLY_TOKENS,
    revision: str | None = None,
    encoders: str = "two",
    dimension: int = DIMENSION,
    seed: int = 0,
) -> SentenceTransformer:
    """Both routes from one checkpoint.

    Args:
        model_name_or_path: a hub id or a local folder with a transformers encoder or a sentence-transformers model.
        pooling: `pooler` (BERT's pooler output, as in the official code), `mean`, `cls` or `max`; None keeps all
            modules of a sentence-transformers model (its pooling, projection, normalisation) and is `pooler` for a
            transformers encoder. A model's prompts are never kept: the trainer would not use them.
        message_tokens, reply_tokens: longer texts are cut.
        revision: of the hub repository.
        encoders: `two` (the paper's), `one` that both routes share, or `static`: the mean of token vectors, one table
            per route, untrained; only the checkpoint's tokenizer is used, and `pooling` is not.
        dimension: of the static vectors.
        seed: of the static vectors, and of weights that the checkpoint lacks.

    Raises:
        InputError: an argument is not one of those above, the checkpoint cannot be loaded, is a trained retriever or
            generator or adapters, or has no pooler where one is asked for.
    """
    if encoders not in ENCODERS:
        raise InputError(f"--encoders: expected one of {', '.join(ENCODERS)}, found {encoders!r}.")
    if pooling is not None and pooling not in POOLINGS:
        raise InputError(f"--pooling: expected one of {', '.join(POOLINGS)}, found {pooling!r}.")
    require_start(model_name_or_path, RETRIEVAL, revision)
    lengths = (message_tokens, reply_tokens)
    if min(lengths) < 1:
        raise InputError(f"--message_tokens, --reply_tokens: expected 1 or more, found {min(lengths)}.")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if encoders == "static":
            routes = _static_routes(model_name_or_path, lengths, revision, dimension)
        else:
            routes = _routes(_encoder(model_name_or_path, pooling, max(lengths), revision), lengths, encoders == "one")
    router = Router.for_query_document(query_modules=routes[0], document_modules=routes[1])
    card = SentenceTransformerModelCardData(generate_widget_examples=False)  # they would show training texts
    return SentenceTransformer(modules=[router], similarity_fn_name="dot", device="cpu", model_card_data=card)


def load_dual_encoder(folder: str | Path) -> SentenceTransformer:
    """Load a trained dual encoder from a folder or the hub, ready for `encode_query` and `encode_document`."""
    disable_progress_bar()  # of reading the weights
    return SentenceTransformer(str(folder), trust_remote_code=False, model_kwargs={"use_safetensors": True})


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


def encoders(model: SentenceTransformer) -> list[nn.Module]:
    """The distinct encoders, message first: transformers models or static tables; one where the routes share it."""
    inputs = (modules[0] for modules in _routes_of(model))
    found = (module.auto_model if isinstance(module, Transformer) else module for module in inputs)
    return list(dict.fromkeys(cast("list[nn.Module]", list(found))))


def build_settings(model: SentenceTransformer) -> dict[str, Any]:
    """The arguments of `build_dual_encoder` that give a model of this shape from the same checkpoint.

    `pooling` is None where the modules can only be those of a sentence-transformers checkpoint, and for static tables.
    """
    routes = _routes_of(model)
    inputs = [modules[0] for modules in routes]
    if isinstance(inputs[0], StaticEmbedding):
        lengths = [cast(Any, module).tokenizer.truncation["max_length"] for module in inputs]
        return {
            "message_tokens": lengths[0],
            "reply_tokens": lengths[1],
            "pooling": None,
            "encoders": "static",
            "dimension": inputs[0].get_embedding_dimension(),
        }
    query, document = (cast(Transformer, module) for module in inputs)
    return {
        "message_tokens": query.query_length or query.max_seq_length,
        "reply_tokens": document.document_length or document.max_seq_length,
        "pooling": _pooling_of(routes[0]),
        "encoders": "one" if query is document else "two",
    }


def _routes_of(model: SentenceTransformer) -> list[list[nn.Module]]:
    router = cast(Router, model[0])
    return [list(cast(nn.Sequential, router.sub_modules[route])) for route in ROUTES]


def _pooling_of(modules: list[nn.Module]) -> str | None:
    if len(modules) == 1:
        return "pooler" if cast(Transformer, modules[0]).modality_config == POOLER_OUTPUT else None
    mode = modules[1].pooling_mode if len(modules) == 2 and isinstance(modules[1], Pooling) else None
    return mode if isinstance(mode, str) and mode in POOLINGS else None


def _routes(modules: list[Module], lengths: tuple[int, int], shared: bool) -> list[list[Module]]:
    """The modules for both routes, each with its own limit on tokens."""
    routes = [modules, modules] if shared else [modules, copy.deepcopy(modules)]
    for route, tokens in zip(routes, lengths, strict=True):
        transformer = cast(Transformer, route[0])
        transformer.query_length = transformer.document_length = None
        transformer.processing_kwargs.get("text", {}).pop("max_length", None)  # it would go before our limits
        transformer.max_seq_length = tokens
    if shared:
        # One tokenizer for both: the module itself cuts by route. The tokenizer's own limit is that of messages, which
        # applies if the tokenizer is used alone.
        transformer = cast(Transformer, modules[0])
        transformer.query_length, transformer.document_length = lengths
        transformer.max_seq_length = lengths[0]
    return routes


def _encoder(name: str, pooling: str | None, tokens: int, revision: str | None) -> list[Module]:
    """The modules of one route: a Transformer, and what pools its output into one vector."""
    own = _load(name, revision)
    transformer = cast(Transformer, own[0])
    positions = getattr(transformer.config, "max_position_embeddings", None)
    if positions is not None and not 0 < tokens <= positions:
        raise InputError(f"--message_tokens, --reply_tokens: {name} reads 1 to {positions} tokens, not {tokens}.")
    pooler = getattr(transformer.auto_model, "pooler", None)
    if pooling is None and len(own) == 1 and transformer.module_output_name != "sentence_embedding":
        pooling = "pooler"
    if pooling == "pooler":
        if pooler is None:
            raise InputError(f"--pooling pooler: {name} has no pooler; choose mean, cls or max.")
        transformer.modality_config, transformer.module_output_name = copy.deepcopy(POOLER_OUTPUT), "sentence_embedding"
        return [transformer]
    if pooling is not None:
        transformer.modality_config, transformer.module_output_name = copy.deepcopy(TOKEN_OUTPUT), "token_embeddings"
    if pooler is not None and transformer.modality_config != POOLER_OUTPUT:
        pooler.requires_grad_(False)  # in the checkpoint but not in the graph: nothing may wait for its gradient
    if pooling is None:
        return own
    return [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)]


def _load(name: str, revision: str | None) -> list[Module]:
    """All modules of a sentence-transformers checkpoint, or a Transformer alone."""
    arguments = {"revision": revision} if revision else {}
    weights = {**arguments, "use_safetensors": True, "dtype": torch.float32}  # a 16-bit one would train in 16 bits
    try:
        if load_file_path(name, "modules.json", revision=revision) is None:
            return [
                Transformer(name, model_kwargs=weights, processor_kwargs={**arguments}, config_kwargs={**arguments})
            ]
        model = SentenceTransformer(
            name, device="cpu", revision=revision, trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": torch.float32},
        )  # fmt: skip
    except (OSError, ValueError, TypeError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise InputError(f"--model_name_or_path {name}: cannot load the encoder ({_reason(error)}).") from None
    modules = cast("list[Module]", list(model.children()))
    if not isinstance(modules[0], Transformer):
        raise InputError(
            f"--model_name_or_path {name}: expected a sentence-transformers model that begins with a Transformer, "
            f"found {type(modules[0]).__name__}; pass the checkpoint of one encoder."
        )
    return modules


def _static_routes(name: str, lengths: tuple[int, int], revision: str | None, dimension: int) -> list[list[Module]]:
    from transformers import AutoTokenizer

    if dimension < 1:
        raise InputError(f"--dimension: expected 1 or more, found {dimension}.")
    try:
        loaded = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(f"--model_name_or_path {name}: cannot load the tokenizer ({_reason(error)}).") from None
    backend = getattr(loaded, "backend_tokenizer", None)
    if not isinstance(backend, Tokenizer):
        raise InputError(f"--encoders static: {name} has no fast tokenizer; choose another checkpoint.")
    # Both tables start equal, as two encoders do from their checkpoint: shared words already score.
    weights = torch.randn(backend.get_vocab_size(), dimension) * dimension**-0.5
    routes: list[list[Module]] = []
    for tokens in lengths:
        tokenizer = Tokenizer.from_str(backend.to_str())
        tokenizer.enable_truncation(tokens)
        routes.append([StaticEmbedding(tokenizer, embedding_weights=weights.clone())])
    return routes


def _reason(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
