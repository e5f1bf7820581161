"""The rankers of a model by language, as they are stored beside its response indexes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mrs_core.errors import InputError
from mrs_core.manifest import again
from mrs_models.ranking.choice import CHOICES
from mrs_models.ranking.language_ranker import PARTS, LanguageRanker, RankerSettings
from mrs_models.ranking.memory import MessageMemory
from mrs_models.ranking.mixture import Mixture
from mrs_models.ranking.reply_ngrams import ReplyNgrams
from mrs_models.response_index import ResponseIndex
from mrs_models.starting_points import RANKER_FOLDER

SETTINGS = "ranker.json"
_MEMORY, _REPLIES = "memory.", "replies."


def save_rankers(rankers: Mapping[str, LanguageRanker], folder: Path) -> None:
    """Write `ranker/`: settings and weights as JSON, a file of arrays per language; none if there is no ranker."""
    if not rankers:
        return
    place = folder / RANKER_FOLDER
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(settings_and_weights(rankers), indent=2, sort_keys=True)
    (place / SETTINGS).write_text(text + "\n", encoding="utf-8")
    for language, ranker in rankers.items():
        arrays = {f"{_MEMORY}{name}": array for name, array in ranker.memory.arrays().items()}
        arrays |= {f"{_REPLIES}{name}": array for name, array in ranker.ngrams.arrays().items()}
        arrays |= {"remembered": ranker.remembered, "share": ranker.share}
        contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        save_file(contiguous, place / f"{language}.safetensors")


def settings_and_weights(rankers: Mapping[str, LanguageRanker]) -> dict[str, Any]:
    """JSON: the settings that the rankers share, and `weights` -> language -> part -> weight."""
    settings = asdict(next(iter(rankers.values())).settings)
    weights = {language: dict(ranker.mixture.weights) for language, ranker in rankers.items()}
    return {**settings, "names": list(settings["names"]), "weights": weights}


class Rankers(Mapping[str, LanguageRanker]):
    """The rankers of a model's folder; each is read when first used.

    Args:
        indexes: the model's response indexes, whose rows the rankers name.

    Raises:
        InputError: a file is missing or damaged, or does not fit the index.
    """

    def __init__(self, model_folder: Path, indexes: Mapping[str, ResponseIndex]) -> None:
        self._folder, self._indexes = model_folder / RANKER_FOLDER, indexes
        self._loaded: dict[str, LanguageRanker] = {}
        self._settings, self._weights = RankerSettings(), dict[str, Mixture]()
        if (self._folder / SETTINGS).is_file():
            self._settings, self._weights = self._read_settings()

    def _read_settings(self) -> tuple[RankerSettings, dict[str, Mixture]]:
        path = self._folder / SETTINGS
        try:
            facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            weights = {language: Mixture(dict(row)) for language, row in facts.pop("weights").items()}
            settings = RankerSettings(**{**facts, "names": tuple(facts["names"])})
            if settings.choice not in CHOICES or not set(settings.names) <= set(PARTS):
                raise ValueError("unknown parts or choice")
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(f"{path}: no usable ranker ({error}); {again(self._folder.parent)}.") from None
        return settings, weights

    def __getitem__(self, language: str) -> LanguageRanker:
        if language not in self._weights:
            raise KeyError(language)
        if language not in self._loaded:
            self._loaded[language] = self._read(language)
        return self._loaded[language]

    def _read(self, language: str) -> LanguageRanker:
        path, index = self._folder / f"{language}.safetensors", self._indexes[language]
        try:
            arrays = load_file(path)
            memory, ngrams = (
                {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
                for start in (_MEMORY, _REPLIES)
            )
            remembered, share = arrays["remembered"], arrays["share"].astype(np.float32)
            parts = MessageMemory.from_arrays(memory), remembered, share, ReplyNgrams.from_arrays(ngrams)
            ranker = LanguageRanker(index, *parts, self._settings, self._weights[language])
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{path}: no usable ranker ({error}); {again(self._folder.parent)}.") from None
        size, replies = len(index.replies), ranker.memory.replies
        if not size == len(remembered) == len(share) == len(ranker.ngrams) or replies[-1] >= size:
            raise InputError(f"{path}: made for another response index; {again(self._folder.parent)}.")
        return ranker

    def __iter__(self) -> Iterator[str]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)


def with_settings(rankers: Mapping[str, LanguageRanker], **changes: Any) -> dict[str, LanguageRanker]:
    """The same rankers with other settings, such as `choice="top"`."""
    return {
        language: replace(ranker, settings=replace(ranker.settings, **changes)) for language, ranker in rankers.items()
    }
