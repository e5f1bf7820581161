"""STAPLE: all translations of a prompt that learners would write."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.training.generation import FAMILY as GENERATION

FAMILY = register(Family("staple_generation", GENERATION.files, "mrs_suggest.training.staple.card:staple_card"))
