"""The second stage: candidates of the set and of a generator, their scores, the choice, pools and the folder."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.ranking import second_stage
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.mixture import Mixture, standardised
from mrs_suggest.suggest.ranking.rankers import Rankers, save_rankers, settings_and_weights
from mrs_suggest.suggest.ranking.reranking import find_candidates, mixed, rerank, rerank_pool
from mrs_suggest.suggest.ranking.second_stage import SecondStage
from tests.mrs_suggest.suggest.ranking.test_language_ranker import REPLIES, made, vector

WRITTEN = ["Nobody saw that coming!", "yes, SEE you then", "Thanks a lot, my friend!"]


class Fake:
    """A generator that finds a reply the likelier the nearer its length is to that of the message."""

    def __init__(self, written: Sequence[str] = WRITTEN) -> None:
        self.written, self.asked = list(written), 0

    def load(self) -> None: ...

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        return [self.written[:count] for _ in messages]

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> np.ndarray:
        self.asked += len(replies)
        return -np.array([abs(len(message) - len(reply)) for reply in replies], np.float32)


def encode(texts: list[str]) -> np.ndarray:
    return np.stack([np.random.default_rng(len(text)).normal(size=8) for text in texts]).astype(np.float32)


def staged(
    weight: float = 0.5, generated: int = 3, written: Sequence[str] = WRITTEN, **options: object
) -> LanguageRanker:
    ranker = made(**options)  # type: ignore[arg-type]
    stage = SecondStage(Fake(written), encode, "en", generated, {"id": "org/writer", "fingerprint": "abc"})
    mixture = Mixture({**ranker.mixture.weights, "generator": weight})
    return replace(ranker, second=stage, mixture=mixture)


def test_candidates_are_the_best_of_the_set_and_what_the_generator_adds() -> None:
    ranker, query = staged(), vector()
    found = find_candidates(ranker, "are you coming?", query, WRITTEN, width=2)
    best = np.argsort(-ranker.rank("are you coming?", query), kind="stable")[:2]
    assert found.rows[:2].tolist() == best.tolist()
    assert set(found.rows.tolist()) == {*best.tolist(), 0}  # one that it wrote is the set's own first reply
    assert found.written == [WRITTEN[0], WRITTEN[2]]
    first = standardised(ranker.weighed("are you coming?", query))
    np.testing.assert_allclose(found.parts[: len(found.rows)], first[found.rows], rtol=1e-5)
    raw = ranker.second.generator.log_probs("are you coming?", found.texts(ranker), "en")  # type: ignore[union-attr]
    np.testing.assert_allclose(found.likely, (raw - raw.mean()) / raw.std(), atol=1e-5)


def test_only_candidates_are_scored_by_the_generator() -> None:
    ranker = staged(generated=0)
    rerank(ranker, ["are you coming?"], vector()[None], 3)
    assert ranker.second.generator.asked == len(REPLIES)  # type: ignore[union-attr]
    few = find_candidates(ranker, "are you coming?", vector(), [], width=2)
    assert ranker.second.generator.asked == len(REPLIES) + 2  # type: ignore[union-attr]
    assert len(few.likely) == 2


def test_a_written_reply_is_scored_as_an_unknown_reply_of_a_pool() -> None:
    ranker, query = staged(weight=0), vector()
    found = find_candidates(ranker, "thanks", query, WRITTEN)
    known = ranker.known([WRITTEN[2]])
    direct = encode([WRITTEN[2]]) @ query
    (expected,) = ranker.score_pool("thanks", query, known, np.arange(1), direct)
    assert mixed(ranker, found)[-1] == pytest.approx(expected, abs=1e-6)
    log_prob = list(ranker.settings.names).index("log_prob")
    assert found.parts[-1, log_prob] == pytest.approx(found.parts[: len(found.rows), log_prob].min())


@pytest.mark.parametrize("choice", ["top", "expected"])
def test_without_weight_and_replies_of_its_own_a_generator_changes_nothing(choice: str) -> None:
    ranker = staged(weight=0, generated=0, choice=choice)
    (found,) = rerank(ranker, ["are you coming?"], vector()[None], 3)
    before = replace(ranker, second=None).suggest("are you coming?", vector(), 3)
    assert [s.reply for s in found] == [s.reply for s in before]
    assert [s.score for s in found] == pytest.approx([s.score for s in before])
    assert ranker.second.generator.asked == 0  # type: ignore[union-attr]


@given(st.integers(0, 500), st.sampled_from(["top", "expected"]), st.floats(0, 3), st.integers(1, 9))
def test_no_two_suggestions_are_equal_or_of_one_cluster(seed: int, choice: str, weight: float, k: int) -> None:
    written = ["THANKS a lot", "Where are you", "New one", "new ONE!", "No, sorry", "And another"]
    ranker = staged(weight, generated=6, written=written, choice=choice, seed=seed)
    ranker = replace(ranker, index=replace(ranker.index, clusters=torch.tensor([0, 1, 2, 3, 2, 0])))
    (found,) = rerank(ranker, ["coming?"], vector(seed)[None], k)
    forms = [normalise_reply(one.reply) for one in found]
    assert len(set(forms)) == len(forms) == min(k, 4 + 2)
    rows = [REPLIES.index(one.reply) for one in found if one.source == "set"]
    assert len({(0, 1, 2, 3, 2, 0)[row] for row in rows}) == len(rows)
    assert {one.reply for one in found if one.source == "generated"} <= {"New one", "And another"}


def test_parts_add_up_and_sources_are_told() -> None:
    ranker, query = staged(choice="top"), vector()
    (found,) = rerank(ranker, ["are you coming?"], query[None], 9)
    candidates = find_candidates(ranker, "are you coming?", query, WRITTEN)
    scores = dict(zip(candidates.texts(ranker), mixed(ranker, candidates), strict=True))
    assert [one.reply for one in found] == sorted(scores, key=lambda text: -scores[text])
    for one in found:
        assert sum(one.parts.values()) == pytest.approx(scores[one.reply], abs=1e-5)
        assert one.source == ("generated" if one.reply in WRITTEN else "set")
    assert {one.source for one in found} == {"set", "generated"}
    assert sum(one.score for one in found) == pytest.approx(1)


def test_without_the_tokenizer_of_a_language_characters_are_compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing(language: str) -> None:
        raise ImportError("pip install '.[ja]'")

    monkeypatch.setattr(second_stage, "get_tokenizer", missing)
    stage = SecondStage(Fake(), encode, "ja", 3)
    table = stage.similarities(["はい、行きます。", "はい、行きますよ。", "元気？"])
    assert table[0, 1] > table[0, 2] == 0
    assert stage.tokenizer.name == "characters"
    told = capsys.readouterr().err
    assert told.count("note: generated replies in ja are compared by their characters") == 1


def test_a_pool_gets_the_generators_part_over_all_of_it() -> None:
    ranker = staged(weight=2)
    pool = ["No, sorry.", "Who knows", "What a long reply that nobody would ever click"]
    scores = rerank_pool(ranker, "Who is it", np.zeros(3, np.float32), pool)
    raw = -np.array([1, 0, 37.0])
    np.testing.assert_allclose(scores, 2 * (raw - raw.mean()) / raw.std(), rtol=1e-5)


def test_the_evaluated_system_ranks_pools_and_suggests_with_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_suggest.suggest import retrieval_suggester

    def message_vectors(model: object, texts: list[str]) -> torch.Tensor:
        return torch.tensor(np.stack([vector(len(text)) for text in texts]))

    monkeypatch.setattr(retrieval_suggester, "encode_messages", message_vectors)
    monkeypatch.setattr(retrieval_suggester, "encode_replies", lambda model, texts: torch.tensor(encode(texts)))
    ranker = staged(weight=50)
    system = retrieval_suggester.Retriever(None, {"en": ranker.index}, ranker=ranker)  # type: ignore[arg-type]
    (scores,) = system.score_pools(["Who knows"], [*REPLIES, "unseen"], np.array([[5, 6, 2]]))
    assert scores.argmax() == 0  # the likeliest by far
    assert system.suggest(["Who knows"], "en", 1)[0][0].reply == "Who knows"


def saved(folder: Path, ranker: LanguageRanker) -> dict[str, object]:
    save_rankers({"en": ranker, "nl": made()}, folder)
    (folder / "generator").mkdir()
    (folder / "generator" / "generator.json").write_text("{}")
    return dict(json.loads((folder / "ranker" / "ranker.json").read_text()))


def test_the_folder_tells_generator_languages_and_weights(tmp_path: Path) -> None:
    ranker = replace(staged(0.25), own=5)
    facts = saved(tmp_path, ranker)
    told = {"id": "org/writer", "fingerprint": "abc", "generated": 3, "languages": ["en"], "ranked_without": ["nl"]}
    assert facts["generator"] == {**told, "compared_by": {"en": "treebank"}}
    assert facts["own_replies"] == {"en": 5}
    loaded = Rankers(tmp_path, {"en": ranker.index, "nl": ranker.index})
    assert loaded["en"].mixture.weights["generator"] == 0.25
    assert loaded["en"].own == 5
    assert loaded["nl"].second is None
    again = settings_and_weights(dict(loaded))
    assert again == facts


def test_a_missing_or_damaged_generator_is_refused(tmp_path: Path) -> None:
    ranker = staged()
    saved(tmp_path, ranker)
    loaded = Rankers(tmp_path, {"en": ranker.index})["en"]
    assert loaded.second is not None
    with pytest.raises(InputError, match=r"generator\.json: no usable settings of a generator"):
        loaded.second.generator.load()
    (tmp_path / "generator" / "generator.json").unlink()
    with pytest.raises(InputError, match=r"generator/generator\.json: missing, and the ranker needs it"):
        Rankers(tmp_path, {"en": ranker.index})
