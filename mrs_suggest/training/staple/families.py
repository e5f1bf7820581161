"""The family of generators of STAPLE."""

from __future__ import annotations

from mrs_suggest.training.export.family import Family
from mrs_suggest.training.reply.families import GENERATION
from mrs_suggest.training.staple.card import staple_card

STAPLE_GENERATION = Family("staple_generation", GENERATION.files, staple_card)
