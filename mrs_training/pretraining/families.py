"""The family of pretrained encoders and sequence-to-sequence models."""

from __future__ import annotations

from mrs_training.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_training.family import Family
from mrs_training.pretraining.card import pretraining_card

PRETRAINING = Family("pretraining", (*TRANSFORMERS, *ADAPTER_OF_RUN), pretraining_card)
