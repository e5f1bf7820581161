"""The data of one run, by language."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset

from mrs_core.errors import InputError
from mrs_core.text import normalise_reply
from mrs_datasets.prepared import PreparedData, bars_for_long_work
from mrs_datasets.schema import SPLITS, responses_config
from mrs_training.options import SharedArguments
from mrs_training.settings import Plan, make_plan

LONG_WORK = 1_000_000  # rows from which a progress bar helps
# Draws all that figures depend on beside the model: samples of validation and test, pools, baselines, intervals. It is
# not the training's seed, or runs of several seeds would not compare. Source: the default --seed of transformers, with
# which the figures in README were taken when the two were one.
EVALUATION_SEED = 42
MOST_RESPONSES = 50_000  # as many as the paper keeps of the most frequent replies (section 2.1)


@dataclass(frozen=True)
class ResponseSet:
    """The columns of a `LANG-responses` config that a response index needs."""

    replies: list[str]
    clusters: list[str]
    log_probs: list[float | None]


@dataclass(frozen=True)
class LanguageData:
    """The three splits (columns message, reply) and the response set of one language.

    `train` is what the baselines know; a model may have been trained on other languages.
    """

    language: str
    train: Dataset
    validation: Dataset
    test: Dataset
    responses: ResponseSet


def examples_hash(parts: Sequence[LanguageData]) -> str:
    """SHA-256 of the test examples, equal where two runs answered the same ones in the same order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{part.language}\n".encode())
        for message, reply in zip(part.test["message"][:], part.test["reply"][:], strict=True):
            digest.update(json.dumps([message, reply]).encode())
    return digest.hexdigest()


@dataclass(frozen=True)
class RunData:
    """What a run trains on (config name -> pairs, `es` or `mt-es`), and the languages it is evaluated on."""

    plan: Plan
    sources: dict[str, Dataset]
    validation: list[LanguageData]
    test: list[LanguageData]

    def texts(self) -> Iterator[str]:
        """Messages and replies of the training sources."""
        for pairs in self.sources.values():
            for column in ("message", "reply"):
                yield from pairs[column][:]

    def rows(self) -> dict[str, dict[str, int]]:
        """Rows used, by config, for the record of the run."""
        rows: dict[str, dict[str, int]] = {}
        for config, pairs in self.sources.items():
            rows.setdefault(config, {})["train"] = len(pairs)
        for part in self.validation:
            rows.setdefault(part.language, {})["validation"] = len(part.validation)
        for part in self.test:
            rows.setdefault(part.language, {}).update(test=len(part.test), responses=len(part.responses.replies))
        return rows


def load_run_data(source: PreparedData, options: SharedArguments, seed: int, need_responses: bool = True) -> RunData:
    """Load what the plan of the options asks for; each split is cut to a seeded sample where the options say so.

    Args:
        seed: draws the training pairs; validation and test are drawn with `EVALUATION_SEED`.
        need_responses: refuse a language without a response set, as a retriever must; else the most frequent
            training replies stand for it in the baselines.

    Raises:
        InputError: the data lack a language, a split or a response set, or the options ask for the impossible.
    """
    plan = make_plan(
        source.configs(), options.setting, options.languages, options.train, options.validation, options.sampling_alpha
    )
    limits = {
        "train": options.max_train_examples,
        "validation": options.max_validation_examples,
        "test": options.max_test_examples,
    }
    sources = {
        origin.config: sample_rows(source.load(origin.config, "train"), limits["train"], seed)
        for origin in plan.sources
    }
    codes = dict.fromkeys([*plan.validation, *plan.test])
    parts = {code: load_language(source, code, limits, seed, need_responses) for code in codes}
    return RunData(plan, sources, [parts[code] for code in plan.validation], [parts[code] for code in plan.test])


def tell_of_small_sources(data: RunData, batches: str, pairs_a_step: int) -> None:
    """Say on stderr which sources have fewer pairs than a step, so that pairs repeat within it.

    Args:
        batches: `language`, where a step has one source, or `mixed`.
    """
    sizes = {config: len(pairs) for config, pairs in data.sources.items()}
    if batches == "mixed":
        sizes = {" ".join(sizes): sum(sizes.values())}
    for name, size in sizes.items():
        if 0 < size < pairs_a_step:
            print(
                f"note: {name} has {size:,} training pairs, fewer than the {pairs_a_step:,} of a step, so that each "
                f"comes about {pairs_a_step / size:.3g} times in it; lower --per_device_train_batch_size.",
                file=sys.stderr,
            )


def load_language(
    data: PreparedData, language: str, limits: dict[str, int | None], seed: int, need_responses: bool = True
) -> LanguageData:
    """Load one language; each split is cut to a seeded sample of `limits[split]` rows where that is smaller.

    Args:
        seed: draws the training pairs; validation and test are drawn with `EVALUATION_SEED`.

    Raises:
        InputError: a split or the response set is missing.
    """
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
        responses = ResponseSet(rows["reply"][:], rows["cluster"][:], rows["log_prob"][:])
    except InputError as error:
        if need_responses:
            raise InputError(f"{error} A retriever needs a response set: prepare from a source that has one.") from None
        responses = _most_frequent(splits["train"])
    return LanguageData(language, splits["train"], splits["validation"], splits["test"], responses)


def _most_frequent(pairs: Dataset) -> ResponseSet:
    forms: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for reply in pairs["reply"][:]:
        form = normalise_reply(reply)
        forms.setdefault(form, reply)
        counts[form] += 1
    kept = [form for form, _ in counts.most_common(MOST_RESPONSES)]
    return ResponseSet([forms[form] for form in kept], kept, [None] * len(kept))


def with_reply_ids(pairs: Dataset) -> Dataset:
    """Add the `label` column: equal for replies with the same normalised form, on every rank and machine."""
    with bars_for_long_work(len(pairs) > LONG_WORK):
        return pairs.map(_reply_ids, batched=True, desc="reply ids")


def _reply_ids(batch: dict[str, list[Any]]) -> dict[str, list[int]]:
    digests = (hashlib.blake2b(normalise_reply(r).encode(), digest_size=8).digest() for r in batch["reply"])
    return {"label": [int.from_bytes(digest, "big", signed=True) for digest in digests]}


def sample_rows(rows: Dataset, limit: int | None, seed: int) -> Dataset:
    """A seeded sample of `limit` rows in their order; all rows where there are no more."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = np.random.default_rng(seed).choice(len(rows), limit, replace=False)
    return rows.select(np.sort(chosen))
