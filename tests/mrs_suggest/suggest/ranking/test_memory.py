"""The message memory: equal to a loop over all messages, bounded by messages that stand for the others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.suggest.ranking.memory import MessageMemory


def made(
    seed: int, messages: int = 30, replies: int = 8, limit: int = 64
) -> tuple[MessageMemory, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(messages, 6)).astype(np.float32)
    numbers = rng.integers(0, replies, messages) * 3
    return MessageMemory.build([f"message {n}" for n in range(messages)], vectors, numbers, limit), vectors, numbers


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_search_is_exact(seed: int, messages: int) -> None:
    memory, vectors, numbers = made(seed, messages)
    query = np.random.default_rng(seed + 1).normal(size=6).astype(np.float32)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    nearest, votes = memory.nearest(memory.cosines(query)), memory.votes(memory.cosines(query), 0.1)
    assert memory.replies.tolist() == sorted(set(numbers.tolist()))
    for place, reply in enumerate(memory.replies):
        own = cosines[numbers == reply].astype(np.float64)
        group = memory.groups[place]
        assert nearest[group] == pytest.approx(own.max(), abs=2e-3)  # vectors are stored in float16
        assert votes[group] == pytest.approx(0.1 * np.log(np.exp(own / 0.1).sum()), abs=2e-3)


def test_a_memory_keeps_at_most_its_limit_of_each_reply() -> None:
    memory, _, numbers = made(2, messages=60, replies=3, limit=4)
    counts = np.diff([*memory.starts, len(memory.vectors)])
    assert counts.max() == 4
    assert memory.ngrams.size == len(memory.vectors) == counts.sum()
    assert set(memory.replies) == set(numbers)


def test_replies_to_the_same_messages_share_them() -> None:
    vectors = np.random.default_rng(5).normal(size=(3, 6)).astype(np.float32)
    texts, rows = ["a", "b", "c", "b", "a", "a"], [0, 1, 2, 1, 0, 0]
    memory = MessageMemory.build(texts, vectors[rows], [4, 4, 7, 9, 9, 8])  # 4 and 9 both received a and b
    assert memory.replies.tolist() == [4, 7, 8, 9]
    assert memory.groups.tolist() == [0, 1, 2, 0]
    assert len(memory.vectors) == 4
    assert memory.ngrams is not None
    assert memory.ngrams.size == 4


def test_equal_messages_are_recognised_when_vectors_are_shortened() -> None:
    """The last digits of a product of matrices depend on the place of a row."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(40, 384)).astype(np.float32)
    places = np.tile(np.arange(40), 31)  # each of 31 replies received the same 40 messages
    texts = [f"message {place}" for place in places]
    memory = MessageMemory.build(texts, vectors[places], np.repeat(np.arange(31), 40), dimension=47)
    assert (len(memory.vectors), len(memory.starts)) == (40, 1)


def test_arrays_come_back_and_are_checked() -> None:
    memory, _, _ = made(4)
    query = np.ones(6, np.float32)
    again = MessageMemory.from_arrays(memory.arrays())
    np.testing.assert_array_equal(again.nearest(again.cosines(query)), memory.nearest(memory.cosines(query)))
    with pytest.raises(ValueError, match="do not match"):
        MessageMemory.from_arrays({**memory.arrays(), "vectors": memory.vectors[:-1]})
    with pytest.raises(ValueError, match="one vector and one reply"):
        MessageMemory.build([], np.zeros((0, 6), np.float32), [])
