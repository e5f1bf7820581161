"""The two families of reply models: the dual encoder and the generator."""

from __future__ import annotations

from mrs_models.language_detector import DETECTOR
from mrs_models.starting_points import GENERATION as GENERATION_NAME
from mrs_models.starting_points import GENERATOR as GENERATOR_SETTINGS
from mrs_models.starting_points import RETRIEVAL as RETRIEVAL_NAME
from mrs_training.allowlist import ADAPTER_OF_RUN, INDEXES, RANKER, SENTENCE_TRANSFORMERS, TRANSFORMERS
from mrs_training.family import Family
from mrs_training.reply.card import model_card

RETRIEVAL = Family(RETRIEVAL_NAME, (*SENTENCE_TRANSFORMERS, DETECTOR, *INDEXES, *RANKER, *ADAPTER_OF_RUN), model_card)
GENERATION = Family(GENERATION_NAME, (*TRANSFORMERS, GENERATOR_SETTINGS, DETECTOR, *ADAPTER_OF_RUN), model_card)
FAMILIES = (RETRIEVAL, GENERATION)
