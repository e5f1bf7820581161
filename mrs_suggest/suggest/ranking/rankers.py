"""The rankers of a model by language, stored in `ranker/` of its folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.array_files import load_arrays, save_arrays
from mrs_suggest.models.starting_points import GENERATOR_FOLDER, INDEXES_FOLDER, RANKER_FOLDER
from mrs_suggest.suggest.index.response_index import ByLanguage, ResponseIndex
from mrs_suggest.suggest.ranking.choice import CHOICES
from mrs_suggest.suggest.ranking.language_ranker import PARTS, LanguageRanker, RankerSettings, kinds_of
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.mixture import Mixture
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.ranking.second_stage import SecondStage, StoredGenerator, StoredReplyEncoder
from mrs_suggest.suggest.ranking.trigger import Trigger
from mrs_suggest.suggest.reply_tags import ReplyTags

SETTINGS = "ranker.json"
LEAST_TEMPERATURE = 1e-6  # below, and above its inverse, exponentials leave the range of float32
_MEMORY, _REPLIES = "memory.", "replies."


def save_rankers(rankers: Mapping[str, LanguageRanker], folder: Path) -> None:
    """Write `ranker/`, if there are any: settings and weights as JSON, and a file of arrays for each language."""
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
        save_arrays(arrays, place / f"{language}.safetensors")


def settings_and_weights(rankers: Mapping[str, LanguageRanker]) -> dict[str, Any]:
    """The contents of `ranker.json`: the settings that the rankers share, and `weights` -> language -> part -> weight.

    Where they apply: `generator` (its origin, replies and languages), `own_replies` -> language -> how many replies
    belong to the response set, and `trigger`.
    """
    shared = next(iter(rankers.values())).settings
    settings = asdict(replace(shared, trigger=None))
    del settings["trigger"]
    weights = {language: dict(ranker.mixture.weights) for language, ranker in rankers.items()}
    found = {**settings, "names": list(settings["names"]), "weights": weights}
    if shared.trigger is not None:
        found["trigger"] = shared.trigger.as_json()
    stages = {language: ranker.second for language, ranker in rankers.items() if ranker.second is not None}
    if stages:
        stage = next(iter(stages.values()))
        without = [language for language in rankers if language not in stages]
        own = {"generated": stage.generated, "languages": list(stages), "ranked_without": without}
        tokenizers = {language: stage.tokenizer.name for language, stage in stages.items() if stage.generated}
        found["generator"] = {**stage.facts, **own, **({"compared_by": tokenizers} if tokenizers else {})}
    if own_replies := {language: ranker.own for language, ranker in rankers.items() if ranker.own is not None}:
        found["own_replies"] = own_replies
    return found


class Rankers(ByLanguage[LanguageRanker]):
    """The rankers of a model's folder.

    Args:
        indexes: the model's response indexes, to whose rows the rankers refer.

    Raises:
        InputError: a file is missing or damaged, or does not match the index.
    """

    def __init__(self, model_folder: Path, indexes: Mapping[str, ResponseIndex]) -> None:
        self._folder, self._indexes = model_folder / RANKER_FOLDER, indexes
        self._settings, self._weights = RankerSettings(), dict[str, Mixture]()
        self._own: dict[str, int] = {}
        self._stages: dict[str, SecondStage] = {}
        path = self._folder / SETTINGS
        if path.is_file():
            try:
                self._read_settings(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise InputError(f"{path}: no usable ranker ({error}); {again(model_folder)}.") from None
        super().__init__(self._weights)

    def _read_settings(self, facts: dict[str, Any]) -> None:
        self._weights = {
            language: Mixture({name: float(one) for name, one in row.items()})
            for language, row in facts.pop("weights").items()
        }
        self._own = {language: int(own) for language, own in facts.pop("own_replies", {}).items()}
        if generator := facts.pop("generator", None):
            model = self._folder.parent
            shared = StoredGenerator(model / GENERATOR_FOLDER), StoredReplyEncoder(model)
            written = int(generator["generated"])
            self._stages = {code: SecondStage(*shared, code, written, generator) for code in generator["languages"]}
        trigger = Trigger.from_json(facts.pop("trigger")) if "trigger" in facts else None
        settings = RankerSettings(**{**facts, "trigger": trigger, "names": tuple(facts["names"])})
        if settings.choice not in CHOICES or not set(settings.names) <= set(PARTS):
            raise ValueError("unknown parts or choice")
        if settings.width < 1:
            raise ValueError(f"width {settings.width}, expected 1 or more")
        for name in ("vote_temperature", "tfidf_temperature", "temperature"):
            if not LEAST_TEMPERATURE <= getattr(settings, name) <= 1 / LEAST_TEMPERATURE:
                raise ValueError(f"{name} {getattr(settings, name)}, expected {LEAST_TEMPERATURE:g} or more")
        self._settings = settings

    def read(self, language: str) -> LanguageRanker:
        path, index = self._folder / f"{language}.safetensors", self._indexes[language]
        model = self._folder.parent
        try:
            arrays = load_arrays(path)
            memory, ngrams = (
                {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
                for start in (_MEMORY, _REPLIES)
            )
            remembered, share = arrays["remembered"].astype(np.int64), arrays["share"].astype(np.float32)
            parts = MessageMemory.from_arrays(memory), remembered, share, ReplyNgrams.from_arrays(ngrams)
            second, own = self._stages.get(language), self._own.get(language)
            kinds = kinds_of(ReplyTags.load(model / INDEXES_FOLDER / language, len(index.replies)))
            ranker = LanguageRanker(index, *parts, self._settings, self._weights[language], second, own, kinds)
        except (OSError, ValueError, KeyError, SafetensorError) as error:
            raise InputError(f"{path}: no usable ranker ({error}); {again(model)}.") from None
        size, replies = len(index.replies), ranker.memory.replies
        places = remembered.min(initial=0) >= 0 and remembered.max(initial=0) < len(replies) and replies[-1] < size
        if not size == len(remembered) == len(share) == len(ranker.ngrams) or not places:
            raise InputError(f"{path}: made for another response index; {again(model)}.")
        axes, width = ranker.memory.axes, index.vectors.shape[1]
        if (ranker.memory.vectors if axes is None else axes.T).shape[1:] != (width,):
            raise InputError(f"{path}: made for vectors of another width; {again(model)}.")
        return ranker


def with_settings(rankers: Mapping[str, LanguageRanker], **changes: Any) -> dict[str, LanguageRanker]:
    """The same rankers with other settings, such as `choice="top"`."""
    return {
        language: replace(ranker, settings=replace(ranker.settings, **changes)) for language, ranker in rankers.items()
    }
