"""Evaluation of systems side by side on the same examples (Zhang et al. 2021, section 3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrs_core.text import normalise_reply
from mrs_metrics.distinct import distinct_n
from mrs_metrics.ranking import random_pools, ranks, reciprocal_ranks
from mrs_metrics.rouge import score_examples
from mrs_metrics.signature import signature
from mrs_metrics.significance import bootstrap_interval, paired_bootstrap_interval
from mrs_models.suggester import SUGGESTIONS
from mrs_models.systems import System

POOL_SIZE = 100  # 1-of-100 ranking: one reference among 99 random replies (Henderson et al. 2019)


@dataclass(frozen=True)
class SystemResult:
    """Per-example scores of one system in one language.

    Attributes:
        rouge: (kept, 3) F1 of ROUGE-1/2/3 of the best suggestion; `weighted` (kept,) their weighted sum.
        reciprocal_rank: (n,) in a pool of `POOL_SIZE`; precision at 1 is the share of ones.
        chosen_tokens: tokens of the best suggestion of each kept example, for Dist.
        suggestions: (n) up to three replies each.
        pool_size: replies in a pool; fewer than `POOL_SIZE` only where references and response set have no more.
    """

    system: str
    language: str
    rouge: np.ndarray
    weighted: np.ndarray
    reciprocal_rank: np.ndarray
    chosen_tokens: list[list[str]]
    suggestions: list[list[str]]
    pool_size: int
    skipped: dict[str, int]
    signatures: dict[str, str]


def evaluate_system(
    system: System,
    language: str,
    messages: Sequence[str],
    references: Sequence[str],
    response_set: Sequence[str],
    seed: int,
) -> SystemResult:
    """Score the three suggestions of a system, and its ranking of the reference in a random pool.

    Args:
        messages, references: n examples; a message may come several times, and is then answered once.
        response_set: fills the pools where there are fewer than `POOL_SIZE` different references. Pools are drawn from
            the references, so that the others are as new to the system as the one to find; each normalised form once.
        seed: of the pools; equal seeds give every system the same pools.
    """
    numbers = {message: number for number, message in enumerate(dict.fromkeys(messages))}
    answers = system.suggest(list(numbers), SUGGESTIONS)
    suggestions = [answers[numbers[message]] for message in messages]
    scores = score_examples(suggestions, references, language=language)

    candidates: dict[str, str] = {}
    for reply in references:
        candidates.setdefault(normalise_reply(reply), reply)
    for number in np.random.default_rng(seed).permutation(len(response_set)):
        if len(candidates) >= POOL_SIZE:
            break
        candidates.setdefault(normalise_reply(response_set[number]), response_set[number])
    position = {form: number for number, form in enumerate(candidates)}
    targets = [position[normalise_reply(reference)] for reference in references]
    pools = random_pools(targets, len(candidates), size=POOL_SIZE, seed=seed)
    reciprocal = reciprocal_ranks(ranks(system.score_pools(messages, list(candidates.values()), pools)))
    pool_signature = signature(
        "response_ranking", pool=pools.shape[1], of="references", seed=seed, ties="pessimistic", lang=language
    )
    return SystemResult(
        system.name,
        language,
        scores.rouge,
        scores.weighted,
        reciprocal,
        scores.chosen_tokens,
        suggestions,
        pools.shape[1],
        scores.skipped,
        {"mrs_rouge": scores.signature, "response_ranking": pool_signature},
    )


def summary(results: Sequence[SystemResult], seed: int, intervals: bool = True) -> dict[str, Any]:
    """Figures of one system over one language, or pooled over the examples of several."""
    weighted = np.concatenate([result.weighted for result in results])
    rouge = np.concatenate([result.rouge for result in results])
    reciprocal = np.concatenate([result.reciprocal_rank for result in results])
    tokens = [tokens for result in results for tokens in result.chosen_tokens]
    skipped: dict[str, int] = {}
    for result in results:
        for reason, count in result.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
    return {
        "n": len(weighted),
        **{f"rouge{n + 1}": float(rouge[:, n].mean()) for n in range(3)},
        "weighted": float(weighted.mean()),
        **({"weighted_interval": list(bootstrap_interval(weighted, seed=seed))} if intervals else {}),
        "mrr": float(reciprocal.mean()),
        **({"mrr_interval": list(bootstrap_interval(reciprocal, seed=seed))} if intervals else {}),
        "p@1": float((reciprocal == 1).mean()),
        "dist1": distinct_n(tokens, 1),
        "dist2": distinct_n(tokens, 2),
        "skipped": skipped,
    }


def difference(model: Sequence[SystemResult], other: Sequence[SystemResult], seed: int) -> dict[str, list[float]]:
    """95 % intervals of the paired differences, model minus other, over the same examples."""
    return {
        key: list(
            paired_bootstrap_interval(
                np.concatenate([getattr(result, name) for result in model]),
                np.concatenate([getattr(result, name) for result in other]),
                seed=seed,
            )
        )
        for key, name in (("weighted", "weighted"), ("mrr", "reciprocal_rank"))
    }
