"""What can be compared: anything that suggests replies and ranks given candidates, for messages of one language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch

from mrs_models.response_index import ResponseIndex
from mrs_models.suggest_arguments import require_count, require_messages
from mrs_models.suggester import encode_messages, encode_replies

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from mrs_models.generator import Generator

CHUNK = 256  # messages scored at a time: bounds the memory of (messages, pool, dimension)


class System(Protocol):
    """One row of a results table."""

    name: str

    def suggest(self, messages: Sequence[str], k: int) -> list[list[str]]:
        """Up to k replies a message, best first.

        Blank messages are answered like any other, since a test set's rows are all scored.
        """

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        """Scores of the candidates in each message's pool: `pools` (n, p) holds candidate numbers; (n, p)."""


class Retriever:
    """The trained dual encoder with the response index of one language."""

    def __init__(self, model: SentenceTransformer, index: ResponseIndex, name: str = "Model") -> None:
        self.name = name
        self._model = model
        self._index = index

    def suggest(self, messages: Sequence[str], k: int) -> list[list[str]]:
        numbers, _ = self._index.search(encode_messages(self._model, require_messages(messages)), require_count(k))
        return [[self._index.replies[number] for number in row] for row in numbers]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        queries = encode_messages(self._model, list(messages))
        replies = encode_replies(self._model, list(candidates))
        chunks = [
            torch.einsum("nd,npd->np", queries[begin : begin + CHUNK], replies[torch.as_tensor(rows)])
            for begin, rows in ((begin, pools[begin : begin + CHUNK]) for begin in range(0, len(pools), CHUNK))
        ]
        return torch.cat(chunks).numpy()


class Writer:
    """A generator in one language; it ranks nothing."""

    def __init__(self, generator: Generator, language: str, name: str = "Model") -> None:
        self.name, self._generator, self._language = name, generator, language

    def suggest(self, messages: Sequence[str], k: int) -> list[list[str]]:
        return [[text for text, _ in row] for row in self._generator.suggest(messages, self._language, k)]

    def score_pools(self, messages: Sequence[str], candidates: Sequence[str], pools: np.ndarray) -> np.ndarray:
        raise NotImplementedError("A generator's figure of fit is its perplexity.")
