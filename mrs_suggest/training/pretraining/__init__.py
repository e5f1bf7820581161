"""Pretraining of encoders and of sequence-to-sequence models."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import ADAPTER_OF_RUN, TRANSFORMERS

FAMILY = register(
    Family("pretraining", (*TRANSFORMERS, *ADAPTER_OF_RUN), "mrs_suggest.training.pretraining.card:pretraining_card")
)
