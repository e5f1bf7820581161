"""The understanding tasks of XGLUE."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import ADAPTER_OF_RUN, TRANSFORMERS

FAMILY = register(
    Family(
        "understanding", (*TRANSFORMERS, *ADAPTER_OF_RUN), "mrs_suggest.training.understanding.card:understanding_card"
    )
)
