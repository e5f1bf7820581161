"""The data of one run, by language."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset

from mrs_core.errors import InputError
from mrs_core.languages import require_language
from mrs_core.text import normalise_reply
from mrs_datasets.prepared import PreparedData, bars_for_long_work
from mrs_datasets.schema import SPLITS, responses_config

ALL_LANGUAGES = "all"
LONG_WORK = 1_000_000  # rows from which a progress bar helps


@dataclass(frozen=True)
class ResponseSet:
    """The columns of a `LANG-responses` config that a response index needs."""

    replies: list[str]
    clusters: list[str]
    log_probs: list[float | None]


@dataclass(frozen=True)
class LanguageData:
    """The three splits (columns message, reply) and the response set of one language."""

    language: str
    train: Dataset
    validation: Dataset
    test: Dataset
    responses: ResponseSet


def chosen_languages(data: PreparedData, languages: list[str]) -> list[str]:
    """The languages of a run; `all` stands for those that the data have.

    Raises:
        InputError: a language that MRS or the data do not have.
    """
    have = data.languages()
    if languages == [ALL_LANGUAGES]:
        return have
    for code in languages:
        require_language(code, "--language")
        if code not in have:
            raise InputError(f"--language {code}: {data.name} has {' '.join(have)}.")
    return list(dict.fromkeys(languages))


def load_language(data: PreparedData, language: str, limits: dict[str, int | None], seed: int) -> LanguageData:
    """Load one language; each split is cut to a seeded sample of `limits[split]` rows where that is smaller.

    Raises:
        InputError: a split or the response set is missing.
    """
    splits = {split: sample_rows(data.load(language, split), limits.get(split), seed) for split in SPLITS}
    try:
        responses = data.load(responses_config(language), "train")
    except InputError as error:
        raise InputError(f"{error} A retriever needs a response set: prepare from a source that has one.") from None
    return LanguageData(
        language,
        splits["train"],
        splits["validation"],
        splits["test"],
        ResponseSet(responses["reply"][:], responses["cluster"][:], responses["log_prob"][:]),
    )


def with_reply_ids(pairs: Dataset) -> Dataset:
    """Add the `label` column: equal for replies with the same normalised form, on every rank and machine."""
    with bars_for_long_work(len(pairs) > LONG_WORK):
        return pairs.map(_reply_ids, batched=True, desc="reply ids")


def rows_used(languages: list[LanguageData]) -> dict[str, dict[str, int]]:
    """Rows per language and split, for the record of the run."""
    return {
        part.language: {
            "train": len(part.train),
            "validation": len(part.validation),
            "test": len(part.test),
            "responses": len(part.responses.replies),
        }
        for part in languages
    }


def _reply_ids(batch: dict[str, list[Any]]) -> dict[str, list[int]]:
    digests = (hashlib.blake2b(normalise_reply(r).encode(), digest_size=8).digest() for r in batch["reply"])
    return {"label": [int.from_bytes(digest, "big", signed=True) for digest in digests]}


def sample_rows(rows: Dataset, limit: int | None, seed: int) -> Dataset:
    """A seeded sample of `limit` rows in their order; all rows where there are no more."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = np.random.default_rng(seed).choice(len(rows), limit, replace=False)
    return rows.select(np.sort(chosen))
