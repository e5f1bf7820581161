"""The family of pretrained encoders and sequence-to-sequence models."""

from __future__ import annotations

from mrs_suggest.training.export.allowlist import ADAPTER_OF_RUN, TRANSFORMERS
from mrs_suggest.training.export.family import Family
from mrs_suggest.training.pretraining.card import pretraining_card

PRETRAINING = Family("pretraining", (*TRANSFORMERS, *ADAPTER_OF_RUN), pretraining_card)
