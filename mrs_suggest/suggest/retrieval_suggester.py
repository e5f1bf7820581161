"""Suggestions of a retriever, with or without a ranker, to serve and to evaluate."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import ArgumentError, InputError, first_line, missing_extra
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.spans import span
from mrs_suggest.common.suggest_arguments import answer_all, require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.exports import ONNX
from mrs_suggest.models.model_folder import panics_told, tokenizer_probed
from mrs_suggest.models.retrieval.context import ContextReader
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.message_encoder import DOCUMENT, MessageEncoder
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATOR
from mrs_suggest.suggest.answering import MODEL, ServedModel, Suggestion, Tags
from mrs_suggest.suggest.index.response_index import Array, Encode, ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.own_ranker import MIN_SCORE, OwnRanker, OwnRankers
from mrs_suggest.suggest.ranking.rankers import Rankers
from mrs_suggest.suggest.ranking.reranking import rerank, rerank_pool
from mrs_suggest.suggest.ranking.trigger import Trigger, as_features
from mrs_suggest.suggest.remembering import remembering
from mrs_suggest.suggest.reply_tags import TagsByLanguage
from mrs_suggest.suggest.short_messages import all_kinds, fitting_kinds, kinds_answered

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

CHUNK = 256  # messages scored at a time, which bounds the memory for (messages, pool, dimension)
MOST_TAGGED = 16  # combinations of tags whose parts of the index are kept; ours: a product uses a few
# The share of the kinds of short messages that a response set for conversations answers; ours: embedded sets reach .92.
LEAST_KINDS = 0.5


class RetrievalSuggester(ServedModel):
    """Answers from the response set of the message's language, ranked by that language's ranker if there is one.

    Args:
        encode: messages -> (n, dimension) vectors.
        indexes: language -> its response index.
        tags: language -> the tags of its replies; default: no tags.
        rankers: language -> the ranker over its index; with one, a score is the probability among the best candidates.
        own: language -> the ranker of a user's own replies, which comes first; with one, a score is the share
            of foreign messages whose best reply fits worse.
    """

    def __init__(
        self,
        encode: Encode,
        indexes: Mapping[str, ResponseIndex],
        tags: TagsByLanguage | None = None,
        rankers: Mapping[str, LanguageRanker] | None = None,
        own: Mapping[str, OwnRanker] | None = None,
    ) -> None:
        self._encode, self.indexes = encode, indexes
        self.tags = TagsByLanguage(indexes=indexes) if tags is None else tags
        self.rankers = {} if rankers is None else rankers
        self.own = {} if own is None else own
        self._parts: dict[tuple[Tags, Tags], dict[tuple[str, str | None], RetrievalSuggester | None]] = {}

    @classmethod
    def load_from(cls, path: Path, name: str) -> RetrievalSuggester:
        """Load the folder of a retriever with its `response_index/`; `name` is what the user passed.

        Raises:
            InputError: its files are missing, damaged or do not match each other.
        """
        if not (path / "modules.json").is_file() and not (path / ADAPTER_RECORD).is_file():
            raise InputError(
                f"{name}: no trained model (no modules.json or {GENERATOR}); pass the folder that a run wrote."
            )
        place, indexes = path, ResponseIndexes(path)
        if not indexes and (path / ADAPTER_RECORD).is_file():  # an adapter's folder inside the folder of its run
            place, indexes = path.parent, ResponseIndexes(path.parent)
        if not indexes:
            raise InputError(f"{name}: no {ResponseIndexes.FOLDER}/ folder, so there is nothing to suggest.")
        try:
            with tokenizer_probed(path, path), np.errstate(all="ignore"):
                raw = _message_encoder(path)
                context = ContextReader.load(place)
                vectors = raw(["?"])  # a damaged model fails here, not at the first message
        except InputError:
            raise
        except Exception as error:  # each library raises its own errors
            if (missing := missing_extra(error, f"the message encoder of {name}", "torch")) is not None:
                raise missing from error
            raise InputError(
                f"{name}: cannot load the message encoder ({first_line(error)}); {again(path)}."
            ) from error
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise InputError(f"{name}: the message encoder gives no finite vectors; {again(path)}.")
        indexes.width = vectors.shape[1]

        def encode(texts: list[str]) -> Array:
            with panics_told(path, path):
                return raw(texts)

        tags = TagsByLanguage(place / ResponseIndexes.FOLDER, indexes)
        model = cls(remembering(encode), indexes, tags, Rankers(path, indexes), OwnRankers(place, indexes))
        model.context = context
        return model

    def with_encoder(self, encode: Encode) -> RetrievalSuggester:
        """The same suggester with another form of its message encoder."""
        return RetrievalSuggester(encode, self.indexes, self.tags, self.rankers, self.own)

    @property
    def languages(self) -> list[str]:
        return list(self.indexes)

    def message_vectors(self, messages: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(list(messages))

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        self.require_language(language)
        texts, count = require_messages(messages), require_count(k)
        ranker = self.own.get(language) or self.rankers.get(language)
        with span("rank"):
            return answer_all(texts, lambda asked: _suggest(self._encode, self.indexes[language], ranker, asked, count))

    @property
    def trigger(self) -> Trigger | None:
        return next((ranker.settings.trigger for ranker in self.rankers.values()), None)

    def used(self, messages: Sequence[str], language: str) -> list[float] | None:
        """As `ServedModel.used`, estimated without generated replies."""
        if language not in self.rankers or (trigger := self.rankers[language].settings.trigger) is None:
            return None
        ranker, vectors = self.rankers[language], self._encode(list(messages))
        features = [ranker.certainty(*row) for row in zip(messages, vectors, strict=True)]
        return list(map(float, trigger.probability(as_features(features))))

    def min_score(self, language: str) -> float | None:
        return MIN_SCORE if language in self.own else None

    @property
    def tag_names(self) -> Mapping[str, list[str]]:
        return self.tags.names

    def tags_of(self, language: str) -> dict[str, list[str]]:
        rows = zip(self.indexes[language].replies, self.tags[language].by_reply(), strict=True)
        return {reply: tags for reply, tags in rows if tags}

    def parse_tags(self, allow: Collection[str], deny: Collection[str]) -> tuple[Tags, Tags]:
        known = sorted({tag for tags in self.tag_names.values() for tag in tags})
        have = f"the tags are {' '.join(known)}" if known else "the replies of this model have no tags"
        for name, tags in (("allow", allow), ("deny", deny)):
            if isinstance(tags, (str, bytes)) or not isinstance(tags, Iterable):
                raise ArgumentError(name, "expected a list of tags; pass [tag].", tags)
            for tag in tags:
                if tag not in known:
                    raise ArgumentError(name, f"no reply has this tag; {have}.", str(tag))
        return frozenset(allow), frozenset(deny)

    def part(self, language: str, allow: Tags, deny: Tags, kind: str | None) -> RetrievalSuggester | None:
        """The model with only those replies that may be suggested; None if no reply remains.

        A short message gets the replies of the set that fit its kind. If no reply fits, a set made for conversations
        (it answers at least `LEAST_KINDS` of the kinds) says nothing; another set, such as your own five replies, is
        ranked as for any message. Parts are kept for the last `MOST_TAGGED` combinations of tags.
        """
        parts = self._parts.pop((allow, deny), {})
        self._parts[allow, deny] = parts  # the last used stands last
        while len(self._parts) > MOST_TAGGED:
            self._parts.pop(next(iter(self._parts)), None)
        if (language, kind) not in parts:
            size = len(self.indexes[language].replies)
            rows = self.tags[language].chosen(allow, deny) if allow or deny else np.arange(size)
            if (language, None) not in parts:
                parts[language, None] = self if len(rows) == size else self.restricted(language, rows)
            if kind is not None:
                parts |= self._by_kind(language, rows, parts[language, None])
        return parts[language, kind]

    def _by_kind(
        self, language: str, rows: NDArray[np.int64], whole: RetrievalSuggester | None
    ) -> dict[tuple[str, str | None], RetrievalSuggester | None]:
        replies, kinds = self.indexes[language].replies, kinds_answered(language)
        fitting = {kind: list[int]() for kind in kinds}
        for row in rows:
            for kind in fitting_kinds(replies[row], language):
                fitting[kind].append(int(row))
        found = {kind: self.restricted(language, np.array(some), True) for kind, some in fitting.items() if some}
        rest = None if len(found) >= LEAST_KINDS * len(kinds) else whole
        return {(language, kind): found.get(kind, rest) for kind in all_kinds()}

    def restricted(self, language: str, rows: NDArray[np.int64], fitting: bool = False) -> RetrievalSuggester | None:
        """The same model with the replies `rows` of one language, and no other language; None without replies.

        The whole memory of a ranker still counts for these replies.

        Args:
            fitting: as for `OwnRanker.part`.
        """
        if not len(rows):
            return None
        if language in self.own:
            own = self.own[language].part(rows, fitting)
            return RetrievalSuggester(self._encode, {language: own.index}, own={language: own})
        if language not in self.rankers:
            return RetrievalSuggester(self._encode, {language: self.indexes[language].part(rows)})
        ranker = self.rankers[language].part(rows)
        return RetrievalSuggester(self._encode, {language: ranker.index}, rankers={language: ranker})


def _suggest(
    encode: Encode, index: ResponseIndex, ranker: LanguageRanker | OwnRanker | None, messages: list[str], k: int
) -> list[list[Suggestion]]:
    if ranker is None:
        return index.suggest(encode(messages), k)
    answers = []
    for some in in_batches(messages, CHUNK):
        vectors = encode(some)
        if isinstance(ranker, LanguageRanker) and ranker.second is not None:
            answers += rerank(ranker, some, vectors, k)
        else:
            answers += [ranker.suggest(message, vector, k) for message, vector in zip(some, vectors, strict=True)]
    return answers


class Retriever:
    """A trained dual encoder as a system to evaluate: it answers from response indexes, and ranks.

    Args:
        indexes: language -> its response index.
        ranker: of the language that is evaluated; None: the index alone answers.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        indexes: Mapping[str, ResponseIndex],
        name: str = MODEL,
        ranker: LanguageRanker | None = None,
    ) -> None:
        self.name, self._model, self._indexes, self._ranker = name, model, indexes, ranker

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        def encode(some: list[str]) -> Array:
            return encode_messages(self._model, some).numpy()

        return _suggest(encode, self._indexes[language], self._ranker, list(messages), k)

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        queries = encode_messages(self._model, list(messages)).numpy()
        replies = encode_replies(self._model, list(candidates)).numpy()
        scores = np.empty(pools.shape, np.float32)
        if self._ranker is None:
            for begin in range(0, len(pools), CHUNK):
                some = slice(begin, begin + CHUNK)
                scores[some] = (replies[pools[some]] @ queries[some, :, None])[..., 0]
            return scores
        ranker, known = self._ranker, self._ranker.known(candidates)
        for number, (message, vector, rows) in enumerate(zip(messages, queries, pools, strict=True)):
            found = ranker.score_pool(message, vector, known, rows, replies[rows] @ vector)
            if ranker.second is not None:
                found = rerank_pool(ranker, message, found, [candidates[row] for row in rows])
            scores[number] = found
        return scores


