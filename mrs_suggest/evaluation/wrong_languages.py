"""Verdicts on the languages of suggestions, as counts; the rules are in `mrs_metrics.language_match`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mrs_metrics.language_match import LanguageScores, score_languages
from mrs_suggest.common.text.language_id import LanguageIdentifier


def wrong_languages(
    suggestions: Sequence[Sequence[str]], language: str, identifier: LanguageIdentifier
) -> LanguageScores:
    """The verdict on each suggestion for messages in `language`; the signature names the model's file and its hash."""
    return score_languages(suggestions, language, identifier.identify, identifier=identifier.name)


def wrong_and_decided(scores: LanguageScores, first: bool = False) -> tuple[int, int]:
    """How many suggestions are in another language than their message's, and how many were identified.

    Args:
        first: of the first suggestion of each message alone.
    """
    counted = np.ones(len(scores.wrong), dtype=np.bool_)
    if first:
        counted = np.diff(scores.example, prepend=-1) > 0
    decided = counted & ~(scores.undecided | scores.too_short)
    return int((scores.wrong & counted).sum()), int(decided.sum())
