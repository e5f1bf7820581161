"""The parts of a retriever: its dual encoder, and the response indexes, rankers, language detector and guard that are
derived from it after training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from datasets import Dataset
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from transformers import TrainingArguments

from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData, ResponseSet, sample_rows
from mrs_suggest.models.retrieval.context import ContextReader
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.suggest.guard.guard_space import GuardSpace
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.suggest.index.cells import Cells
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.language_detector import LanguageDetector
from mrs_suggest.suggest.pipeline_config import save_config
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.rankers import save_rankers
from mrs_suggest.suggest.ranking.second_stage import SecondStage
from mrs_suggest.suggest.reply_tags import ReplyTags
from mrs_suggest.training.reply.data import RunData
from mrs_suggest.training.reply.guarding import fit_guard
from mrs_suggest.training.retrieval.alpha_sweep import AlphaSweep, sweep_alpha
from mrs_suggest.training.retrieval.generator_tuning import add_generator
from mrs_suggest.training.retrieval.options import RetrievalArguments, alpha_of, ranker_options
from mrs_suggest.training.retrieval.ranker_generator import RankerGenerator
from mrs_suggest.training.retrieval.ranker_tuning import MOST_REMEMBERED, add_trigger, build_rankers

MOST_PAIRS = 10_000  # of a language, for the detector; ours: more change nothing that short texts have


@dataclass(frozen=True)
class RetrievalParts:
    """A dual encoder and what is derived from it after training.

    Attributes:
        indexes: language -> its response set, embedded.
        sweep: how the weight of the bonus was found; None if it was given.
        rankers: language -> its ranker; empty if none was asked for.
        detector: of the languages; None if there is only one.
        generator: that of the rankers; None if none was asked for.
        guard: what the trained encoder makes of sensitive messages.
        tags: language -> those of the replies of its index.
        context: reads messages with the turns before them; None: the model reads messages alone.
    """

    model: SentenceTransformer
    indexes: Mapping[str, ResponseIndex] = field(default_factory=dict)
    sweep: AlphaSweep | None = None
    rankers: Mapping[str, LanguageRanker] = field(default_factory=dict)
    detector: LanguageDetector | None = None
    generator: RankerGenerator | None = None
    guard: GuardSpace | None = None
    tags: Mapping[str, ReplyTags] = field(default_factory=dict)
    context: ContextReader | None = None

    def encode(self, messages: list[str]) -> NDArray[np.float32]:
        """(n, d) vectors of messages."""
        return encode_messages(self.model, messages).numpy()


def build_index(model: SentenceTransformer, part: LanguageData, alpha: float = 0.0) -> ResponseIndex:
    """Embed the response set of a language."""
    responses = part.responses
    return ResponseIndex.build(
        lambda texts: encode_replies(model, texts).numpy(),
        responses.replies,
        responses.clusters,
        responses.log_probs,
        alpha,
    )


def derived_parts(
    trained: RetrievalParts, options: RetrievalArguments, training: TrainingArguments, data: RunData, plain: RunData
) -> RetrievalParts:
    """The parts of a retriever whose training has ended; `plain`: the data without turns in the messages."""
    model = trained.model
    alpha, sweep = alpha_of(options.alpha), None
    if alpha is None:
        sweep = sweep_alpha(trained.encode, [(part, build_index(model, part)) for part in data.validation], 0)
        alpha = sweep.alpha
    tested, own = data.test, dict[str, int]()
    if options.memory_candidates:
        tested, own = with_memory_candidates(data.test, data.by_language())
    indexes = {part.language: build_index(model, part, alpha) for part in tested}
    tags = {part.language: _tags(part.responses, indexes[part.language]) for part in data.test if part.responses.tags}
    parts = replace(trained, indexes=indexes, sweep=sweep, tags=tags)
    if options.ranker:
        parts = _with_rankers(parts, options, training, data, own)
    own_messages = {part.language: part.validation["message"][:] for part in plain.validation}
    guard = fit_guard(parts.encode, GuardData(), list(parts.indexes), own_messages)
    return replace(parts, detector=train_detector(plain.test) if data.test[1:] else None, guard=guard)


def _with_rankers(
    parts: RetrievalParts,
    options: RetrievalArguments,
    training: TrainingArguments,
    data: RunData,
    own: Mapping[str, int],
) -> RetrievalParts:
    rankers, asked = build_rankers(
        parts.encode, parts.indexes, data.by_language(), data.validation, ranker_options(options), training.seed,
        own, parts.tags,
    )  # fmt: skip
    generator = None
    if options.generator is not None:
        generator = RankerGenerator.open(options.generator, training.device)
        encode, written = (lambda texts: encode_replies(parts.model, texts).numpy()), options.generated or 0
        stages = {
            language: SecondStage(generator, encode, language, written, generator.facts)
            for language in generator.languages
        }
        rankers = add_generator(rankers, asked, stages) if rankers else rankers
    rankers = add_trigger(rankers, asked, training.seed) if rankers else rankers
    return replace(parts, rankers=rankers, generator=generator)


def _tags(responses: ResponseSet, index: ResponseIndex) -> ReplyTags:
    of_replies = dict(zip(responses.replies, responses.tags or [], strict=True))
    return ReplyTags.of([[of_replies[reply]] if reply in of_replies else [] for reply in index.replies])


def train_detector(parts: Sequence[LanguageData]) -> LanguageDetector:
    """Learn to distinguish two or more languages by the messages and replies of their training splits."""
    pairs = {part.language: sample_rows(part.train, MOST_PAIRS, EVALUATION_SEED) for part in parts}
    return LanguageDetector.train(
        {language: [*rows["message"][:], *rows["reply"][:]] for language, rows in pairs.items()}
    )


def with_memory_candidates(
    parts: Sequence[LanguageData], pairs: Mapping[str, Sequence[Dataset]]
) -> tuple[list[LanguageData], dict[str, int]]:
    """The languages with longer response sets, and how many replies of each are the set's own.

    A response set of frequent replies (`--min-reply-count`, or that of MRS) leaves most training replies out, and the
    memory then forgets their messages. Here they follow the set's own, the most frequent first, without a
    log-probability; none twice by its normalised form. A set that has every training reply stays as it is.

    Args:
        pairs: language -> data sets of pairs that the model was trained on.
    """
    found, own = [], {}
    for part in parts:
        responses = part.responses
        known = {normalise_reply(reply) for reply in responses.replies if reply.strip()}
        texts: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for source in pairs.get(part.language, ()):
            for batch in source.select_columns(["reply"]).iter(batch_size=10_000):
                for reply in batch["reply"]:
                    form = normalise_reply(reply)
                    if form not in known and not is_blank(reply):
                        texts.setdefault(form, reply)
                        counts[form] += 1
        more = [form for form, _ in counts.most_common(max(0, MOST_REMEMBERED - len(known)))]
        if more:
            own[part.language] = len(known)
            longer = ResponseSet(
                [*responses.replies, *(texts[form] for form in more)],
                [*responses.clusters, *more],
                [*responses.log_probs, *([None] * len(more))],
            )
            part = replace(part, responses=longer)
        found.append(part)
    return found, own


def response_sets(
    indexes: Mapping[str, ResponseIndex], rankers: Mapping[str, LanguageRanker]
) -> dict[str, ResponseIndex]:
    """The indexes without the replies that only the memory has: what direct scores choose from, as in the paper."""
    found = dict(indexes)
    for language, ranker in rankers.items():
        if (own := ranker.own) is not None:
            index = indexes[language]
            found[language] = replace(
                index,
                replies=index.replies[:own],
                vectors=index.vectors[:own],
                cells=Cells.from_arrays({}, index.vectors[:own]),
                clusters=index.clusters[:own],
                log_probs=index.log_probs[:own],
            )
    return found


def save(parts: RetrievalParts, folder: Path) -> None:
    """Write everything that is needed to load the trained model."""
    parts.model.save_pretrained(str(folder), create_model_card=False, safe_serialization=True)
    reader = parts.context
    save_config(folder, **({"context": {"turns": reader.turns, "tokens": reader.tokens}} if reader else {}))
    for language, index in parts.indexes.items():
        index.save(folder / ResponseIndexes.FOLDER / language)
        if language in parts.tags:
            parts.tags[language].save(folder / ResponseIndexes.FOLDER / language)
    if parts.rankers:
        save_rankers(parts.rankers, folder)
        if parts.generator is not None:
            parts.generator.copy_to(folder)
    if parts.detector:
        parts.detector.save(folder)
    if parts.guard:
        parts.guard.save(folder)
