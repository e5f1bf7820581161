"""The parts of a dual encoder: its two routes, their encoders, poolings, lengths and prompts."""

from collections.abc import Sequence
from typing import Any, cast

from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Normalize
from sentence_transformers.sentence_transformer.modules import Pooling, Router, StaticEmbedding, Transformer
from tokenizers import Tokenizer
from torch import nn

from mrs_suggest.models.retrieval.context import ContextReader
from mrs_suggest.models.retrieval.message_encoder import DOCUMENT, POOLINGS, QUERY

ROUTES = (QUERY, DOCUMENT)
# The output of a Transformer module, as its configuration file names it.
POOLER_OUTPUT: Any = {"text": {"method": "forward", "method_output_name": "pooler_output"}}


def routes_of(model: SentenceTransformer) -> list[list[nn.Module]]:
    """The modules of both routes, that of messages first."""
    router = cast(Router, model[0])
    return [list(cast(nn.Sequential, router.sub_modules[route])) for route in ROUTES]


def encoders(model: SentenceTransformer) -> list[nn.Module]:
    """The distinct encoders, message first: transformers models or static tables; one where the routes share it."""
    return distinct_encoders(routes_of(model))


def transformers_of(model: SentenceTransformer) -> list[Transformer]:
    """The distinct modules that read text with a transformers encoder, message first."""
    return list(dict.fromkeys(modules[0] for modules in routes_of(model) if isinstance(modules[0], Transformer)))


def distinct_encoders(routes: Sequence[Sequence[nn.Module]]) -> list[nn.Module]:
    """Those of the routes' first modules."""
    inputs = (modules[0] for modules in routes)
    found = (module.auto_model if isinstance(module, Transformer) else module for module in inputs)
    return list(dict.fromkeys(cast("list[nn.Module]", list(found))))


def normalizes(modules: Sequence[nn.Module]) -> bool:
    """Whether a route's vectors have length 1."""
    last = modules[-1]
    return isinstance(last, Normalize) and last.module_output_name == "sentence_embedding"


def prompts_of(model: SentenceTransformer) -> tuple[str, str]:
    """The texts that are put before messages and before replies by `encode_query` and `encode_document`."""
    return tuple(model.prompts.get(route) or "" for route in ROUTES)  # type: ignore[return-value]


def context_reader(model: SentenceTransformer, turns: int) -> ContextReader:
    """Reads messages with up to `turns` turns before them, as texts for the message encoder."""
    own = cast(Any, routes_of(model)[0][0]).tokenizer
    tokenizer = Tokenizer.from_str(getattr(own, "backend_tokenizer", own).to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return ContextReader(tokenizer, prompts_of(model)[0], turns, build_settings(model)["message_tokens"])


def build_settings(model: SentenceTransformer) -> dict[str, Any]:
    """The arguments of `build_dual_encoder` that give a model of this shape from the same checkpoint.

    `pooling` is None where the modules can only be those of a sentence-transformers checkpoint, and for static tables.
    """
    routes = routes_of(model)
    inputs = [modules[0] for modules in routes]
    query_prompt, reply_prompt = prompts_of(model)
    shared = {"query_prompt": query_prompt, "reply_prompt": reply_prompt, "normalize": normalizes(routes[0])}
    if isinstance(inputs[0], StaticEmbedding):
        lengths = [cast(Any, module).tokenizer.truncation["max_length"] for module in inputs]
        own = {"pooling": None, "encoders": "static", "dimension": inputs[0].get_embedding_dimension()}
        return {"message_tokens": lengths[0], "reply_tokens": lengths[1], **own, **shared}
    query, document = (cast(Transformer, module) for module in inputs)
    return {
        "message_tokens": query.query_length or query.max_seq_length,
        "reply_tokens": document.document_length or document.max_seq_length,
        "pooling": _pooling_of(routes[0]),
        "encoders": "one" if query is document else "two",
        "layers": getattr(query.config, "num_hidden_layers", None),
        **shared,
    }


def _pooling_of(modules: list[nn.Module]) -> str | None:
    kept = modules[:-1] if normalizes(modules) else modules
    if len(kept) == 1:
        return "pooler" if cast(Transformer, kept[0]).modality_config == POOLER_OUTPUT else None
    pooling = kept[1]
    if len(kept) != 2 or not isinstance(pooling, Pooling) or not pooling.include_prompt:
        return None
    mode = pooling.pooling_mode
    return mode if isinstance(mode, str) and mode in POOLINGS else None
