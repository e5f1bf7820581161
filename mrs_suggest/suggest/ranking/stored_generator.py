"""A trained generator in the folder of a ranked model, read at its first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.starting_points import GENERATOR

if TYPE_CHECKING:
    from mrs_suggest.models.generation.generator import Generator


class StoredGenerator:
    """`mrs_suggest.suggest.ranking.second_stage.ReplyGenerator` on a folder; transformers is imported when it is
    loaded.

    Raises:
        InputError: there is no generator in the folder.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / GENERATOR).is_file():
            raise InputError(f"{folder / GENERATOR}: missing, and the ranker needs it; {again(folder.parent)}.")
        self._folder = folder

    @cached_property
    def _generator(self) -> Generator:
        from mrs_suggest.models.generation.generator import Generator

        return Generator.load(self._folder)

    def load(self) -> None:
        self._generator  # noqa: B018

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        return write_replies(self._generator, messages, language, count)

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> NDArray[np.float32]:
        return self._generator.log_probs(message, replies, language)


def write_replies(generator: Generator, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
    """The texts of `Generator.suggest`, without their scores."""
    return [[text for text, _ in row] for row in generator.suggest(messages, language, count)]


class StoredReplyEncoder:
    """Encodes replies with the retriever of a folder, which is read at the first call."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _encode(self) -> Callable[[list[str]], NDArray[np.float32]]:
        from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder
        from mrs_suggest.models.retrieval.encode import encode_replies

        model = load_dual_encoder(self._folder)
        return lambda texts: encode_replies(model, texts).numpy()

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        return self._encode(texts)
