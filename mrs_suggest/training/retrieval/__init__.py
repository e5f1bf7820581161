"""Retrievers of replies: the dual encoder, its ranker and its exports."""

from mrs_suggest.models.exports import ONNX_FILES
from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import (
    ADAPTER_OF_RUN,
    GUARD,
    INDEXES,
    RANKER,
    RANKER_GENERATOR,
    SENTENCE_TRANSFORMERS,
)
from mrs_suggest.models.starting_points import DETECTOR

FAMILY = register(
    Family(
        "retrieval",
        (*SENTENCE_TRANSFORMERS, DETECTOR, *INDEXES, *RANKER, *RANKER_GENERATOR, *GUARD, *ADAPTER_OF_RUN, *ONNX_FILES),
        "mrs_suggest.training.reply.card:model_card",
    )
)
