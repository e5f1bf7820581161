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
from sentence_transformers.sentence_transformer.modules import (
    Normalize,
    Pooling,
    Router,
    StaticEmbedding,
    Transformer,
)
from sentence_transformers.util import load_file_path
from tokenizers import Tokenizer
from transformers.utils.logging import disable_progress_bar

from mrs_core.errors import InputError
from mrs_models.message_encoder import POOLINGS
from mrs_models.routes import POOLER_OUTPUT, ROUTES, normalizes
from mrs_models.starting_points import RETRIEVAL, checkpoint_prompts, require_start

MESSAGE_TOKENS, REPLY_TOKENS = 70, 30  # official train.sh: --max_msg_len 70 --max_rsp_len 30
ENCODERS = ("two", "one", "static")
DIMENSION = 256  # of static vectors
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
    query_prompt: str | None = None,
    reply_prompt: str | None = None,
    normalize: bool | None = None,
) -> SentenceTransformer:
    """Both routes from one checkpoint.

    Args:
        model_name_or_path: a hub id or a local folder with a transformers encoder or a sentence-transformers model.
        pooling: `pooler` (BERT's pooler output, as in the official code), `mean`, `cls` or `max`; None keeps all
            modules of a sentence-transformers model (its pooling, projection, normalisation) and is `pooler` for a
            transformers encoder.
        message_tokens, reply_tokens: longer texts are cut.
        revision: of the hub repository.
        encoders: `two` (the paper's), `one` that both routes share, or `static`: the mean of token vectors, one table
            per route, untrained; only the checkpoint's tokenizer is used, and `pooling` is not.
        dimension: of the static vectors.
        seed: of the static vectors, and of weights that the checkpoint lacks.
        query_prompt, reply_prompt: text put before messages and before replies, such as `query: `; None: the prompts
            of a sentence-transformers model for queries and documents, if it has any and its encoder is used.
        normalize: whether vectors get length 1, so that the dot product is the cosine; None: as `pooling` says.

    Raises:
        InputError: an argument is not one of those above, the checkpoint cannot be loaded, is a trained retriever or
            generator or adapters, or has no pooler where one is asked for; a prompt leaves no room for a text.
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
    own = ("", "") if encoders == "static" else checkpoint_prompts(model_name_or_path, revision)
    given = (query_prompt, reply_prompt)
    prompts = tuple(mine if asked is None else asked for asked, mine in zip(given, own, strict=True))
    for option, prompt, modules, tokens in zip(("query_prompt", "reply_prompt"), prompts, routes, lengths, strict=True):
        _require_room(option, prompt, modules[0], tokens)
    return _assembled([_normalized(modules, normalize) for modules in routes], dict(zip(ROUTES, prompts, strict=True)))


def _assembled(routes: list[list[Module]], prompts: dict[str, str]) -> SentenceTransformer:
    router = Router.for_query_document(query_modules=routes[0], document_modules=routes[1])
    card = SentenceTransformerModelCardData(generate_widget_examples=False)  # they would show training texts
    return SentenceTransformer(
        modules=[router], similarity_fn_name="dot", device="cpu", model_card_data=card, prompts=prompts
    )


def _normalized(modules: list[Module], normalize: bool | None) -> list[Module]:
    """The modules with a normalisation at their end, or without it."""
    if normalize is None or normalize == normalizes(modules):
        return modules
    return [*modules, Normalize()] if normalize else modules[:-1]


def _require_room(option: str, prompt: str, first: Module, tokens: int) -> None:
    """Refuse a prompt after which every text would be cut away."""
    if not prompt:
        return
    if isinstance(first, StaticEmbedding):
        taken = len(first.tokenizer.encode(prompt, add_special_tokens=False).ids)
    else:
        taken = len(cast(Any, first).tokenizer(prompt, truncation=True, max_length=tokens)["input_ids"])
    if taken >= tokens:
        raise InputError(
            f"--{option} {prompt!r}: fills all {tokens} tokens of a text; shorten it, or raise "
            f"--{'message' if option == 'query_prompt' else 'reply'}_tokens."
        )


def load_dual_encoder(folder: str | Path) -> SentenceTransformer:
    """Load a trained dual encoder from a folder or the hub, ready for `encode_query` and `encode_document`."""
    disable_progress_bar()  # of reading the weights
    return SentenceTransformer(str(folder), trust_remote_code=False, model_kwargs={"use_safetensors": True})


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
