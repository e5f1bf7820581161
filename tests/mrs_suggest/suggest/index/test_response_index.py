"""The response index against a brute force over all replies, and its files."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes

# Small whole numbers and quarters: every score is exact, so that ties are ties.
Logs = list[float | None]
entries = st.integers(-2, 2)
rows = st.lists(st.lists(entries, min_size=2, max_size=2), min_size=1, max_size=24)
log_probabilities = st.lists(st.sampled_from([None, -0.25, -1.0, -2.5]), min_size=24, max_size=24)


def index_of(
    vectors: list[list[int]], clusters: list[str] | None = None, log_probs: Logs | None = None, alpha: float = 0.0
) -> ResponseIndex:
    replies = [f"reply {number}" for number in range(len(vectors))]
    table = dict(zip(replies, vectors, strict=True))
    return ResponseIndex.build(
        lambda texts: torch.tensor([table[text] for text in texts], dtype=torch.float32),
        replies, clusters, log_probs, alpha,
    )  # fmt: skip


def brute_force(
    message: list[int], vectors: list[list[int]], clusters: list[str], log_probs: Logs, alpha: float, k: int
) -> list[tuple[int, float]]:
    """Every reply scored, sorted by score and number, the first of each cluster taken."""
    floor = min((p for p in log_probs if p is not None), default=0.0)
    scores = []
    for number, vector in enumerate(vectors):
        bonus = 0.0
        if alpha:
            own = log_probs[number]
            bonus = alpha * (floor if own is None else own)
        scores.append(message[0] * vector[0] + message[1] * vector[1] + bonus)
    taken: dict[str, tuple[int, float]] = {}
    for number in sorted(range(len(vectors)), key=lambda n: (-scores[n], n)):
        taken.setdefault(clusters[number], (number, scores[number]))
    return list(taken.values())[:k]


@given(
    vectors=rows, messages=rows, names=st.lists(st.sampled_from("abcde"), min_size=24, max_size=24),
    grouped=st.booleans(), log_probs=log_probabilities, alpha=st.sampled_from([0.0, 0.5, 2.0]), k=st.integers(1, 30),
)  # fmt: skip
def test_search_equals_brute_force(
    vectors: list[list[int]], messages: list[list[int]], names: list[str], grouped: bool, log_probs: Logs, alpha: float,
    k: int,
) -> None:  # fmt: skip
    n = len(vectors)
    bonus = log_probs[:n]
    if all(value is None for value in bonus):
        alpha = 0.0
    index = index_of(vectors, names[:n] if grouped else None, bonus, alpha)
    clusters = names[:n] if grouped else [str(number) for number in range(n)]
    numbers, scores = index.search(torch.tensor(messages, dtype=torch.float32), k)
    for row, values, message in zip(numbers, scores, messages, strict=True):
        expected = brute_force(message, vectors, clusters, bonus, alpha, k)
        assert list(zip(row.tolist(), values.tolist(), strict=True)) == expected


def test_one_cluster_that_fills_the_top_does_not_hide_the_others() -> None:
    vectors = [[100 - number] for number in range(100)] + [[-1], [-2]]
    index = index_of(vectors, ["yes"] * 100 + ["no", "maybe"])
    numbers, scores = index.search(torch.ones(1, 1), 3)
    assert numbers.tolist() == [[0, 100, 101]]
    assert scores.tolist() == [[100, -1, -2]]
    numbers, _ = index_of([[0]] * 5_000).search(torch.ones(3, 1), 4)
    assert numbers.tolist() == [[0, 1, 2, 3]] * 3


def test_duplicates_and_empty_replies_are_dropped() -> None:
    replies = ["", "Thanks!", "  ", "thanks", "No", "THANKS.", "\t", "no way", "No?"]
    index = ResponseIndex.build(lambda texts: torch.arange(len(texts)).float()[:, None], replies)
    assert index.replies == ["Thanks!", "No", "no way"]
    assert index.vectors.shape == (3, 1)
    numbers, _ = index.search(torch.ones(1, 1), 10)
    assert sorted(numbers[0].tolist()) == [0, 1, 2]


def test_clusters_and_bonus_follow_the_kept_replies() -> None:
    index = ResponseIndex.build(
        lambda texts: torch.zeros(len(texts), 1),
        ["", "Yes", "yes!", "No", "Maybe"], ["x", "p", "q", "n", "p"], [-9.0, -3.0, -1.0, -2.0, None], alpha=1.0,
    )  # fmt: skip
    assert index.replies == ["Yes", "No", "Maybe"]
    assert index.clusters[0] == index.clusters[2] != index.clusters[1]
    assert index.log_probs.tolist() == [-3.0, -2.0, -9.0]  # unknown: as the rarest of the set
    numbers, scores = index.search(torch.zeros(1, 1), 3)
    assert numbers.tolist() == [[1, 0]]
    assert scores.tolist() == [[-2.0, -3.0]]


def test_an_empty_set_and_a_bonus_without_log_probabilities_are_refused() -> None:
    for replies in ([], ["", "  "]):
        with pytest.raises(InputError, match="response set is empty"):
            ResponseIndex.build(lambda texts: torch.zeros(len(texts), 1), replies)
    for log_probs in (None, [None, None]):
        with pytest.raises(InputError, match=r"alpha = 0\.5 needs log-probabilities"):
            ResponseIndex.build(lambda texts: torch.zeros(len(texts), 1), ["a", "b"], None, log_probs, 0.5)


def test_save_and_load(tmp_path: Path) -> None:
    index = ResponseIndex.build(
        lambda texts: torch.tensor([[1.0, 2.0], [0.1, -3.0], [0.0, 4.0]]),
        ["¿Qué?", 'a "quoted"\nline', "はい 👍"], ["x", "y", "x"], [-1.0, None, -0.3], alpha=0.3,
    )  # fmt: skip
    index.save(tmp_path / "es")
    again = ResponseIndexes(tmp_path.parent)  # not this folder: below `response_index/` only
    assert "es" not in again
    loaded = ResponseIndex.load(tmp_path / "es")
    assert (loaded.replies, loaded.alpha) == (index.replies, index.alpha)
    for name in ("vectors", "clusters", "log_probs"):
        assert np.array_equal(getattr(loaded, name), getattr(index, name))
    query = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    assert loaded.search(query, 2)[0].tolist() == index.search(query, 2)[0].tolist()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def _change(key: str, value: object) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        facts = json.loads(path.read_text(encoding="utf-8"))
        facts[key] = value
        path.write_text(json.dumps(facts), encoding="utf-8")

    return change


DAMAGES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "vectors cut off": ("vectors.safetensors", _cut),
    "vectors empty": ("vectors.safetensors", lambda path: path.write_bytes(b"")),
    "vectors garbage": ("vectors.safetensors", lambda path: path.write_bytes(b"\xff" * 64)),
    "vectors missing": ("vectors.safetensors", Path.unlink),
    "replies cut off": ("replies.json", _cut),
    "replies not UTF-8": ("replies.json", lambda path: path.write_bytes(b'{"alpha": 0.0, "replies": ["\xff"]}')),
    "replies a list": ("replies.json", lambda path: path.write_text("[]")),
    "replies missing": ("replies.json", Path.unlink),
    "no alpha": ("replies.json", lambda path: path.write_text('{"replies": ["a", "b", "c"]}')),
    "fewer replies": ("replies.json", _change("replies", ["a"])),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused_in_a_sentence(tmp_path: Path, damage: str) -> None:
    index_of([[1], [2], [3]]).save(tmp_path / "es")
    name, change = DAMAGES[damage]
    change(tmp_path / "es" / name)
    with pytest.raises(InputError, match=r"copy it again from an intact copy, or train it again\.") as caught:
        ResponseIndex.load(tmp_path / "es")
    assert "\n" not in str(caught.value)
    assert str(tmp_path / "es") in str(caught.value)
