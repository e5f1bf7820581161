"""The two families of reply models: the dual encoder and the generator."""

from __future__ import annotations

from mrs_models.exports import CTRANSLATE2_FILES, ONNX_FILES
from mrs_models.language_detector import DETECTOR
from mrs_models.starting_points import GENERATION as GENERATION_NAME
from mrs_models.starting_points import RETRIEVAL as RETRIEVAL_NAME
from mrs_training.allowlist import (
    ADAPTER_OF_RUN,
    GENERATOR_FILES,
    GUARD,
    INDEXES,
    RANKER,
    RANKER_GENERATOR,
    SENTENCE_TRANSFORMERS,
)
from mrs_training.family import Family
from mrs_training.reply.card import model_card

RETRIEVAL = Family(
    RETRIEVAL_NAME,
    (*SENTENCE_TRANSFORMERS, DETECTOR, *INDEXES, *RANKER, *RANKER_GENERATOR, *GUARD, *ADAPTER_OF_RUN, *ONNX_FILES),
    model_card,
)
GENERATION = Family(GENERATION_NAME, (*GENERATOR_FILES, DETECTOR, *ADAPTER_OF_RUN, *CTRANSLATE2_FILES), model_card)
FAMILIES = (RETRIEVAL, GENERATION)
