"""Comparison of a trained model with the baselines on the test split of each language."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tqdm import tqdm

from mrs_metrics.significance import EXACT, STUDENTISED
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.evaluation.baselines import MAX_TFIDF_PAIRS, MostFrequentReplies, RandomReplies, TfidfReplies
from mrs_suggest.evaluation.language_data import LanguageData, sample_rows
from mrs_suggest.evaluation.results import (
    EvaluationConfig,
    SystemResult,
    difference,
    evaluate_system,
    milliseconds,
    summary,
)
from mrs_suggest.suggest.answering import MODEL, System

POOLED = "pooled"
BASELINE_EXAMPLES = 1_000  # per language, for the baselines on validation
MakeSystem = Callable[[LanguageData], System]


@dataclass(frozen=True)
class Comparison:
    """The evaluation of a run's model.

    Attributes:
        figures: `systems` -> name -> language or `pooled` -> figures, `differences` -> other system -> scope ->
            intervals of the model's lead, `interval_method`, `signatures` -> language -> metric -> signature, and where
            the run ranks `pool_size` and `pools`, language -> hash. Equal for equal weights.
        suggestions: the model's, by language, in the order of the test split.
        milliseconds: to answer a message, by system; varies from run to run.
    """

    figures: dict[str, Any]
    suggestions: dict[str, list[list[str]]]
    milliseconds: dict[str, float]


def compare_on_test(
    make_systems: list[MakeSystem], parts: list[LanguageData], seed: int, config: EvaluationConfig
) -> Comparison:
    """Evaluate systems and the baselines on the test split.

    Args:
        make_systems: each makes a system for a language; the first one is the trained model, called `MODEL`.
        seed: of pools, baselines and intervals; in a run always `EVALUATION_SEED`, whatever seed it trains with.
    """
    results: dict[str, list[SystemResult]] = {}
    for part in tqdm(parts, desc="test", unit=" languages", disable=len(parts) == 1):
        for system in (*(make(part) for make in make_systems), *baselines(part, seed)):
            results.setdefault(system.name, []).append(evaluate_part(system, part, part.test, seed, config))
    own = results[MODEL]
    scopes: dict[str, slice] = {POOLED: slice(None)} | {part.language: slice(i, i + 1) for i, part in enumerate(parts)}
    figures: dict[str, Any] = {
        "systems": {
            name: {scope: summary(rows[where], seed) for scope, where in scopes.items()}
            for name, rows in results.items()
        },
        "differences": {
            name: {scope: difference(own[where], rows[where], seed) for scope, where in scopes.items()}
            for name, rows in results.items()
            if name != MODEL
        },
        "interval_method": f"{STUDENTISED}, by {config.unit}; {EXACT} if all scores are 0 or 1",
        "signatures": {result.language: result.signatures for result in own},
    }
    if any(result.ranking for result in own):
        figures["pools"] = {result.language: result.ranking.pools for result in own if result.ranking}
        figures["pool_size"] = min(result.ranking.pool_size for result in own if result.ranking)
    suggestions = {result.language: result.suggestions for result in own}
    return Comparison(figures, suggestions, {name: round(milliseconds(rows), 3) for name, rows in results.items()})


class ValidationLog:
    """Validation figures while a model trains, next to those of the baselines, which are evaluated once.

    Attributes:
        by_language: the model's figures in each language, of the last evaluation.
    """

    def __init__(self, parts: list[LanguageData], seed: int, ranking: bool) -> None:
        self._parts, self._seed = parts, seed
        self._config = EvaluationConfig(ranking)
        self._baselines: dict[str, dict[str, Any]] = {}
        self.by_language: dict[str, dict[str, Any]] = {}

    def evaluate(self, make_system: MakeSystem) -> tuple[dict[str, Any], list[str]]:
        """The model's figures pooled over the languages, and one line of text for each system."""
        own = self._results([[make_system(part)] for part in self._parts], self._parts)[MODEL]
        self.by_language = {result.language: summary([result], self._seed, intervals=False) for result in own}
        figures = summary(own, self._seed, intervals=False)
        if not self._baselines:  # on a sample of long splits: TF-IDF takes 10 ms per example, and other ranks wait
            few = [
                replace(part, validation=sample_rows(part.validation, BASELINE_EXAMPLES, self._seed))
                for part in self._parts
            ]
            found = self._results([list(baselines(part, self._seed)) for part in few], few)
            self._baselines = {name: summary(rows, self._seed, intervals=False) for name, rows in found.items()}
        return figures, [
            f"{name} ROUGE {row['weighted']:.4f}" + (f" MRR {row['mrr']:.3f}" if "mrr" in row else "")
            for name, row in {MODEL: figures, **self._baselines}.items()
        ]

    def _results(self, systems: list[list[System]], parts: list[LanguageData]) -> dict[str, list[SystemResult]]:
        results: dict[str, list[SystemResult]] = {}
        for part, group in zip(parts, systems, strict=True):
            for system in group:
                found = evaluate_part(system, part, part.validation, self._seed, self._config)
                results.setdefault(system.name, []).append(found)
        return results


def baselines(part: LanguageData, seed: int) -> Iterator[System]:
    """The three baselines; they use the language's own training pairs, whatever the model was trained on."""
    yield RandomReplies(part.responses.replies, seed)
    given = (reply for batch in part.train.iter(batch_size=100_000) for reply in batch["reply"])
    yield MostFrequentReplies(given, part.responses.replies, seed)
    nearest = sample_rows(part.train, MAX_TFIDF_PAIRS, seed)
    yield TfidfReplies(nearest["message"][:], nearest["reply"][:], get_tokenizer(part.language), seed)


def evaluate_part(
    system: System, part: LanguageData, examples: Any, seed: int, config: EvaluationConfig
) -> SystemResult:
    messages, references, units = (examples[column][:] for column in ("message", "reply", config.unit))
    return evaluate_system(system, part.language, messages, references, part.responses.replies, seed, config, units)


def grouped_signatures(figures: dict[str, Any]) -> list[str]:
    """Every signature of the figures once, with all languages that share it."""
    grouped: dict[tuple[str, str], list[str]] = {}
    for language, texts in figures["signatures"].items():
        for text in texts.values():
            before, _, after = text.partition(f"|lang:{language}")
            grouped.setdefault((before, after), []).append(language)
    return sorted(f"{before}|lang:{','.join(codes)}{after}" for (before, after), codes in grouped.items())
