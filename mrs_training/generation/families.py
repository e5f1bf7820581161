"""The family of generators of other tasks than replies."""

from __future__ import annotations

from mrs_training.family import Family
from mrs_training.generation.card import task_card
from mrs_training.reply.families import GENERATION

TASK_GENERATION = Family("text_generation", GENERATION.files, task_card)
