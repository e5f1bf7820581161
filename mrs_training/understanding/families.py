"""The family of models for understanding tasks."""

from __future__ import annotations

from mrs_models.starting_points import UNDERSTANDING as NAME
from mrs_training.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_training.family import Family
from mrs_training.understanding.card import understanding_card

UNDERSTANDING = Family(NAME, (*TRANSFORMERS, *ADAPTER_OF_RUN), understanding_card)
