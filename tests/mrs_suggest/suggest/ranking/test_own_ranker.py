"""Replies without conversations: ranked by texts and examples, against foreign messages."""

from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.own_ranker import FITS, WEIGHTS, OwnRanker

WORDS = ("parcel", "money", "card", "weather", "cat", "dinner")
REPLIES = ["Your parcel is on its way.", "The money is back on your card.", "Have a nice day!"]
EXAMPLES = [["where is my parcel"], [], ["bye", "good night"]]
FOREIGN = ["the weather is nice", "my cat sleeps", "dinner at eight?", "the cat wants dinner", "what weather today"]


def encode(texts: list[str]) -> np.ndarray:
    """The words of each text, of any length but 0."""
    found = np.array([[word in text.lower() for word in WORDS] for text in texts], np.float32)
    return np.hstack([found, np.ones((len(texts), 1), np.float32)])


@pytest.fixture
def ranker() -> OwnRanker:
    return OwnRanker.build(ResponseIndex.build(encode, REPLIES), EXAMPLES, encode, FOREIGN)


def best(ranker: OwnRanker, message: str) -> list[str]:
    return [suggestion.reply for suggestion in ranker.suggest(message, encode([message])[0], 3)]


def test_texts_and_examples_decide(ranker: OwnRanker) -> None:
    assert best(ranker, "has my parcel been sent?")[0] == REPLIES[0]
    assert best(ranker, "no money on my card")[0] == REPLIES[1]
    assert best(ranker, "ok, good night")[0] == REPLIES[2]
    vectors = encode(FOREIGN)
    totals = np.stack([ranker.totals(ranker.parts(*row)) for row in zip(FOREIGN, vectors, strict=True)])
    assert totals.mean(0) == pytest.approx(np.zeros(3), abs=1e-4)
    assert totals.std(0) == pytest.approx(np.ones(3), abs=1e-3)
    assert ranker.levels[[0, -1]].tolist() == pytest.approx([totals.max(1).min(), totals.max(1).max()])
    raw = ranker.raw(FOREIGN[0], vectors[0])
    assert raw[1, 3:].tolist() == [-1, -1]  # no examples
    assert ranker.scales[1, 3:].tolist() == [0, 0]


def test_a_score_is_the_share_of_foreign_messages_whose_best_reply_fits_worse(ranker: OwnRanker) -> None:
    message = "where is my parcel"
    first, *_, last = ranker.suggest(message, encode([message])[0], 3)
    assert first.score == 1
    total = sum(last.parts.values())
    assert last.score == pytest.approx(np.interp(total, ranker.levels, np.linspace(0, 1, len(ranker.levels))), abs=1e-5)
    assert set(first.parts) == set(WEIGHTS)
    fitting = ranker.part(np.array([2, 0]), fitting=True)
    assert all(one.score >= FITS for one in fitting.suggest("my cat sleeps", encode(["my cat sleeps"])[0], 3))
    assert best(fitting, message) == [REPLIES[0], REPLIES[2]]


def test_it_is_stored_with_its_index(ranker: OwnRanker, tmp_path: Path) -> None:
    ranker.save(tmp_path)
    again = OwnRanker.load(tmp_path, ranker.index)
    for message in (*FOREIGN, "where is my parcel", "good night"):
        one, other = (some.suggest(message, encode([message])[0], 3) for some in (ranker, again))
        assert [suggestion.reply for suggestion in one] == [suggestion.reply for suggestion in other]
        assert [suggestion.score for suggestion in one] == pytest.approx([s.score for s in other], abs=0.01)
    with pytest.raises(InputError, match="made for another response index"):
        OwnRanker.load(tmp_path, ResponseIndex.build(encode, ["Yes."]))
    (tmp_path / "own.safetensors").write_bytes(b"?")
    with pytest.raises(InputError, match="damaged"):
        OwnRanker.load(tmp_path, ranker.index)
