"""The generation tasks of XGLUE: a text in, one text out."""

from mrs_suggest.models.saved.families import Family, register
from mrs_suggest.training.generation import FAMILY as GENERATION

FAMILY = register(Family("text_generation", GENERATION.files, "mrs_suggest.training.text_generation.card:task_card"))
