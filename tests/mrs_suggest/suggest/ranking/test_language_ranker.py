"""The ranker of one language: parts, replies without messages, pools, and its folder."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.language_ranker import (
    KINDS,
    PARTS,
    SAME_KIND,
    LanguageRanker,
    RankerSettings,
    kinds_of,
)
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.mixture import Mixture
from mrs_suggest.suggest.ranking.rankers import Rankers, save_rankers
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.ranking.trigger import Trigger
from mrs_suggest.suggest.reply_tags import ReplyTags

REPLIES = ["Yes, see you then!", "No, sorry.", "Thanks a lot!", "Where are you?", "Thanks a lot, friend!", "Who knows"]
MESSAGES = ["coming tonight?", "are you coming?", "here is your book", "I am late", "can you come?", "lost again"]
OF = [0, 0, 2, 3, 1, 3]  # the reply of each message; two replies have none


def made(
    names: tuple[str, ...] = tuple(PARTS), choice: str = "top", dimension: int | None = None, seed: int = 0,
    ngrams: bool = True,
) -> LanguageRanker:  # fmt: skip
    rng = np.random.default_rng(seed)
    vectors = {reply: torch.tensor(rng.normal(size=8), dtype=torch.float32) for reply in REPLIES}
    index = ResponseIndex.build(
        lambda texts: torch.stack([vectors[text] for text in texts]), REPLIES, log_probs=[-1.0, -2, -3, -4, -5, -6]
    )
    asked = rng.normal(size=(len(MESSAGES), 8)).astype(np.float32)
    memory = MessageMemory.build(MESSAGES, asked, OF, dimension=dimension, ngrams=ngrams)
    texts = ReplyNgrams.build(REPLIES, get_tokenizer("en"))
    ranker = LanguageRanker.build(index, memory, texts, RankerSettings(names, choice=choice))
    return replace(ranker, mixture=Mixture(dict.fromkeys(names, 1 / len(names))))


def vector(seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=8).astype(np.float32)


def test_parts_are_what_their_names_say() -> None:
    ranker, query = made(), vector()
    found = dict(zip(PARTS, ranker.parts("are you coming?", query).T, strict=True))
    np.testing.assert_allclose(found["direct"], ranker.index.vectors @ query, rtol=1e-5)
    assert found["tfidf_nearest"][0] == pytest.approx(1, abs=1e-4)
    assert found["log_prob"].tolist() == [-1, -2, -3, -4, -5, -6]
    nearest = dict(
        zip(ranker.memory.replies.tolist(), ranker.memory.nearest(ranker.memory.cosines(query)), strict=True)
    )
    for reply, value in nearest.items():
        assert found["nearest"][reply] == pytest.approx(value, abs=1e-6)
        assert found["votes"][reply] >= value - 1e-6  # a sum over messages, of which the nearest is one


def test_a_reply_without_messages_gets_a_share_of_the_nearest_ones_score() -> None:
    ranker = made(names=("nearest",))
    assert ranker.memory.replies[ranker.remembered[4]] == 2  # "Thanks a lot, friend!" is near "Thanks a lot!"
    assert 0 < ranker.share[4] < 1
    found = ranker.parts("x", vector())[:, 0]
    lowest = found[[0, 1, 2, 3]].min()
    assert found[4] == pytest.approx(lowest + ranker.share[4] * (found[2] - lowest), abs=1e-6)
    assert lowest <= found[4] <= max(found[2], lowest)


@pytest.mark.parametrize("choice", ["top", "expected"])
def test_suggestions_are_different_replies_with_probabilities_and_parts_that_add_up(choice: str) -> None:
    ranker, query = made(choice=choice), vector()
    found = ranker.suggest("are you coming?", query, 3)
    scores = ranker.rank("are you coming?", query)
    assert len({suggestion.reply for suggestion in found}) == 3
    assert found[0].reply == REPLIES[int(scores.argmax())] or choice == "expected"
    for suggestion in found:
        assert 0 < suggestion.score < 1
        assert sum(suggestion.parts.values()) == pytest.approx(scores[REPLIES.index(suggestion.reply)], abs=1e-5)
    assert len(ranker.suggest("?", query, 99)) == len(REPLIES)


def test_a_cluster_is_suggested_once() -> None:
    ranker = made()
    same = replace(ranker, index=replace(ranker.index, clusters=np.array([0, 1, 2, 3, 2, 0])))
    rows = [REPLIES.index(found.reply) for found in same.suggest("?", vector(), 6)]
    assert len(rows) == 4
    assert len({(0, 1, 2, 3, 2, 0)[row] for row in rows}) == 4


def test_pools_of_the_own_replies_are_ranked_as_they_are_suggested() -> None:
    ranker, query = made(), vector()
    known = ranker.known(["no sorry", "  YES, see you then! ", "Thanks a lot, friend!"])
    assert known.rows.tolist() == [1, 0, 4]
    assert known.share.tolist() == [1, 1, 1]
    rows = np.arange(3)
    direct = (ranker.index.vectors @ query)[known.rows]
    np.testing.assert_allclose(
        ranker.score_pool("coming?", query, known, rows, direct), ranker.rank("coming?", query)[known.rows], atol=1e-5
    )


def test_an_unknown_reply_is_ranked_below_the_known_one_that_it_resembles() -> None:
    ranker = made(("nearest",))
    query = ranker.memory.vectors[0]  # near the messages of the first reply
    known = ranker.known(["Yes, see you then, ok?", "Yes, see you then!"])
    unknown, own = ranker.score_pool("coming?", query, known, np.arange(2), np.zeros(2, np.float32))
    assert known.share[0] < 1
    assert unknown < own


def test_a_saved_ranker_answers_equally(tmp_path: Path) -> None:
    trigger = Trigger((1.0, 2.0, 3.0), -1.0, (0.0, 1.0), (0.25, 0.75), curve=((0.5, 0.25, 0.75),))
    for dimension in (None, 4):
        ranker = made(choice="expected", dimension=dimension, ngrams=dimension is None)
        ranker = replace(ranker, settings=replace(ranker.settings, trigger=None if dimension else trigger))
        save_rankers({"en": ranker}, tmp_path)
        assert load_file(tmp_path / "ranker" / "en.safetensors")["memory.vectors"].dtype == np.float16
        loaded = Rankers(tmp_path, {"en": ranker.index})["en"]
        for seed in range(5):
            before, after = (one.suggest("are you coming", vector(seed), 3) for one in (ranker, loaded))
            assert [s.reply for s in before] == [s.reply for s in after]
            assert [s.score for s in before] == pytest.approx([s.score for s in after], abs=1e-3)
            assert loaded.certainty("are you coming", vector(seed)) == pytest.approx(
                ranker.certainty("are you coming", vector(seed)), abs=1e-3
            )
        assert loaded.settings == ranker.settings


@pytest.mark.parametrize(
    ("damage", "names"),
    [
        (lambda folder: (folder / "ranker.json").write_text("{"), "ranker.json"),
        (lambda folder: _set(folder, choice="worst"), "ranker.json"),
        (lambda folder: _set(folder, names=["luck"]), "ranker.json"),
        (lambda folder: _set(folder, width=0), "width 0, expected 1 or more"),
        (lambda folder: _set(folder, width="40"), "ranker.json"),
        (lambda folder: (folder / "en.safetensors").unlink(), "en.safetensors"),
        (lambda folder: _cut(folder / "en.safetensors", "share"), "another response index"),
        (lambda folder: _cut(folder / "en.safetensors", "memory.starts"), "do not match"),
    ],
)
def test_a_damaged_ranker_is_refused_with_its_file(damage: object, names: str, tmp_path: Path) -> None:
    ranker = made()
    save_rankers({"en": ranker}, tmp_path)
    damage(tmp_path / "ranker")  # type: ignore[operator]
    with pytest.raises(InputError, match=names):
        Rankers(tmp_path, {"en": ranker.index})["en"]


def _set(folder: Path, **changes: object) -> None:
    path = folder / "ranker.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def _cut(path: Path, name: str) -> None:
    arrays = load_file(path)
    save_file({**arrays, name: arrays[name][:-1].copy()}, path)


def test_replies_of_one_kind_stand_for_each_other() -> None:
    ranker = made()
    tags = ReplyTags.of([["yes", "formal"], ["no"], ["yes"], ["formal"], []])
    kinds = kinds_of(tags)
    assert kinds is not None
    assert kinds.tolist() == [KINDS.index("yes"), KINDS.index("no"), KINDS.index("yes"), -1, -1]
    rows = np.arange(len(ranker.index.replies))
    plain = ranker.ngrams.similarities(rows)
    kinds = np.resize(kinds, len(rows))
    found = replace(ranker, kinds=kinds).similarities(rows)
    alike = (kinds[:, None] == kinds) & (kinds >= 0)
    assert (found[alike] >= SAME_KIND).all()
    np.testing.assert_array_equal(found[~alike], plain[~alike])
    assert kinds_of(ReplyTags.of([["formal"]])) is None
