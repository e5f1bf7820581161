"""Stage 4, language: identified from a message and its reply as one text (Zhang et al. 2021, section 2).

Every stage from here on counts its pairs as (language, outcome) -> pairs. Each input pair has exactly one outcome,
`kept` or the reason why it was dropped, so that a stage's counts add up to its input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import compress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.cleaning.columns import BATCH_ROWS, found_rows, with_rows
from mrs_datasets.builders.reddit.cleaning.masks import MASK_PATTERN
from mrs_suggest.common.text.language_id import UNDETERMINED, LanguageIdentifier

KEPT = "kept"
UNKNOWN_LANGUAGE = "no language found"
LOW_SCORE = "language uncertain"
Outcomes = Counter[tuple[str, str]]
_NOT_WORDS = rf"[\r\n]|{MASK_PATTERN}"


def identify_pairs(pairs: pa.Table, identifier: LanguageIdentifier, min_score: float) -> tuple[pa.Table, Outcomes]:
    """Keep the pairs whose language is clear, with a new last column `language`.

    The text is message, space, reply, with a space for every line break and every mask: a link has no language, and
    its mask is not a word. No language is left out here: see `languages_with`.

    Args:
        pairs: columns message and reply, masked; others are kept.
        min_score: a pair is kept if the probability of its language is above (not at) it.

    Returns:
        The kept pairs in their order, and the outcomes per language; a pair that cannot be identified counts as `und`.
    """
    outcomes: Outcomes = Counter()
    languages: list[str] = []
    kept: list[bool] = []
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        answers = identifier.identify(_texts(batch))
        clear = [score > min_score and language != UNDETERMINED for language, score in answers]
        for (language, _), clearly in zip(answers, clear, strict=True):
            unclear = UNKNOWN_LANGUAGE if language == UNDETERMINED else LOW_SCORE
            outcomes[language, KEPT if clearly else unclear] += 1
        languages += compress((language for language, _ in answers), clear)
        kept += clear
    found = pairs.filter(pa.array(np.array(kept, bool)))
    return found.append_column("language", pa.array(languages, pa.string())), outcomes


def _texts(batch: pa.RecordBatch) -> list[str]:
    joined = pc.binary_join_element_wise(batch["message"], batch["reply"], " ")
    rows = found_rows(joined, _NOT_WORDS)
    if len(rows):
        words = pc.replace_substring_regex(joined.take(pa.array(rows)), _NOT_WORDS, " ")
        joined = with_rows(joined, rows, words)
    texts: list[str] = joined.to_pylist()
    return texts


def languages_with(outcomes: Mapping[tuple[str, str], int], min_examples: int) -> list[str]:
    """The languages with at least `min_examples` kept pairs, most pairs first, ties by code.

    >>> languages_with({("en", "kept"): 7, ("sv", "kept"): 2, ("sv", "language uncertain"): 9}, min_examples=3)
    ['en']
    """
    kept = {language: pairs for (language, outcome), pairs in outcomes.items() if outcome == KEPT}
    return sorted((code for code in kept if kept[code] >= min_examples), key=lambda code: (-kept[code], code))
