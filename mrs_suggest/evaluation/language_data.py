"""The data of one language that systems are compared on: its pairs, and its response set."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply

if TYPE_CHECKING:
    from datasets import Dataset

    from mrs_datasets.prepared.prepared import PreparedData

# The seed of all that figures depend on besides the model: samples of validation and test, pools, baselines, intervals.
# It is not the training's seed, so that runs with different seeds can be compared. Source: the default --seed of
# transformers, used for the figures in README when the two seeds were one.
EVALUATION_SEED = 42
MOST_RESPONSES = 50_000  # the paper keeps this many of the most frequent replies (section 2.1)


@dataclass(frozen=True)
class ResponseSet:
    """The columns of a `LANG-responses` config that a response index needs.

    Attributes:
        tags: of each reply, from the column `stance`; None without one.
    """

    replies: list[str]
    clusters: list[str]
    log_probs: list[float | None]
    tags: list[str] | None = None


@dataclass(frozen=True)
class LanguageData:
    """The three splits (columns message, reply) and the response set of one language.

    `train` is what the baselines use; a model may have been trained on other languages.
    """

    language: str
    train: Dataset
    validation: Dataset
    test: Dataset
    responses: ResponseSet


def examples_hash(parts: Mapping[str, Dataset], columns: Sequence[str] = ("message", "reply")) -> str:
    """SHA-256 of the test examples, equal where two runs answered the same ones in the same order."""
    digest = hashlib.sha256()
    for language, rows in parts.items():
        digest.update(f"{language}\n".encode())
        for row in zip(*(rows[column][:] for column in columns), strict=True):
            digest.update(json.dumps(row).encode())
    return digest.hexdigest()


def load_language(
    data: PreparedData, language: str, limits: dict[str, int | None], seed: int, need_responses: bool = True
) -> LanguageData:
    """Load one language; each split is cut to a seeded sample of `limits[split]` rows if that is smaller.

    Args:
        seed: draws the training pairs; validation and test are drawn with `EVALUATION_SEED`.

    Raises:
        InputError: a split or the response set is missing.
    """
    from mrs_datasets.prepared.schema import SPLITS, responses_config  # here: a card has no need of pyarrow

    splits = {
        split: sample_rows(data.load(language, split), limits.get(split), seed if split == "train" else EVALUATION_SEED)
        for split in SPLITS
    }
    for split, rows in splits.items():
        if not len(rows):
            raise InputError(
                f"{data.name}: the {split} split of {language} is empty; prepare the folder from more pairs, or leave "
                f"{language} out."
            )
    try:
        rows = data.load(responses_config(language), "train")
        if not len(rows):
            raise InputError(f"{data.name}: the response set of {language} is empty.")
        tags = rows["stance"][:] if "stance" in rows.column_names else None
        responses = ResponseSet(rows["reply"][:], rows["cluster"][:], rows["log_prob"][:], tags)
    except InputError as error:
        if need_responses:
            raise InputError(f"{error} A retriever needs a response set: prepare from a source that has one.") from None
        responses = _most_frequent(splits["train"])
    return LanguageData(language, splits["train"], splits["validation"], splits["test"], responses)


def _most_frequent(pairs: Dataset) -> ResponseSet:
    forms: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for batch in pairs.select_columns("reply").iter(batch_size=10_000):
        for reply in batch["reply"]:
            form = normalise_reply(reply)
            forms.setdefault(form, reply)
            counts[form] += 1
    kept = [form for form, _ in counts.most_common(MOST_RESPONSES)]
    return ResponseSet([forms[form] for form in kept], kept, [None] * len(kept))


def sample_rows(rows: Dataset, limit: int | None, seed: int) -> Dataset:
    """A seeded sample of `limit` rows in their order; all rows if there are no more."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = np.random.default_rng(seed).choice(len(rows), limit, replace=False)
    return rows.select(np.sort(chosen))
