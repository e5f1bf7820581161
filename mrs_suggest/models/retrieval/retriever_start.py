"""What a retriever can start from, and the two routes that each kind of checkpoint gives.

An encoder of transformers or sentence-transformers gives both routes; so does a sentence-transformers model of token
vectors; of any encoder the tokenizer alone gives untrained token vectors; a trained retriever keeps its own routes.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.module import Module
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, Transformer
from sentence_transformers.util import load_file_path
from tokenizers import Tokenizer

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import DAMAGE, at
from mrs_suggest.models.retrieval.routes import POOLER_OUTPUT, build_settings, routes_of
from mrs_suggest.models.starting_points import RETRIEVER, STATIC, checkpoint_prompts, start_kind

# The arguments of `build_dual_encoder` for a checkpoint that has nothing of its own.
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
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
)
TOKEN_OUTPUT: Any = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}


class Start(ABC):
    """A checkpoint of one kind; `load` finds out which."""

    def __init__(self, name: str, revision: str | None) -> None:
        self.name, self.revision = name, revision

    @staticmethod
    def load(name: str, revision: str | None, encoders: str | None) -> Start:
        """The checkpoint, ready to give routes.

        Args:
            name, revision: a folder, a baseline, or a hub id and its revision.
            encoders: as for `build_dual_encoder`.

        Raises:
            InputError: it is a trained retriever or has token vectors, and cannot be loaded.
        """
        kind, name = start_kind(name, revision), starting_point(name)
        if kind == RETRIEVER:
            return _TrainedRetriever(name, revision)
        if kind == STATIC:
            return _StaticModel(name, revision)
        return _TokenizerOnly(name, revision) if encoders == "static" else _Encoder(name, revision)

    def settings(self) -> dict[str, Any]:
        """The arguments of `build_dual_encoder` that keep what the checkpoint has; the defaults for the others."""
        query_prompt, reply_prompt = checkpoint_prompts(self.name, self.revision)
        return {**DEFAULTS, "query_prompt": query_prompt, "reply_prompt": reply_prompt}

    @abstractmethod
    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        """The modules of both routes, each with its own limit on tokens.

        Raises:
            InputError: the checkpoint cannot be loaded, or cannot have these.
        """

    def _refusal(self, encoders: str, what: str) -> InputError:
        return InputError(
            f"--encoders {encoders}: {self.name} {what}; leave the option out, or start from another checkpoint."
        )


class _Encoder(Start):
    """A transformers encoder, or a sentence-transformers model that begins with one."""

    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        own = self._modules()
        if not isinstance(own[0], Transformer):
            raise InputError(
                f"--model_name_or_path {self.name}: expected a sentence-transformers model that begins with a "
                f"Transformer, found {type(own[0]).__name__}; pass the checkpoint of one encoder."
            )
        modules = _pooled(self.name, own, pooling, max(lengths))
        return _limited([modules, modules if encoders == "one" else copy.deepcopy(modules)], lengths)

    def _modules(self) -> list[Module]:
        """All modules of a sentence-transformers checkpoint, or a Transformer alone."""
        arguments = at(self.revision)
        weights = {**arguments, "use_safetensors": True, "dtype": torch.float32}  # a 16-bit one would train in 16 bits
        try:
            if load_file_path(self.name, "modules.json", revision=self.revision) is None:
                kwargs = {"processor_kwargs": {**arguments}, "config_kwargs": {**arguments}}
                return [Transformer(self.name, model_kwargs=weights, **kwargs)]
            return cast("list[Module]", list(_load(self.name, self.revision).children()))
        except DAMAGE as error:
            raise _unloadable(self.name, "encoder", error) from None


class _TokenizerOnly(Start):
    """Untrained token vectors over the tokenizer of any encoder."""

    def settings(self) -> dict[str, Any]:
        return dict(DEFAULTS)

    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        from transformers import AutoTokenizer

        dimension = DEFAULTS["dimension"] if dimension is None else dimension
        if dimension < 1:
            raise InputError(f"--dimension: expected 1 or more, found {dimension}.")
        try:
            loaded = AutoTokenizer.from_pretrained(self.name, revision=self.revision, trust_remote_code=False)
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise _unloadable(self.name, "tokenizer", error) from None
        backend = getattr(loaded, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise InputError(f"--encoders static: {self.name} has no fast tokenizer; choose another checkpoint.")
        # Both tables start equal, as two encoders do from their checkpoint: shared words already score.
        weights = torch.randn(backend.get_vocab_size(), dimension) * dimension**-0.5
        tables = [StaticEmbedding(_copied(backend), embedding_weights=weights.clone()) for _ in lengths]
        return _limited([[table] for table in tables], lengths)


class _StaticModel(Start):
    """A sentence-transformers model of token vectors: each route has a copy."""

    def __init__(self, name: str, revision: str | None) -> None:
        super().__init__(name, revision)
        try:
            self._modules = cast("list[Module]", list(_load(name, revision).children()))
        except DAMAGE as error:
            raise _unloadable(name, "model", error) from None

    def settings(self) -> dict[str, Any]:
        width = cast(StaticEmbedding, self._modules[0]).get_embedding_dimension()
        return {**super().settings(), "encoders": "static", "dimension": width}

    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        if encoders != "static":
            raise self._refusal(encoders, "has token vectors and no encoder")
        _require_width(self, dimension)
        return _limited([self._modules, copy.deepcopy(self._modules)], lengths)


class _TrainedRetriever(Start):
    """A model with a route for messages and one for replies, whatever their encoders."""

    def __init__(self, name: str, revision: str | None) -> None:
        super().__init__(name, revision)
        try:
            model = _load(name, revision)
            self._own, self._settings = cast("list[list[Module]]", routes_of(model)), build_settings(model)
        except DAMAGE as error:
            raise _unloadable(name, "retriever", error) from None

    def settings(self) -> dict[str, Any]:
        return {**super().settings(), **self._settings}

    def routes(
        self, encoders: str, pooling: str | None, lengths: tuple[int, int], dimension: int | None
    ) -> list[list[Module]]:
        own = self._settings["encoders"]
        if own == "static" or encoders == "static":
            if own != encoders:
                has = "static vectors" if own == "static" else "encoders of its own"
                raise self._refusal(encoders, f"is a trained retriever with {has}")
            _require_width(self, dimension)
            return _limited(self._own, lengths)
        if own == "two" and encoders == "one":
            raise InputError(
                f"--encoders one: {self.name} is a trained retriever with two encoders; leave the option out, or pass "
                "the encoder that both sides shall start from, such as its folder query_0_Transformer."
            )
        if own == "one":
            modules = _pooled(self.name, self._own[0], pooling, max(lengths))
            return _limited([modules, modules if encoders == "one" else copy.deepcopy(modules)], lengths)
        both = zip(self._own, lengths, strict=True)
        return _limited([_pooled(self.name, modules, pooling, tokens) for modules, tokens in both], lengths)


def _load(name: str, revision: str | None) -> SentenceTransformer:
    model = SentenceTransformer(
        name, device="cpu", revision=revision, trust_remote_code=False,
        model_kwargs={"use_safetensors": True, "dtype": torch.float32},
    )  # fmt: skip
    return model.float()  # tables of token vectors come as they are stored


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


def _copied(tokenizer: Tokenizer) -> Tokenizer:
    return Tokenizer.from_str(tokenizer.to_str())


def _require_width(start: Start, dimension: int | None) -> None:
    own = start.settings()["dimension"]
    if dimension not in (None, own):
        raise InputError(
            f"--dimension {dimension}: the vectors of {start.name} have dimension {own}; leave the option out."
        )


def _unloadable(name: str, what: str, error: Exception) -> InputError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return InputError(f"--model_name_or_path {name}: cannot load the {what} ({reason}).")
