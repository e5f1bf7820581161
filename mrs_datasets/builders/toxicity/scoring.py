"""The scores of a range of rows: each distinct text is asked for once, and its answer is kept at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_datasets.builders.passes import Rows
from mrs_datasets.builders.pipeline.checked_files import damaged, read_array, write_array
from mrs_datasets.builders.pipeline.stages import Advance, ShardCounts
from mrs_datasets.builders.toxicity.rules import Rule
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.text_services import Scorer

Scores = npt.NDArray[np.float32]
TEXTS = ("message", "reply")  # the columns that are scored, as far as a config has them


def score_rows(
    rows: Rows, language: str, rules: Sequence[Rule], output: Location, cache: Path, advance: Advance
) -> ShardCounts:
    """Write the scores of a range of rows: float32 (rules, rows); return how many rows and distinct texts it has."""
    texts, places = distinct_texts(rows.read())
    found = np.empty((len(rules), rows.count), np.float32)
    for number, rule in enumerate(rules):
        found[number] = scores_of(rule.scorer, texts, language, cache, rows.count, advance)[places].max(axis=0)
    write_array(output, found)
    return {"rows": rows.count, "texts": len(texts)}


def distinct_texts(table: pa.Table) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The distinct texts of the columns `TEXTS`, and where each row's are among them: (columns, rows)."""
    columns = [table[name].combine_chunks() for name in TEXTS if name in table.column_names]
    encoded = pa.chunked_array(columns).combine_chunks().dictionary_encode()
    places = encoded.indices.to_numpy().astype(np.int64)
    return encoded.dictionary.to_pylist(), places.reshape(len(columns), table.num_rows)


def scores_of(
    scorer: Scorer, texts: Sequence[str], language: str, cache: Path, units: int = 0, advance: Advance = lambda n: None
) -> Scores:
    """The scores of distinct texts, from the cache where it has them; new ones are in it before the next are asked for.

    Args:
        units: by which `advance` is called in all.

    Raises:
        InputError: as `Scorer.score`, or an answer is not a number in [0, 1].
    """
    if scorer.at_once is None:
        found = np.array(_checked(scorer, scorer.score(texts, language)), np.float32)
        advance(units)
        return found
    with TextCache[float](cache, scorer.facts, language) as answers:
        known = answers.known(texts)
        # Texts of similar length together, which a model processes fastest.
        missing = sorted((text for text in texts if text not in known), key=len)
        done = 0
        for first in range(0, len(missing), scorer.at_once):
            some = missing[first : first + scorer.at_once]
            new = dict(zip(some, _checked(scorer, scorer.score(some, language)), strict=True))
            answers.add(new)
            known.update(new)
            now = units * (first + len(some)) // len(missing)
            advance(now - done)
            done = now
    advance(units - done)
    return np.array([known[text] for text in texts], np.float32)


def read_scores(path: Location, rules: int, rows: int) -> Scores:
    """What `score_rows` wrote.

    Raises:
        InputError: the file is damaged.
    """
    stored = read_array(path)
    found = np.asarray(stored, np.float32)
    if found.shape != (rules, rows) or stored.dtype != np.float32 or not np.all((found >= 0) & (found <= 1)):
        raise damaged(path, f"it does not have {rules} scores in [0, 1] for each of {rows:,} rows")
    return found


def _checked(scorer: Scorer, scores: list[float]) -> list[float]:
    wrong = next((score for score in scores if not (math.isfinite(score) and 0 <= score <= 1)), None)
    if wrong is not None:
        raise InputError(f"{scorer.facts.name}: gave {wrong!r} as the score of a text; expected numbers from 0 to 1.")
    return scores
