"""Evaluation of systems side by side on the same examples (Zhang et al. 2021, section 3.3)."""

import hashlib
import importlib.util
import json
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from mrs_metrics.distinct import distinct_n
from mrs_metrics.language_match import LanguageScores, score_languages
from mrs_metrics.ranking import random_pools, ranking_signature, ranks
from mrs_metrics.rouge import RougeScores, score_examples
from mrs_metrics.signature import with_unit
from mrs_metrics.significance import Units, bootstrap_interval, paired_bootstrap_interval
from mrs_metrics.similarity import score_similarity
from mrs_suggest.common.errors import InputError, MissingExtraError, diverged
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.predictions import MESSAGE, SUGGESTIONS
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.answering import Ranker, System, reply_texts

POOL_SIZE = 100  # 1-of-100 ranking: one reference among 99 random replies (Henderson et al. 2019)


@dataclass(frozen=True)
class Ranking:
    """Where one system ranks the real replies of one language.

    Attributes:
        reciprocal: (n,) in a pool of `pool_size`; precision at 1 is the share of ones.
        reply: (n,) number of each example's reply, equal for equal forms, for the macro-MRR.
        in_set: (n,) whether the reply is in the response set (section 3.3).
        pool_size: replies in a pool; fewer than `POOL_SIZE` only where references and response set have no more.
        pools: hexadecimal hash of the replies and the pools drawn from them; equal for equal pools.
    """

    reciprocal: np.ndarray
    reply: np.ndarray
    in_set: np.ndarray
    pool_size: int
    pools: str


@dataclass(frozen=True)
class SystemResult:
    """Per-example scores of one system in one language.

    Attributes:
        scores: weighted ROUGE of the best suggestions, and their tokens for Dist.
        suggestions: (n) up to three replies each.
        ranking: None if the system or the run ranks nothing.
        languages: suggestions in another language than the message's, and those whose language could be identified;
            None if not requested. `first_languages` are those of the first suggestions alone.
        bleu: corpus BLEU of the best suggestions, 0 to 100; None if not requested, or a tokenizer is missing.
        similarity: (m,) Self-ROUGE of each example with two or more suggestions, how alike they are; None if not
            requested.
        seconds: for all suggestions.
        message: (n,) number of each example's message, 0 to `messages` - 1.
        unit: (n,) what each example is of, by which intervals resample; its message, unless the run names a column.
    """

    system: str
    language: str
    scores: RougeScores
    suggestions: list[list[str]]
    ranking: Ranking | None
    languages: tuple[int, int] | None
    first_languages: tuple[int, int] | None
    bleu: float | None
    similarity: np.ndarray | None
    seconds: float
    message: np.ndarray
    unit: Sequence[Hashable]
    signatures: dict[str, str]

    @property
    def messages(self) -> int:
        """How many different messages were answered."""
        return int(self.message.max(initial=-1)) + 1


@dataclass(frozen=True)
class EvaluationConfig:
    """Measurements in addition to ROUGE and Dist.

    Attributes:
        identifier: identifies languages, for the share of suggestions in a wrong one.
        bleu: corpus BLEU (section 3.3), where the language's tokenizer is installed; sacreBLEU itself must be.
        similarity: Self-ROUGE, how alike the three suggestions are (after Towle and Zhou 2023).
        unit: the column of the data by which intervals resample.
    """

    ranking: bool = True
    identifier: LanguageIdentifier | None = None
    bleu: bool = False
    similarity: bool = False
    unit: str = MESSAGE

    @classmethod
    def available(cls, ranking: bool, language_model: str | Path | None = None, unit: str = MESSAGE) -> Self:
        """All that this machine can measure: a language model and sacreBLEU may be missing.

        Args:
            language_model: fastText's file; None: the installed one, if there is one.
        """
        try:
            identifier = LanguageIdentifier.open(language_model) if language_model else LanguageIdentifier.open()
        except (InputError, MissingExtraError):
            if language_model:
                raise
            identifier = None
        return cls(ranking, identifier, importlib.util.find_spec("sacrebleu") is not None, True, unit)


