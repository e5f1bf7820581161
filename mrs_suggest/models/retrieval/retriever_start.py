"""The kinds of checkpoints that a retriever can start from, and the two routes that each gives.

An encoder of transformers or sentence-transformers gives both routes; so does a sentence-transformers model of token
vectors; the tokenizer of any encoder gives untrained token vectors; a trained retriever keeps its own routes.
"""

import copy
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer
from tokenizers import Tokenizer

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer, loading
from mrs_suggest.models.retrieval.routes import POOLER_OUTPUT, build_settings, routes_of
from mrs_suggest.models.starting_points import (
    ENCODER,
    RETRIEVER,
    STATIC,
    checkpoint_prompts,
    is_transformers,
    start_kind,
)

# The arguments of `build_dual_encoder` for a checkpoint without settings.
DEFAULTS: Mapping[str, Any] = {
    "encoders": "two",
    "dimension": 256,  # of untrained static vectors
    "pooling": None,
    "message_tokens": 70,  # official train.sh: --max_msg_len 70 --max_rsp_len 30
    "reply_tokens": 30,
    "query_prompt": "",
    "reply_prompt": "",
    "normalize": None,
    "layers": None,
}
TOKENIZER = "tokenizer"  # the kind of an encoder of which only the tokenizer is used
PARTS = {ENCODER: "the encoder", STATIC: "the model", RETRIEVER: "the retriever"}
TOKEN_OUTPUT: Any = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}


class Start:
    """A checkpoint; its weights are loaded when they are needed.

    Args:
        name, revision: a folder, a baseline, or a hub id and its revision.
    """

    def __init__(self, name: str, revision: str | None, encoders: str | None) -> None:
        self.kind = start_kind(name, revision)
        if self.kind == ENCODER and encoders == "static":
            self.kind = TOKENIZER
        self.name, self.revision = name if Path(name).is_dir() else starting_point(name), revision

    @cached_property
    def _model(self) -> SentenceTransformer | Transformer:
        with loading(PARTS[self.kind], self.name):
            weights = {"use_safetensors": True, "dtype": torch.float32}  # a 16-bit one would train in 16 bits
            if self.kind == ENCODER and is_transformers(self.name, self.revision):
                at = {"revision": self.revision} if self.revision else {}
                more = {"processor_kwargs": {**at}, "config_kwargs": {**at}}
                return Transformer(self.name, model_kwargs={**at, **weights}, **more)
            model = SentenceTransformer(
                self.name, device="cpu", revision=self.revision, trust_remote_code=False, model_kwargs=weights
            )
            if self.kind == RETRIEVER:
                routes_of(model)  # a damaged one lacks a route
            return model.float()  # tables of token vectors come as they are stored

    @cached_property
    def _own(self) -> list[list[Module]]:
        """The modules of each route; of all kinds but a retriever there is one for both."""
        model: Any = self._model
        if isinstance(model, Transformer):
            return [[model]]
        return cast("list[list[Module]]", routes_of(model) if self.kind == RETRIEVER else [list(model.children())])

    def settings(self) -> dict[str, Any]:
        """The arguments of `build_dual_encoder` that keep what the checkpoint has; the defaults for the others."""
        if self.kind == TOKENIZER:
            return dict(DEFAULTS)
        query_prompt, reply_prompt = checkpoint_prompts(self.name, self.revision)
        found = {**DEFAULTS, "query_prompt": query_prompt, "reply_prompt": reply_prompt}
        if self.kind == RETRIEVER:
            return found | build_settings(cast(SentenceTransformer, self._model))
        if self.kind == STATIC:
            return found | {"encoders": "static", "dimension": cast(Any, self._own[0][0]).get_embedding_dimension()}
        return found

    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        """The modules of both routes, each with its own limit on tokens."""
        if self.kind == TOKENIZER:
            return _limited(self._fresh_tables(dimension), lengths)
        own = self.settings()["encoders"]
        if "static" in (own, encoders):
            return _limited(self._static(encoders, dimension), lengths)
        if not isinstance(self._own[0][0], Transformer):
            raise InputError(
                f"--model_name_or_path {self.name}: expected a sentence-transformers model that begins with a "
                f"Transformer, found {type(self._own[0][0]).__name__}; pass the checkpoint of one encoder."
            )
        if self.kind == RETRIEVER and own == "two":
            if encoders == "one":
                raise InputError(
                    f"--encoders one: {self.name} is a trained retriever with two encoders; leave the option out, or "
                    "pass the encoder that both sides shall start from, such as its folder query_0_Transformer."
                )
            both = zip(self._own, lengths, strict=True)
            return _limited([_pooled(self.name, modules, pooling, tokens) for modules, tokens in both], lengths)
        modules = _pooled(self.name, self._own[0], pooling, max(lengths))
        return _limited([modules, modules if encoders == "one" else copy.deepcopy(modules)], lengths)

    def _fresh_tables(self, dimension: int | None) -> list[list[Module]]:
        """Untrained token vectors over the tokenizer of any encoder."""
        dimension = DEFAULTS["dimension"] if dimension is None else dimension
        if dimension < 1:
            raise InputError(f"--dimension: expected 1 or more, found {dimension}.")
        backend = load_fast_tokenizer(self.name, self.revision).backend_tokenizer
        # Both tables start equal, as two encoders do from their checkpoint: shared words already score.
        weights = torch.randn(backend.get_vocab_size(), dimension) * dimension**-0.5
        copies = [Tokenizer.from_str(backend.to_str()) for _ in range(2)]
        return [[StaticEmbedding(tokenizer, embedding_weights=weights.clone())] for tokenizer in copies]

    def _static(self, encoders: str, dimension: int | None) -> list[list[Module]]:
        own = self.settings()
        if encoders != own["encoders"]:
            what = "has token vectors and no encoder"
            if self.kind == RETRIEVER:
                has = "static vectors" if encoders != "static" else "its own encoders"
                what = f"is a trained retriever with {has}"
            raise InputError(
                f"--encoders {encoders}: {self.name} {what}; leave the option out, or start from another checkpoint."
            )
        if dimension not in (None, own["dimension"]):
            raise InputError(
                f"--dimension {dimension}: {self.name} has vectors of dimension {own['dimension']}; leave it out."
            )
        return self._own if self.kind == RETRIEVER else [self._own[0], copy.deepcopy(self._own[0])]


def _pooled(name: str, own: list[Module], pooling: str | None, tokens: int) -> list[Module]:
    """The modules of one route: a Transformer, and what pools its output into one vector."""
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


def _limited(routes: list[list[Module]], lengths: tuple[int, int]) -> list[list[Module]]:
    """The routes, each with its own limit on tokens."""
    for route, tokens in zip(routes, lengths, strict=True):
        first = route[0]
        if isinstance(first, StaticEmbedding):
            first.tokenizer.enable_truncation(tokens)
            continue
        transformer = cast(Transformer, first)
        transformer.query_length = transformer.document_length = None
        transformer.processing_kwargs.get("text", {}).pop("max_length", None)  # it would go before our limits
        transformer.max_seq_length = tokens
    if routes[0][0] is routes[1][0]:
        # One tokenizer for both: the module itself cuts by route. The tokenizer's own limit is that of messages, which
        # applies if the tokenizer is used alone.
        transformer = cast(Transformer, routes[0][0])
        transformer.query_length, transformer.document_length = lengths
        transformer.max_seq_length = lengths[0]
    return routes
