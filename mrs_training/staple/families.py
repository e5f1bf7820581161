"""The family of generators of STAPLE."""

from __future__ import annotations

from mrs_training.family import Family
from mrs_training.reply.families import GENERATION
from mrs_training.staple.card import staple_card

STAPLE_GENERATION = Family("staple_generation", GENERATION.files, staple_card)
