"""The understanding tasks of XGLUE."""

from mrs_suggest.models.saved.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_suggest.models.saved.families import Family, register

FAMILY = register(
    Family(
        "understanding", (*TRANSFORMERS, *ADAPTER_OF_RUN), "mrs_suggest.training.understanding.card:understanding_card"
    )
)
