"""The family of multiple-choice models."""

from __future__ import annotations

from mrs_suggest.models.starting_points import MULTIPLE_CHOICE as NAME
from mrs_suggest.training.choice.card import choice_card
from mrs_suggest.training.export.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_suggest.training.export.family import Family

MULTIPLE_CHOICE = Family(NAME, (*TRANSFORMERS, *ADAPTER_OF_RUN), choice_card)
