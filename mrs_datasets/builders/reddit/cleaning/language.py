"""Stage 5, language: identified from a message and its reply as one text (Zhang et al. 2021, section 2).

Every stage from here on counts its pairs as (language, outcome) -> pairs. Each input pair has exactly one outcome,
`kept` or the reason why it was dropped, so that a stage's counts add up to its input, and counts of several buckets
are added with `+` or `update`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.cleaning.markup import MASK_PATTERN
from mrs_datasets.builders.reddit.columns import found_rows, with_rows
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import UNDETERMINED

MIN_SCORE = 0.7  # section 2: the best label counts only if its score is above
MIN_EXAMPLES = 100_000  # section 2: ten languages have at least this many
BATCH_ROWS = 16_384  # Python texts in memory at once
_NOT_WORDS = rf"[\r\n]|{MASK_PATTERN}"

KEPT = "kept"
UNKNOWN_LANGUAGE = "no language found"
LOW_SCORE = "language uncertain"

Outcomes = Counter[tuple[str, str]]


class Identifier(Protocol):
    """Identifies the language of texts, such as `mrs_suggest.common.text.language_id.LanguageIdentifier`."""

    def identify(self, texts: Sequence[str], /) -> list[tuple[str, float]]:
        """The language of each text with its probability."""


def identify_pairs(
    pairs: pa.Table, identifier: Identifier, min_score: float = MIN_SCORE
) -> tuple[pa.Table, Counter[tuple[str, str]]]:
    """Keep the pairs whose language is clear, with a new last column `language`.

    The text is message, space, reply, with a space for every line break and every mask: a link has no language, and
    its mask is not a word. Nothing else is changed, and no language is left out: `languages_with` returns those with
    enough pairs, once all buckets are counted.

    Args:
        pairs: columns message and reply, masked; others are kept. A column `language` is replaced.
        min_score: a pair is kept if the score of its language is above (not at) it.

    Returns:
        The kept pairs in their order, and the outcomes per language; a pair that the identifier cannot identify
        counts as `und`.

    Raises:
        InputError: `min_score` is not between 0 and 1.
    """
    if not 0.0 <= min_score <= 1.0:
        raise InputError(f"--min-language-score: expected a number from 0 to 1, found {min_score}.")
    told: Counter[tuple[str, bool]] = Counter()  # language, whether it is clear
    languages: list[str] = []
    kept = np.zeros(pairs.num_rows, dtype=bool)
    row = 0
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        answers = identifier.identify(_texts(batch))
        clear = [score > min_score and language != UNDETERMINED for language, score in answers]
        codes = [language for language, _ in answers]
        told.update(zip(codes, clear, strict=True))
        languages += compress(codes, clear)
        kept[row : row + len(clear)] = clear
        row += len(clear)
    outcomes: Outcomes = Counter()
    for (language, clearly), count in told.items():
        dropped = UNKNOWN_LANGUAGE if language == UNDETERMINED else LOW_SCORE
        outcomes[language, KEPT if clearly else dropped] += count
    found = pairs.drop_columns(["language"]) if "language" in pairs.column_names else pairs
    found = found.filter(pa.array(kept))
    return found.append_column("language", pa.array(languages, pa.string())), outcomes


def _texts(batch: pa.RecordBatch) -> list[str]:
    joined = pc.binary_join_element_wise(batch["message"], batch["reply"], " ")
    rows = found_rows(joined, _NOT_WORDS)
    if len(rows):
        words = pc.replace_substring_regex(joined.take(pa.array(rows)), _NOT_WORDS, " ")
        joined = with_rows(joined, rows, words)
    texts: list[str] = joined.to_pylist()
    return texts


def languages_with(outcomes: Mapping[tuple[str, str], int], min_examples: int = MIN_EXAMPLES) -> list[str]:
    """The languages with at least `min_examples` kept pairs, most pairs first, ties by code.

    >>> languages_with({("en", "kept"): 7, ("sv", "kept"): 2, ("sv", "language uncertain"): 9}, min_examples=3)
    ['en']
    """
    kept = {language: pairs for (language, outcome), pairs in outcomes.items() if outcome == KEPT}
    return sorted((code for code in kept if kept[code] >= min_examples), key=lambda code: (-kept[code], code))
