"""Retrievers of replies: the dual encoder, its ranker and its exports."""

from __future__ import annotations

from mrs_suggest.models.exports import ONNX_FILES
from mrs_suggest.suggest.language_detector import DETECTOR
from mrs_suggest.training.export.allowlist import (
    ADAPTER_OF_RUN,
    GUARD,
    INDEXES,
    RANKER,
    RANKER_GENERATOR,
    SENTENCE_TRANSFORMERS,
)
from mrs_suggest.training.export.families import Family, register

FAMILY = register(
    Family(
        "retrieval",
        (*SENTENCE_TRANSFORMERS, DETECTOR, *INDEXES, *RANKER, *RANKER_GENERATOR, *GUARD, *ADAPTER_OF_RUN, *ONNX_FILES),
        "mrs_suggest.training.reply.card:model_card",
    )
)
