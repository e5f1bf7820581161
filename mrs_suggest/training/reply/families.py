"""The two families of reply models: the dual encoder and the generator."""

from __future__ import annotations

from mrs_suggest.models.exports import CTRANSLATE2_FILES, ONNX_FILES
from mrs_suggest.models.starting_points import GENERATION as GENERATION_NAME
from mrs_suggest.models.starting_points import RETRIEVAL as RETRIEVAL_NAME
from mrs_suggest.suggest.language_detector import DETECTOR
from mrs_suggest.training.export.allowlist import (
    ADAPTER_OF_RUN,
    GENERATOR_FILES,
    GUARD,
    INDEXES,
    RANKER,
    RANKER_GENERATOR,
    SENTENCE_TRANSFORMERS,
)
from mrs_suggest.training.export.family import Family
from mrs_suggest.training.reply.card import model_card

RETRIEVAL = Family(
    RETRIEVAL_NAME,
    (*SENTENCE_TRANSFORMERS, DETECTOR, *INDEXES, *RANKER, *RANKER_GENERATOR, *GUARD, *ADAPTER_OF_RUN, *ONNX_FILES),
    model_card,
)
GENERATION = Family(GENERATION_NAME, (*GENERATOR_FILES, DETECTOR, *ADAPTER_OF_RUN, *CTRANSLATE2_FILES), model_card)
FAMILIES = (RETRIEVAL, GENERATION)
