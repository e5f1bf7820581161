"""Suggestions of a retriever, to serve and to evaluate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError, missing_extra
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.suggest_arguments import answer_all, require_count, require_messages
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.exports import ONNX
from mrs_suggest.models.model_folder import panics_told, tokenizer_probed
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.message_encoder import DOCUMENT, MessageEncoder
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATOR
from mrs_suggest.suggest.answering import MODEL, ServedModel, Suggestion
from mrs_suggest.suggest.index.response_index import Array, Encode, ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.reply_tags import TagsByLanguage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

REMEMBERED = 256  # messages at most whose vectors are kept for the next call
CHUNK = 256  # messages scored at a time: bounds the memory of (messages, pool, dimension)


class RetrievalSuggester(ServedModel):
    """Answers from the response set of the message's language.

    Args:
        encode: messages -> (n, dimension) vectors.
        indexes: language -> its response index.
        tags: language -> the tags of its replies; default: none has any.
    """

    def __init__(
        self, encode: Encode, indexes: Mapping[str, ResponseIndex], tags: TagsByLanguage | None = None
    ) -> None:
        self._encode = encode
        self.indexes = indexes
        self.tags = tags or TagsByLanguage(indexes=indexes)

    @classmethod
    def load_from(cls, path: Path, name: str) -> RetrievalSuggester:
        """Load the folder of a retriever with its `response_index/`; `name` is what the user passed.

        Raises:
            InputError: its files are missing, damaged or do not fit each other.
        """
        if not (path / "modules.json").is_file() and not (path / ADAPTER_RECORD).is_file():
            raise InputError(
                f"{name}: no trained model (no modules.json or {GENERATOR}); pass the folder that a run wrote."
            )
        place, indexes = path, ResponseIndexes(path)
        if not indexes and (path / ADAPTER_RECORD).is_file():  # the adapter's folder within that of its run
            place, indexes = path.parent, ResponseIndexes(path.parent)
        if not indexes:
            raise InputError(f"{name}: no {ResponseIndexes.FOLDER}/ folder, so there is nothing to suggest.")
        try:
            with tokenizer_probed(path, path), np.errstate(all="ignore"):
                raw = _message_encoder(path)
                vectors = raw(["?"])  # a damaged model fails here, not at the first message
        except InputError:
            raise
        except Exception as error:  # each library raises its own errors
            if (missing := missing_extra(error, f"the message encoder of {name}", "torch")) is not None:
                raise missing from error
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(f"{name}: cannot load the message encoder ({reason}); {again(path)}.") from error
        if vectors.ndim != 2 or not np.isfinite(vectors).all():
            raise InputError(f"{name}: the message encoder gives no finite vectors; {again(path)}.")
        indexes.width = vectors.shape[1]

        def encode(texts: list[str]) -> Array:
            with panics_told(path, path):
                return raw(texts)

        return cls(remembering(encode), indexes, TagsByLanguage(place / ResponseIndexes.FOLDER, indexes))

    def with_encoder(self, encode: Encode) -> Self:
        """The same suggester with another form of its message encoder."""
        other = copy(self)
        other._encode = encode
        return other

    @property
    def languages(self) -> list[str]:
        return list(self.indexes)

    def require_language(self, language: str) -> None:
        super().require_language(language)
        self.indexes[language]  # a damaged one is found now

    def message_vectors(self, messages: Sequence[str]) -> NDArray[np.float32]:
        return self._encode(list(messages))

    def rows(self, language: str) -> NDArray[np.int64]:
        """Numbers of the replies that may be suggested, ascending."""
        return np.arange(len(self.indexes[language].replies))

    def restricted(self, language: str, rows: NDArray[np.int64]) -> RetrievalSuggester:
        """The same model with a part of one language's replies, and no other language.

        Args:
            rows: (n,) numbers of the replies, at least one.
        """
        return RetrievalSuggester(self._encode, {language: part_of_index(self.indexes[language], rows)})

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        self.require_language(language)
        texts, count = require_messages(messages), require_count(k)
        index = self.indexes[language]
        return answer_all(texts, lambda asked: index.suggest(self._encode(asked), count))


def remembering(encode: Encode) -> Encode:
    """An encoder that keeps the vectors of its last texts: the guard looks at a message, then the model answers it."""
    last: dict[str, Array] = {}

    def encoded(texts: list[str]) -> Array:
        nonlocal last
        known = last  # one object, as another thread may replace it
        if texts and all(text in known for text in texts):
            return np.stack([known[text] for text in texts])
        vectors = encode(texts)
        if len(texts) <= REMEMBERED:
            last = dict(zip(texts, vectors, strict=True))
        return vectors

    return encoded


def part_of_index(index: ResponseIndex, rows: NDArray[np.int64]) -> ResponseIndex:
    """The index of some replies, in the order of their numbers `rows`."""
    return ResponseIndex.build(
        lambda _: np.asarray(index.vectors[rows], np.float32),
        [index.replies[row] for row in rows],
        [str(cluster) for cluster in index.clusters[rows].tolist()],
        index.log_probs[rows].tolist(),
        index.alpha,
    )


class Retriever:
    """The trained dual encoder as a system to evaluate: it answers from response indexes, and ranks.

    Args:
        indexes: language -> its response index.
    """

    def __init__(self, model: SentenceTransformer, indexes: Mapping[str, ResponseIndex], name: str = MODEL) -> None:
        self.name = name
        self._model = model
        self._indexes = indexes

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        vectors = encode_messages(self._model, require_messages(messages)).numpy()
        return self._indexes[language].suggest(vectors, require_count(k))

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        queries = encode_messages(self._model, list(messages)).numpy()
        replies = encode_replies(self._model, list(candidates)).numpy()
        scores = np.empty(pools.shape, np.float32)
        for begin in range(0, len(pools), CHUNK):
            some = slice(begin, begin + CHUNK)
            scores[some] = (replies[pools[some]] @ queries[some, :, None])[..., 0]
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
