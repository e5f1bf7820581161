"""Causal language models that write replies."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import ADAPTER_OF_RUN, GENERATOR_FILES
from mrs_suggest.models.starting_points import CAUSAL, DETECTOR

FAMILY = register(
    Family(CAUSAL, (*GENERATOR_FILES, DETECTOR, *ADAPTER_OF_RUN), "mrs_suggest.training.reply.card:model_card")
)
