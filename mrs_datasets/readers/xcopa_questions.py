"""XCOPA's `question` as most of its files have it: in five languages it calls causes effects.

Published files, against the languages below and English COPA, by `idx` (wrong rows of 100 validation, of 500 test
rows): th 52, 250 (no cause is left); tr 52, 51; sw 6, 37; id 5, 4; it 5, 4; always an effect that should be a cause.
The translations to English repeat the question of their original. No example has more than four wrong languages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]
QUESTION, CORRECTED = "question", "question_corrected"
# In the published files these six agree with each other in all 600 examples, and with English COPA in its 100
# validation examples, so that a single one of them is enough to correct another language.
REFERENCES = ("en", "et", "ht", "qu", "ta", "vi", "zh")


def reference_questions(languages: Mapping[str, Iterable[Row]]) -> dict[int, str]:
    """The question of each idx in one split: what most of `REFERENCES` have.

    Args:
        languages: code -> rows with `idx` and `question`; of languages that are not among `REFERENCES`, and of
            translations, nothing is read. Leave English out where its idx are not XCOPA's.

    Returns:
        idx -> cause or effect; an idx that no reference has, or where they are tied, is not in it.
    """
    votes: dict[int, Counter[str]] = {}
    for code in REFERENCES:
        for row in languages.get(code, ()):
            votes.setdefault(row["idx"], Counter())[row[QUESTION]] += 1
    ranked = {idx: found.most_common(2) for idx, found in votes.items()}
    return {idx: two[0][0] for idx, two in ranked.items() if len(two) == 1 or two[0][1] > two[1][1]}


def with_corrected(rows: Iterable[Row], reference: Mapping[int, str]) -> list[Row]:
    """The rows with `question_corrected`: the reference's question, or the file's own where there is no reference."""
    return [{**row, CORRECTED: reference.get(row["idx"], row[QUESTION])} for row in rows]


def corrections(rows: Iterable[Row]) -> list[int]:
    """The idx whose `question_corrected` differs from `question`."""
    return [row["idx"] for row in rows if row[CORRECTED] != row[QUESTION]]
