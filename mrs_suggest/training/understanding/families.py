"""The family of models for understanding tasks."""

from __future__ import annotations

from mrs_suggest.models.starting_points import UNDERSTANDING as NAME
from mrs_suggest.training.export.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_suggest.training.export.family import Family
from mrs_suggest.training.understanding.card import understanding_card

UNDERSTANDING = Family(NAME, (*TRANSFORMERS, *ADAPTER_OF_RUN), understanding_card)