def evaluate_system(
    system: System,
    language: str,
    messages: Sequence[str],
    references: Sequence[str],
    response_set: Sequence[str],
    seed: int,
    config: EvaluationConfig = EvaluationConfig(),
    units: Sequence[Hashable] | None = None,
) -> SystemResult:
    """Score the three suggestions of a system, and if it ranks, its ranking of the reference in a random pool.

    Args:
        messages, references: n examples; a repeated message is answered once.
        response_set: fills the pools where there are fewer than `POOL_SIZE` different references. Pools are drawn from
            the references, so that the others are as new to the system as the one to find; each normalised form once.
        seed: of the pools; equal seeds give every system the same pools.
        units: (n,) the column `config.unit` of the data; None: the messages.
    """
    numbers = {message: number for number, message in enumerate(dict.fromkeys(messages))}
    started = time.perf_counter()
    found = system.suggest(list(numbers), language, SUGGESTIONS)
    seconds = time.perf_counter() - started
    answers = reply_texts(found)
    number = np.array([numbers[message] for message in messages], np.int64)
    suggestions = [answers[place] for place in number]
    scores = score_examples(suggestions, references, language=language)
    signatures = {"mrs_rouge": scores.signature}
    ranking = None
    if config.ranking and isinstance(system, Ranker):
        ranking = _rank(system, messages, references, response_set, seed)
        signatures["response_ranking"] = ranking_signature(ranking.pool_size, "references", seed, language=language)
    languages = first_languages = bleu = None
    if config.identifier:
        verdicts = score_languages(answers, language, config.identifier.identify, identifier=config.identifier.name)
        languages = wrong_and_decided(verdicts)
        first_languages = wrong_and_decided(verdicts, first=True)
        signatures["wrong_language"] = verdicts.signature
    if config.bleu:
        bleu, signature = _bleu(suggestions, references, language)
        signatures |= {"reply_bleu": signature} if signature else {}
    similarity = None
    if config.similarity:
        alike = score_similarity(answers, language)  # of each message once
        by_message = np.full(len(answers), np.nan)
        by_message[alike.kept] = alike.weighted
        similarity = by_message[number]
        similarity = similarity[~np.isnan(similarity)]
        signatures["self_rouge"] = alike.signature
    measured = scores, suggestions, ranking, languages, first_languages, bleu, similarity, seconds
    signatures = {name: with_unit(one, config.unit) for name, one in signatures.items()}
    return SystemResult(system.name, language, *measured, number, messages if units is None else units, signatures)


