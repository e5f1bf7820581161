"""What is derived from a trained retriever: its response indexes, rankers, language detector and guard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.training.reply.data import RunData
from mrs_suggest.training.reply.guard.guard_fitting import fit_guard
from mrs_suggest.training.reply.guard.language_detection import train_detector
from mrs_suggest.training.reply.guard.trigger_fitting import add_trigger, coverage
from mrs_suggest.training.retrieval.evaluation import RetrievalParts, build_index, sweep_alpha
from mrs_suggest.training.retrieval.generator_tuning import generator_step
from mrs_suggest.training.retrieval.memory_candidates import with_memory_candidates
from mrs_suggest.training.retrieval.options import RetrievalArguments, alpha_of
from mrs_suggest.training.retrieval.ranker_generator import RankerGenerator
from mrs_suggest.training.retrieval.ranker_tuning import TUNED_ON, Asked, EncodeMessages, ask, build_rankers

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import TrainingArguments


def derived_parts(
    trained: RetrievalParts, options: RetrievalArguments, training: TrainingArguments, data: RunData
) -> RetrievalParts:
    """The parts of a retriever whose training has ended."""
    model = trained.model
    alpha, sweep = alpha_of(options.alpha), None
    if alpha is None:
        sweep = sweep_alpha(model, data.validation, 0)
        alpha = sweep.alpha
    tested, own = with_memory_candidates(data.test, data.by_language() if options.memory_candidates else {})
    indexes = {part.language: build_index(model, part, alpha) for part in tested}
    generator = None
    if options.generator is not None:
        generator = RankerGenerator.open(options.generator, training.device)
    rankers = _rankers(model, options, data, training.seed, indexes, own, generator)
    own_messages = {part.language: part.validation["message"][:] for part in data.validation}
    guard = fit_guard(_message_encoder(model), GuardData(), list(indexes), own_messages)
    return RetrievalParts(model, indexes, sweep, rankers, train_detector(data.test), generator, guard)


def _rankers(
    model: SentenceTransformer,
    arguments: RetrievalArguments,
    data: RunData,
    seed: int,
    indexes: Mapping[str, ResponseIndex],
    own: Mapping[str, int],
    generator: RankerGenerator | None,
) -> Mapping[str, LanguageRanker]:
    options = arguments.ranker_options()
    if options is None:
        return {}
    add_generator = generator_step(
        generator, lambda texts: encode_replies(model, texts).numpy(), arguments.generated or 0
    )

    def finish(rankers: Mapping[str, LanguageRanker], asked: Mapping[str, Asked]) -> dict[str, LanguageRanker]:
        return add_trigger(add_generator(rankers, asked) if add_generator else rankers, asked, seed)

    return build_rankers(
        _message_encoder(model),
        indexes,
        data.by_language(),
        data.validation,
        options,
        seed,
        finish,
        own,
    )


def _message_encoder(model: SentenceTransformer) -> EncodeMessages:
    return lambda texts: encode_messages(model, texts).numpy()


def coverage_on_test(parts: RetrievalParts, data: RunData) -> list[tuple[float, float, float]]:
    """The risk/coverage curve of the rankers' trigger on the test split; empty if they have none."""
    encode, rankers = _message_encoder(parts.model), parts.rankers
    asked = {
        part.language: ask(encode, sample_rows(part.test, TUNED_ON, EVALUATION_SEED), part.language)
        for part in data.test
        if part.language in rankers
    }
    return coverage(rankers, asked)
