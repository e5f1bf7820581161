"""A seeded grammar of paraphrases: English prompts and all their translations to two made-up languages."""

from __future__ import annotations

from random import Random

from mrs_datasets.synthetic.grammar.language import PHENOMENA, MadeUpLanguage, Phenomena, Translation
from mrs_datasets.synthetic.grammar.qaa import Qaa
from mrs_datasets.synthetic.grammar.qab import Qab

__all__ = ["PHENOMENA", "MadeUpLanguage", "Phenomena", "Translation", "made_up_languages"]


def made_up_languages(seed: int) -> dict[str, MadeUpLanguage]:
    """The two languages with the words of a seed."""
    return {kind.code: kind(Random(f"{seed}/words/{kind.code}")) for kind in (Qaa, Qab)}
