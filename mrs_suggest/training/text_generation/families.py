"""The family of generators of other tasks than replies."""

from __future__ import annotations

from mrs_suggest.training.export.family import Family
from mrs_suggest.training.reply.families import GENERATION
from mrs_suggest.training.text_generation.card import task_card

TASK_GENERATION = Family("text_generation", GENERATION.files, task_card)