def _message_encoder(folder: Path) -> Encode:
    if (folder / ONNX).is_dir():
        from mrs_suggest.models.retrieval.onnx_encoder import OnnxEncoder

        exported = OnnxEncoder.load(folder)
        if exported is not None:
            return exported.encode
    return weights_encoder(folder)


def weights_encoder(folder: Path) -> Encode:
    """The message encoder of a trained retriever from its weights, whatever exports lie in its folder.

    Raises:
        MissingExtraError: it is none that runs without torch, and the extra `torch` is not installed.
    """
    encoder = MessageEncoder.load(folder)
    if encoder is not None:
        return encoder.encode
    if (folder / ADAPTER_RECORD).is_file():
        from mrs_suggest.models.adapters import load_adapter

        model = cast("SentenceTransformer", load_adapter(folder))
    else:
        from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder

        model = load_dual_encoder(folder)
    return lambda texts: encode_messages(model, texts).numpy()


def reply_encoder(folder: Path) -> Encode:
    """The reply encoder of a trained retriever.

    Raises:
        MissingExtraError: it does not run without torch, and the extra `torch` is not installed.
    """
    encoder = MessageEncoder.load(folder, DOCUMENT)
    if encoder is not None:
        return encoder.encode
    try:
        from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
    except ImportError as error:
        if (missing := missing_extra(error, f"the reply encoder of {folder}", "torch")) is None:
            raise
        raise missing from error
    model = load_dual_encoder(folder)
    return lambda texts: encode_replies(model, texts).numpy()