def reply_pools(
    references: Sequence[str], response_set: Sequence[str], seed: int
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The 1-of-100 pools that systems rank in.

    Args:
        references: n real replies. Pools are drawn from them, each normalised form once.
        response_set: fills up where there are fewer than `POOL_SIZE` different references.

    Returns:
        The candidates; (n,) each reference's number among them; (n, pool) numbers of the candidates in its pool, the
        reference in column 0.
    """
    candidates: dict[str, str] = {}
    for reply in references:
        candidates.setdefault(normalise_reply(reply), reply)
    for number in np.random.default_rng(seed).permutation(len(response_set)):
        if len(candidates) >= POOL_SIZE:
            break
        candidates.setdefault(normalise_reply(response_set[number]), response_set[number])
    position = {form: number for number, form in enumerate(candidates)}
    targets = np.array([position[normalise_reply(reference)] for reference in references])
    return list(candidates.values()), targets, random_pools(targets, len(candidates), size=POOL_SIZE, seed=seed)


def _rank(
    system: Ranker, messages: Sequence[str], references: Sequence[str], response_set: Sequence[str], seed: int
) -> Ranking:
    candidates, targets, pools = reply_pools(references, response_set, seed)
    scores = system.score_pools(messages, candidates, pools)
    if np.isnan(scores).any():
        raise diverged("the scores of replies are not numbers")
    found = 1.0 / ranks(scores)
    known = {normalise_reply(reply) for reply in response_set}
    in_set = np.array([normalise_reply(reference) in known for reference in references])
    digest = hashlib.sha256(json.dumps(candidates).encode() + pools.astype("<i8").tobytes())
    return Ranking(found, targets, in_set, pools.shape[1], digest.hexdigest()[:16])


def _bleu(suggestions: list[list[str]], references: Sequence[str], language: str) -> tuple[float | None, str]:
    """Corpus BLEU; None if the tokenizer of the language is not installed: a run must not fail for that."""
    from mrs_metrics.bleu import aggregate, score_suggestions

    try:
        scores = score_suggestions(suggestions, references, language, chosen="best_rouge")
    except ImportError:
        return None, ""
    return aggregate(scores)["bleu"], scores.signature


def summary(results: Sequence[SystemResult], seed: int, intervals: bool = True) -> dict[str, Any]:
    """Figures of one system over one language, or pooled over the examples of several.

    Returns:
        ROUGE, its ceiling and Dist; where they were measured `mrr`, `p@1`, `macro_mrr`, `mrr_in_set` (over the examples
        whose reply is in the response set, with `in_set`, their share), `wrong_language` (a share of the suggestions
        whose language can be identified), `wrong_language_first` (that of the first suggestions), `bleu` (of one
        language alone, 0 to 100), `self_rouge` (of the suggestions of a message; None where none has two).
    """
    weighted = np.concatenate([result.scores.weighted for result in results])
    rouge = np.concatenate([result.scores.rouge for result in results])
    tokens = [tokens for result in results for tokens in result.scores.chosen_tokens]
    skipped = {reason: sum(result.scores.skipped[reason] for result in results) for reason in results[0].scores.skipped}
    return {
        "n": len(weighted),
        **{f"rouge{n + 1}": float(rouge[:, n].mean()) for n in range(3)},
        "weighted": _mean(weighted),
        **(_interval("weighted", weighted, seed, units_of(results)) if intervals else {}),
        "ceiling": _mean(np.concatenate([result.scores.weighted_ceiling for result in results])),
        **_ranking_figures(results, seed, intervals),
        "dist1": distinct_n(tokens, 1),
        "dist2": distinct_n(tokens, 2),
        **_other_figures(results),
        "skipped": skipped,
    }


def _ranking_figures(results: Sequence[SystemResult], seed: int, intervals: bool) -> dict[str, Any]:
    found = [result.ranking for result in results if result.ranking is not None]
    if len(found) < len(results):
        return {}
    reciprocal = np.concatenate([ranking.reciprocal for ranking in found])
    in_set = np.concatenate([ranking.in_set for ranking in found])
    offsets = np.cumsum([0, *(ranking.reply.max() + 1 for ranking in found[:-1])])
    reply = np.concatenate([ranking.reply + offset for ranking, offset in zip(found, offsets, strict=True)])
    _, groups = np.unique(reply, return_inverse=True)
    return {
        "mrr": float(reciprocal.mean()),
        **(_interval("mrr", reciprocal, seed, units_of(results, False)) if intervals else {}),
        "p@1": float((reciprocal == 1).mean()),
        "macro_mrr": float((np.bincount(groups, reciprocal) / np.bincount(groups)).mean()),
        "mrr_in_set": float(reciprocal[in_set].mean()) if in_set.any() else None,
        "in_set": float(in_set.mean()),
    }


def _interval(name: str, scores: np.ndarray, seed: int, units: Units) -> dict[str, list[float] | None]:
    return {f"{name}_interval": bootstrap_interval(scores, seed=seed, units=units).ends}


def _other_figures(results: Sequence[SystemResult]) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    for name, told in (
        ("wrong_language", [result.languages for result in results if result.languages is not None]),
        ("wrong_language_first", [one.first_languages for one in results if one.first_languages is not None]),
    ):
        if len(told) == len(results):
            wrong, decided = sum(wrong for wrong, _ in told), sum(decided for _, decided in told)
            figures[name] = wrong / decided if decided else None
    if len(results) == 1 and results[0].bleu is not None:  # the tokenizers of several languages do not mix
        figures["bleu"] = results[0].bleu
    alike = [result.similarity for result in results if result.similarity is not None]
    if len(alike) == len(results):
        every = np.concatenate(alike)
        figures["self_rouge"] = float(every.mean()) if len(every) else None
    return figures


def milliseconds(results: Sequence[SystemResult]) -> float:
    """Mean time to answer a message, in the batches of the evaluation; it differs from run to run."""
    return 1000 * sum(result.seconds for result in results) / max(sum(result.messages for result in results), 1)


def units_of(results: Sequence[SystemResult], kept: bool = True) -> list[Hashable]:
    """The unit of each example, by which intervals resample; of those that ROUGE keeps, or of all."""
    return [
        (one.language, one.unit[place])
        for one in results
        for place in (one.scores.kept if kept else range(len(one.unit)))
    ]


def _mean(column: np.ndarray) -> float:
    """The mean, within the range of the scores, which rounding can leave: a perfect system reaches the ceiling."""
    return float(column.mean().clip(column.min(), column.max()))


def difference(
    model: Sequence[SystemResult], other: Sequence[SystemResult], seed: int
) -> dict[str, list[float] | None]:
    """95 % intervals of the paired differences, model minus other, over the same examples; None if they are equal."""
    pairs = {"weighted": ([result.scores.weighted for result in model], [result.scores.weighted for result in other])}
    if all(result.ranking is not None for result in (*model, *other)):
        pairs["mrr"] = (
            [result.ranking.reciprocal for result in model if result.ranking],
            [result.ranking.reciprocal for result in other if result.ranking],
        )
    units = {"weighted": units_of(model), "mrr": units_of(model, False)}
    return {
        key: paired_bootstrap_interval(np.concatenate(mine), np.concatenate(theirs), seed=seed, units=units[key]).ends
        for key, (mine, theirs) in pairs.items()
    }


def wrong_and_decided(scores: LanguageScores, first: bool = False) -> tuple[int, int]:
    """How many suggestions, or first ones alone, are in a wrong language, and how many were identified."""
    counted = np.diff(scores.example, prepend=-1) > 0 if first else np.ones(len(scores.wrong), dtype=np.bool_)
    decided = counted & ~(scores.undecided | scores.too_short)
    return int((scores.wrong & counted).sum()), int(decided.sum())
