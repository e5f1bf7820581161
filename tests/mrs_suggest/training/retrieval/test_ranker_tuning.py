"""Building and tuning rankers: what is remembered, and that validation finds the part that knows."""

import numpy as np
import torch
from datasets import Dataset

from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.training.retrieval.ranker_tuning import RankerOptions, build_rankers

REPLIES = [f"reply number {n}" for n in range(12)]


def encode(messages: list[str]) -> np.ndarray:
    """A vector that tells the number at the end of a message; that of a reply tells nothing."""
    return np.stack([np.eye(12, dtype=np.float32)[int(message.split()[-1]) % 12] + 0.01 for message in messages])


def data(language: str, rows: int = 60, shift: int = 0) -> LanguageData:
    """Messages whose number is that of the reply."""
    messages = [f"{language} question about {n % 12}" for n in range(rows)]
    pairs = Dataset.from_dict({"message": messages, "reply": [REPLIES[(n + shift) % 12] for n in range(rows)]})
    responses = ResponseSet(REPLIES, [""] * 12, [None] * 12)
    return LanguageData(language, pairs, pairs, pairs, responses)


def index() -> ResponseIndex:
    rng = np.random.default_rng(0)
    return ResponseIndex.build(lambda texts: torch.tensor(rng.normal(size=(len(texts), 12))), REPLIES)


def test_a_tuned_ranker_answers_as_the_memory_does() -> None:
    part = data("en")
    found, _ = build_rankers(encode, {"en": index()}, {"en": [part.train]}, [part], RankerOptions())
    for number in range(12):
        message = f"en question about {number}"
        assert found["en"].suggest(message, encode([message])[0], 1)[0].reply == REPLIES[number]
    weights = found["en"].mixture.weights
    assert sum(weights.values()) == 1 or abs(sum(weights.values()) - 1) < 1e-6
    assert weights["direct"] < 0.5


def test_each_language_remembers_its_own_pairs_only() -> None:
    parts = {"en": data("en"), "nl": data("nl", shift=5)}
    pairs = {language: [part.train] for language, part in parts.items()}
    indexes = {"en": index(), "nl": index(), "de": index()}
    found, _ = build_rankers(encode, indexes, pairs, list(parts.values()), RankerOptions(("nearest",)))
    assert set(found) == {"en", "nl"}  # German has no pairs, so nothing is remembered
    for language, shift in (("en", 0), ("nl", 5)):
        message = f"{language} question about 3"
        assert found[language].suggest(message, encode([message])[0], 1)[0].reply == REPLIES[3 + shift]


def test_pairs_with_other_replies_or_beyond_the_limit_are_not_remembered() -> None:
    part = data("en")
    other = Dataset.from_dict({"message": ["unknown 1", "known 2"], "reply": ["never seen", "Reply NUMBER 2!"]})
    found, _ = build_rankers(encode, {"en": index()}, {"en": [other]}, [part], RankerOptions(("nearest",)))
    assert found["en"].memory.replies.tolist() == [2]
    assert len(found["en"].memory.vectors) == 1
    part = data("en")
    for limit, remembered in ((20, 20), (200_000, 60)):
        options = RankerOptions(("nearest",), messages=limit)
        found, _ = build_rankers(encode, {"en": index()}, {"en": [part.train]}, [part], options)
        assert len(found["en"].memory.vectors) == remembered


def test_equal_seeds_give_equal_rankers_and_a_language_without_validation_is_tuned_by_the_others() -> None:
    parts = {"en": data("en"), "nl": data("nl")}
    pairs = {language: [part.train] for language, part in parts.items()}
    both = [
        build_rankers(encode, {"en": index(), "nl": index()}, pairs, [parts["en"]], RankerOptions(), seed=3)[0]
        for _ in range(2)
    ]
    for language in ("en", "nl"):
        assert both[0][language].mixture == both[1][language].mixture
        assert both[0][language].settings == both[1][language].settings
    assert both[0]["nl"].mixture.weights
