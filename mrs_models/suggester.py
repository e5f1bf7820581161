"""Message and language in, three suggestions out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast

import torch

from mrs_core.baselines import resolve_model
from mrs_core.errors import ArgumentError, InputError
from mrs_core.manifest import again, require_undamaged
from mrs_core.predictions import SUGGESTIONS
from mrs_models.message_encoder import MessageEncoder
from mrs_models.response_index import Encode, ResponseIndex, ResponseIndexes
from mrs_models.starting_points import GENERATOR
from mrs_models.suggest_arguments import answer_all, require_count, require_messages

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

BATCH = 64
ADAPTER = "adapter.json"  # marks that of an adapter, whose base model lies elsewhere


@dataclass(frozen=True)
class Suggestion:
    """One reply to click; scores of one message can be compared, scores of different messages cannot."""

    reply: str
    score: float


class Suggester(ABC):
    """Answers messages; `load` gives the one of a model's family.

    Example:
        >>> suggester = Suggester.load("build/retriever")           # doctest: +SKIP
        >>> [s.reply for s in suggester.suggest(["¿Quedamos mañana?"], "es")[0]]  # doctest: +SKIP
        ['Sí, perfecto.', 'Vale, ¿a qué hora?', 'Mañana no puedo, lo siento.']
    """

    @staticmethod
    def load(folder: str | Path, revision: str | None = None, verify: bool = False) -> Suggester:
        """Load a trained model: the folder of a run, a baseline, `ORG/NAME`, or `ORG/NAME@REVISION`.

        Args:
            revision: of a model on the hub: a branch, a tag or a commit.
            verify: compare the SHA-256 of large files, too (`mrs_core.manifest` has the rule).

        Raises:
            InputError: no such model, or its files are damaged or do not fit each other.
        """
        path = resolve_model(str(folder), revision)
        require_undamaged(path, verify)
        if (path / GENERATOR).is_file():
            from mrs_models.generation_suggester import GenerationSuggester

            return GenerationSuggester.load_from(path)
        return RetrievalSuggester.load_from(path, str(folder))

    @property
    @abstractmethod
    def languages(self) -> list[str]:
        """The languages that can be answered."""

    def require_language(self, language: str) -> None:
        """Raise ArgumentError if the model does not answer in the language."""
        if language not in self.languages:
            known = " ".join(self.languages)
            raise ArgumentError("language", f"the model answers {known}; pass one of these.", language)

    @abstractmethod
    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        """Up to k suggestions a message, best first, no two that say the same.

        Args:
            messages: a list of texts. A blank one (nothing but white space) gets an empty list: there is nothing to
                answer.
            language: one of `languages`.
            k: how many, from 1.

        Returns:
            A list for each message, in their order.

        Raises:
            ArgumentError: an InputError and a ValueError: the model does not answer in the language, the messages are
                no list of texts, one of them holds a lone surrogate, or k is no whole number from 1.
        """


class RetrievalSuggester(Suggester):
    """Answers from the response set of the message's language.

    Args:
        encode: messages -> (n, dimension) vectors.
        indexes: language -> its response index.
    """

    def __init__(self, encode: Encode, indexes: Mapping[str, ResponseIndex]) -> None:
        self._encode = encode
        self.indexes = indexes

    @classmethod
    def load_from(cls, path: Path, name: str) -> RetrievalSuggester:
        """Load the folder of a retriever with its `response_index/`; `name` is what the user called it.

        Raises:
            InputError: its files are missing, damaged or do not fit each other.
        """
        if not (path / "modules.json").is_file() and not (path / ADAPTER).is_file():
            raise InputError(
                f"{name}: no trained model (no modules.json or {GENERATOR}); pass the folder that a run wrote."
            )
        indexes = ResponseIndexes(path)
        if not indexes and (path / ADAPTER).is_file():  # the adapter's folder within that of its run
            indexes = ResponseIndexes(path.parent)
        if not indexes:
            raise InputError(f"{name}: no {ResponseIndexes.FOLDER}/ folder, so there is nothing to suggest.")
        try:
            encode = _message_encoder(path)
            width = encode(["?"]).shape[1]  # a damaged model fails here, not at the first message
        except InputError:
            raise
        except Exception as error:  # each library refuses its files in its own way
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise InputError(f"{name}: cannot load the message encoder ({reason}); {again(path)}.") from error
        indexes.width = width
        return cls(encode, indexes)

    @property
    def languages(self) -> list[str]:
        return list(self.indexes)

    def require_language(self, language: str) -> None:
        super().require_language(language)
        self.indexes[language]  # a damaged one is found now

    def suggest(self, messages: Sequence[str], language: str, k: int = SUGGESTIONS) -> list[list[Suggestion]]:
        self.require_language(language)
        texts, count = require_messages(messages), require_count(k)
        return answer_all(texts, partial(self._answers, self.indexes[language], count))

    def _answers(self, index: ResponseIndex, k: int, messages: list[str]) -> list[list[Suggestion]]:
        numbers, scores = index.search(self._encode(messages), k)
        return [
            [Suggestion(index.replies[number], float(score)) for number, score in zip(row, values, strict=True)]
            for row, values in zip(numbers, scores, strict=True)
        ]


def _message_encoder(folder: Path) -> Encode:
    encoder = MessageEncoder.load(folder)
    if encoder is not None:
        return encoder.encode
    if (folder / ADAPTER).is_file():
        from mrs_models.adapters import load_adapter

        return partial(encode_messages, cast("SentenceTransformer", load_adapter(folder)))
    from mrs_models.dual_encoder import load_dual_encoder

    return partial(encode_messages, load_dual_encoder(folder))


def encode_messages(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of messages, on the CPU."""
    return model.encode_query(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()


def encode_replies(model: SentenceTransformer, texts: list[str]) -> torch.Tensor:
    """(n, dimension) float32 vectors of replies, on the CPU."""
    return model.encode_document(texts, batch_size=BATCH, convert_to_tensor=True, show_progress_bar=False).float().cpu()
