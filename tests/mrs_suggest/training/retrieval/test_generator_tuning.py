"""Adding a generator to tuned rankers, and candidates from the memory."""

from collections.abc import Sequence

import numpy as np
import pytest
from datasets import Dataset

from mrs_suggest.evaluation.language_data import LanguageData, ResponseSet
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.second_stage import SecondStage
from mrs_suggest.training.retrieval.generator_tuning import add_generator
from mrs_suggest.training.retrieval.parts import response_sets, with_memory_candidates
from mrs_suggest.training.retrieval.ranker_generator import RankerGenerator
from mrs_suggest.training.retrieval.ranker_tuning import RankerOptions, build_rankers
from tests.mrs_suggest.training.retrieval.test_ranker_tuning import REPLIES, data, encode, index

BLIND = RankerOptions(("log_prob",))  # ranks all replies alike


class Knowing:
    """A generator that knows the reply to each message, or none (`blind`), and writes one that no set has."""

    def __init__(self, blind: bool = False) -> None:
        self.blind = blind

    def load(self) -> None: ...

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        return [[f"{language} written"][:count] for _ in messages]

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> np.ndarray:
        number = message.split()[-1]
        rng = np.random.default_rng(len(message) + int(number))
        known = [0.0 if reply.endswith(f" {number}") else -5.0 for reply in replies]
        return np.array(rng.normal(size=len(replies)) if self.blind else known, np.float32)


def added(
    generator: Knowing, languages: Sequence[str] = ("en",), validation: Sequence[str] = ("en",)
) -> dict[str, LanguageRanker]:
    parts = {language: data(language) for language in ("en", "nl")}
    pairs = {language: [part.train] for language, part in parts.items()}
    indexes = {"en": index(), "nl": index()}
    asked = [parts[language] for language in validation]
    stages = {language: SecondStage(generator, encode, language, 1) for language in languages}
    return add_generator(*build_rankers(encode, indexes, pairs, asked, BLIND), stages)


def test_validation_finds_that_the_generator_knows() -> None:
    from mrs_suggest.suggest.ranking.reranking import rerank

    found = added(Knowing())
    assert found["en"].mixture.weights["generator"] > 0
    for number in range(12):
        message = f"en question about {number}"
        (three,) = rerank(found["en"], [message], encode([message]), 3)
        assert three[0].reply == REPLIES[number]
    assert found["nl"].second is None
    assert "generator" not in found["nl"].mixture.weights
    assert found["nl"].settings == found["en"].settings


def test_the_weight_without_validation_and_of_a_generator_that_knows_nothing() -> None:
    found = added(Knowing(), languages=("en", "nl"))
    assert found["nl"].mixture.weights["generator"] == found["en"].mixture.weights["generator"] > 0
    found = added(Knowing(), languages=("nl",), validation=("en",))
    assert found["nl"].mixture.weights["generator"] == 0
    assert added(Knowing(blind=True))["en"].mixture.weights["generator"] <= 0.5


def test_what_a_generator_said_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counting:
        asked = 0

        def suggest(self, messages: list[str], language: str, k: int) -> list[list[tuple[str, float]]]:
            self.asked += len(messages)
            return [[(f"{message} {n}", 0.0) for n in range(k)] for message in messages]

        def log_probs(self, message: str, replies: Sequence[str], language: str) -> np.ndarray:
            self.asked += 1
            return np.zeros(len(replies), np.float32)

    own = Counting()
    generator = RankerGenerator(None, own, {})  # type: ignore[arg-type]
    assert generator.write(["a", "b", "a"], "en", 2) == [["a 0", "a 1"], ["b 0", "b 1"], ["a 0", "a 1"]]
    assert generator.write(["b", "c"], "en", 2)[1] == ["c 0", "c 1"]
    assert own.asked == 3
    assert generator.write(["a"], "nl", 1) == [["a 0"]]
    for _ in range(2):
        assert len(generator.log_probs("a", ["x", "y"], "en")) == 2
    assert own.asked == 5


def test_training_replies_that_the_set_lacks_join_as_candidates() -> None:
    part = data("en")
    pairs = Dataset.from_dict(
        {
            "message": [f"en question about {n}" for n in (1, 2, 2, 3, 4)],
            "reply": ["Reply NUMBER 2!", "rare one", "often", "Often!", "\u200b"],
        }
    )
    (longer,), own = with_memory_candidates([part], {"en": [pairs]})
    assert own == {"en": 12}
    assert longer.responses.replies == [*REPLIES, "often", "rare one"]
    assert longer.responses.log_probs[12:] == [None, None]

    def vectors(texts: Sequence[str]) -> object:
        import torch

        return torch.tensor(np.random.default_rng(0).normal(size=(len(texts), 12)))

    from mrs_suggest.suggest.index.response_index import ResponseIndex

    responses = longer.responses
    whole = ResponseIndex.build(vectors, responses.replies, responses.clusters, responses.log_probs)  # type: ignore[arg-type]
    rankers, _ = build_rankers(encode, {"en": whole}, {"en": [pairs]}, [part], RankerOptions(("nearest",)), own=own)
    assert rankers["en"].memory.replies.tolist() == [2, 12, 13]
    message = "en question about 3"
    (best,) = rankers["en"].suggest(message, encode([message])[0], 1)
    assert (best.reply, best.source) == ("often", "memory")
    assert response_sets({"en": whole}, rankers)["en"].replies == REPLIES
    # A set with every training reply stays as it is.
    part = data("en")
    (same,), own = with_memory_candidates([part], {"en": [part.train]})
    assert same is part
    assert own == {}
    assert isinstance(same, LanguageData)
    assert isinstance(same.responses, ResponseSet)
