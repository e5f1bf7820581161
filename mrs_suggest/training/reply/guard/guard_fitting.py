"""Fit what a model's guard makes of messages, on example messages and the everyday ones of the embedded sample."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.suggest.guard.guard_space import GuardSpace, Vectors
from mrs_suggest.suggest.guard.lists import GuardData

DATA = "sample"  # whose messages are the everyday ones
LEARNED, CALIBRATED, TESTED = "train", "validation", "test"  # its splits, and what each is for


def fit_guard(
    encode: Callable[[list[str]], Vectors],
    data: GuardData,
    languages: Collection[str],
    own: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> GuardSpace:
    """Fit the linear model of a guard.

    It learns from the examples and the sample's training messages; its threshold is set on the sample's validation
    messages. Messages that the word lists find sensitive are left out: the sample has some.

    Args:
        encode: n texts -> (n, dimension) vectors.
        data: word lists and example messages.
        languages: those of the model; it learns from their messages, or from those of all languages, where there are
            no examples in one of them.
        own: language -> messages of the validation split of the model's data, which set the threshold, too.
    """
    examples = data.prototypes_for(languages)
    everyday = {split: _everyday(data, split, examples) for split in (LEARNED, CALIBRATED)}
    calm = [(code, text) for code, texts in own.items() for text in texts]
    return GuardSpace.fit(encode, examples, everyday[LEARNED], everyday[CALIBRATED], _without_sensitive(data, calm))


def _everyday(data: GuardData, split: str, languages: Collection[str]) -> list[str]:
    sample = open_prepared(DATA)
    own = [code for code in sample.languages() if code in languages]
    texts = [(code, text) for code in own for text in sample.load(code, split)["message"]]
    return _without_sensitive(data, texts)


def _without_sensitive(data: GuardData, texts: Iterable[tuple[str, str]]) -> list[str]:
    """The texts, each once, that their language's word lists do not find sensitive."""
    return [text for code, text in dict.fromkeys(texts) if code not in data or data[code].sensitive(text) is None]
