"""Generators of replies."""

from mrs_suggest.models.exports import CTRANSLATE2_FILES
from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import ADAPTER_OF_RUN, GENERATOR_FILES
from mrs_suggest.models.starting_points import DETECTOR

FAMILY = register(
    Family(
        "generation",
        (*GENERATOR_FILES, DETECTOR, *ADAPTER_OF_RUN, *CTRANSLATE2_FILES),
        "mrs_suggest.training.reply.card:model_card",
    )
)
