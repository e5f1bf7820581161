"""The paper's dual encoder as a sentence-transformers model (Zhang et al. 2021, section 4.1).

A message goes through the query route, a reply through the document route, and their score is the dot product,
unscaled. The paper has two separate encoders that start from the same checkpoint; one encoder for both routes and two
tables of token vectors are the alternatives. `encode()` alone would take the document route: use `encode_query` and
`encode_document`.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

from sentence_transformers import SentenceTransformer, SentenceTransformerModelCardData
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Normalize, Router, StaticEmbedding
from transformers.utils.logging import disable_progress_bar

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import drawn
from mrs_suggest.models.retrieval.encoder_layers import keep_layers
from mrs_suggest.models.retrieval.message_encoder import POOLINGS
from mrs_suggest.models.retrieval.pruned_vocabulary import cut_vocabulary, kept_pieces
from mrs_suggest.models.retrieval.retriever_start import Start
from mrs_suggest.models.retrieval.routes import (
    ROUTES,
    build_settings,
    distinct_encoders,
    normalizes,
    prompts_of,
    transformers_of,
)
from mrs_suggest.models.starting_points import RETRIEVAL, require_start

ENCODERS = ("two", "one", "static")


def build_dual_encoder(
    model_name_or_path: str,
    pooling: str | None = None,
    message_tokens: int | None = None,
    reply_tokens: int | None = None,
    revision: str | None = None,
    encoders: str | None = None,
    dimension: int | None = None,
    seed: int = 0,
    query_prompt: str | None = None,
    reply_prompt: str | None = None,
    normalize: bool | None = None,
    layers: int | None = None,
) -> SentenceTransformer:
    """Both routes from one checkpoint, or those of a trained retriever.

    Arguments that are None are those of a trained retriever: its encoders, poolings, lengths, prompts, normalisation.

    Args:
        model_name_or_path: a hub id or a folder: a transformers encoder, a sentence-transformers model (also one of
            token vectors), or a trained retriever.
        pooling: `pooler` (BERT's pooler output, as in the official code), `mean`, `cls` or `max`; None keeps all
            modules of a sentence-transformers model (its pooling, projection, normalisation) and is `pooler` for a
            transformers encoder.
        message_tokens, reply_tokens: longer texts are cut; None: 70 and 30.
        encoders: `two` (the paper's, None), `one` that both routes share, or `static`: the mean of token vectors, one
            table per route, for which `pooling` is not used. Tables are those of a sentence-transformers model of
            token vectors; of any other checkpoint only the tokenizer is used, and they are untrained.
        dimension: of untrained static vectors; None: 256.
        seed: of untrained static vectors, and of weights that the checkpoint lacks.
        query_prompt, reply_prompt: text put before messages and before replies, such as `query: `; None: the prompts
            of a sentence-transformers model for queries and documents, if it has any and its weights are used.
        normalize: whether vectors get length 1, so that the dot product is the cosine; None: as `pooling` says.
        layers: of each encoder, the first ones; None: all.

    Raises:
        InputError: an argument is out of its range, the checkpoint cannot be loaded, is a trained generator or
            adapters, cannot have these encoders or this pooling, or a prompt leaves no room for a text.
    """
    for name, value, known in (("encoders", encoders, ENCODERS), ("pooling", pooling, POOLINGS)):
        if value is not None and value not in known:
            raise InputError(f"--{name}: expected one of {', '.join(known)}, found {value!r}.")
    require_start(model_name_or_path, RETRIEVAL, revision)
    given = {
        "message_tokens": message_tokens, "reply_tokens": reply_tokens, "encoders": encoders, "dimension": dimension,
        "query_prompt": query_prompt, "reply_prompt": reply_prompt, "normalize": normalize,
    }  # fmt: skip
    with drawn(seed):
        start = Start(model_name_or_path, revision, encoders)
        asked = {**start.settings(), **{key: value for key, value in given.items() if value is not None}}
        lengths = (asked["message_tokens"], asked["reply_tokens"])
        if min(lengths) < 1:
            raise InputError(f"--message_tokens, --reply_tokens: expected 1 or more, found {min(lengths)}.")
        routes = start.routes(asked["encoders"], pooling, lengths, dimension)
    if layers is not None:
        for encoder in distinct_encoders(routes):
            keep_layers(encoder, layers)
    prompts = (asked["query_prompt"], asked["reply_prompt"])
    _require_room(prompts, routes, lengths)
    query, reply = (_normalized(modules, asked["normalize"]) for modules in routes)
    card = SentenceTransformerModelCardData(generate_widget_examples=False)  # they would show training texts
    return SentenceTransformer(
        modules=[Router.for_query_document(query, reply)],
        similarity_fn_name="dot",
        device="cpu",
        model_card_data=card,
        prompts=dict(zip(ROUTES, prompts, strict=True)),
    )


def _require_room(prompts: Sequence[str], routes: Sequence[Sequence[Module]], lengths: Sequence[int]) -> None:
    """Refuse a prompt that leaves no room for a text."""
    for side, prompt, modules, tokens in zip(("query", "reply"), prompts, routes, lengths, strict=True):
        if prompt and _tokens_of(prompt, modules[0]) >= tokens:
            raise InputError(
                f"--{side}_prompt {prompt!r}: fills all {tokens} tokens of a text; shorten it, or raise "
                f"--{'message' if side == 'query' else side}_tokens."
            )


shape_of = build_settings  # what an adapter's record holds, in addition to revision and seed


def built_as(record: dict[str, Any], name: str) -> SentenceTransformer:
    """The base of an adapter, by the keys of its record."""
    return build_dual_encoder(name, **record)


def _normalized(modules: list[Module], normalize: bool | None) -> list[Module]:
    """The modules with a normalisation at their end, or without it."""
    if normalize is None or normalize == normalizes(modules):
        return modules
    return [*modules, Normalize()] if normalize else modules[:-1]


def _tokens_of(prompt: str, first: Module) -> int:
    if isinstance(first, StaticEmbedding):
        return len(first.tokenizer.encode(prompt, add_special_tokens=False).ids)
    return len(cast(Any, first).tokenizer(prompt, truncation=False)["input_ids"])


def prune_vocabulary(model: SentenceTransformer, texts: Iterable[str], pieces: int) -> None:
    """Keep `pieces` pieces of each encoder, the same in both; in place. See `kept_pieces`."""
    kept: list[int] = []
    for module in transformers_of(model):
        tokenizer = cast(Any, module).tokenizer
        kept = kept or kept_pieces(tokenizer, texts, prompts_of(model), pieces)
        cut_vocabulary(module.auto_model, tokenizer, kept)


def load_dual_encoder(folder: str | Path) -> SentenceTransformer:
    """Load a trained dual encoder from a folder or the hub, ready for `encode_query` and `encode_document`."""
    disable_progress_bar()  # of reading the weights
    return SentenceTransformer(str(folder), trust_remote_code=False, model_kwargs={"use_safetensors": True})
