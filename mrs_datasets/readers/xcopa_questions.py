"""XCOPA's `question` by the majority of its files, since in five languages it calls causes effects.

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
    """The question of each idx in one split, by the majority of `REFERENCES`; a tied idx is not in it.

    Args:
        languages: config -> rows with `idx` and `question`. Leave English out if its idx are not XCOPA's.
    """
    votes: dict[int, Counter[str]] = {}
    for code in REFERENCES:
        for row in languages.get(code, ()):
            votes.setdefault(row["idx"], Counter())[row[QUESTION]] += 1
    ranked = {idx: found.most_common(2) for idx, found in votes.items()}
    return {idx: two[0][0] for idx, two in ranked.items() if len(two) == 1 or two[0][1] > two[1][1]}


def with_corrected(rows: Iterable[Row], reference: Mapping[int, str]) -> list[Row]:
    """The rows with `question_corrected`: the reference's question, or their own if the reference lacks the idx."""
    return [{**row, CORRECTED: reference.get(row["idx"], row[QUESTION])} for row in rows]
