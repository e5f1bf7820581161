"""Multiple choice: XCOPA's setups, their data, validation and evaluation."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.models.saved.record import ADAPTER_OF_RUN, TRANSFORMERS

FAMILY = register(
    Family("multiple_choice", (*TRANSFORMERS, *ADAPTER_OF_RUN), "mrs_suggest.training.choice.card:choice_card")
)
