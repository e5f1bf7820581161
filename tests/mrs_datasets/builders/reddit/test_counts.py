"""Counts of replies in bounded memory: whatever the budget, they are those of a Counter."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import counts as counts_module
from mrs_datasets.builders.reddit.counts import ReplyCounts
from mrs_datasets.prepared.responses import count_responses, response_table
from mrs_suggest.common.errors import InputError

# The same few replies again and again, others once; characters beyond 16 bits sort differently in UTF-16.
REPLIES = st.text("ab 日\U0001f600\ufffd", max_size=3) | st.sampled_from(["yes", "no"]) | st.text(max_size=40)
BUDGET = 1 << 16
BATCHES = st.lists(st.lists(REPLIES, max_size=12), max_size=12)


@pytest.fixture
def small_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few bytes be a budget."""
    monkeypatch.setattr(counts_module, "PARTS", 3)
    monkeypatch.setattr(counts_module, "_TABLE_BYTES", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counts")


def ordered(naive: Counter[str]) -> list[tuple[str, int]]:
    return sorted(naive.items(), key=lambda item: (-item[1], item[0]))


@settings(max_examples=60)
@given(
    st.lists(st.lists(REPLIES, max_size=12), max_size=12), st.integers(1, 4000), st.integers(0, 8), st.integers(1, 3)
)
@pytest.mark.usefixtures("small_budget")
def test_the_counts_are_those_of_a_counter(
    folder: Path, batches: list[list[str]], budget: int, most: int, min_count: int
) -> None:
    naive = Counter(reply for batch in batches for reply in batch)
    with ReplyCounts(budget, folder) as counts:
        for batch in batches:
            counts.add(batch)
        assert counts.frequent() == ordered(naive)
        assert (counts.pairs, counts.distinct) == (naive.total(), len(naive))
        frequent = [item for item in ordered(naive) if item[1] >= min_count]
        assert counts.frequent(min_count, most) == frequent[:most]
    assert list(folder.iterdir()) == []


@settings(max_examples=30)
@given(st.lists(REPLIES, max_size=40), st.lists(REPLIES, max_size=40), st.integers(1, 500))
@pytest.mark.usefixtures("small_budget")
def test_it_can_be_asked_in_between(folder: Path, before: list[str], after: list[str], budget: int) -> None:
    with ReplyCounts(budget, folder) as counts:
        assert (counts.pairs, counts.distinct, counts.frequent()) == (0, 0, [])
        counts.add(pa.array(before, pa.string()))
        assert counts.distinct == len(set(before))
        counts.add(pa.chunked_array([pa.array(after, pa.string())] * 2))
        assert counts.distinct == len({*before, *after})
        assert counts.frequent() == ordered(Counter(before + after + after))


def test_more_replies_than_the_budget_has_room_for(tmp_path: Path) -> None:
    draw = random.Random(0)
    replies = [f"reply {int(draw.paretovariate(0.4)) % 100_000}" for _ in range(60_000)]
    naive = Counter(replies)
    with ReplyCounts(BUDGET, tmp_path / "runs") as counts:
        for start in range(0, len(replies), 1000):
            counts.add(replies[start : start + 1000])
        assert sum(map(len, counts._pieces)) > 2 * counts_module.PARTS
        assert counts._held_bytes <= BUDGET
        assert counts.frequent(20, 50) == [item for item in ordered(naive) if item[1] >= 20][:50]
        assert (counts.pairs, counts.distinct) == (60_000, len(naive))
        table = response_table(counts.frequent(2, 100), counts.pairs, counts.distinct)
    assert table.equals(count_responses(naive, 2, 100))
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_reply_longer_than_the_budget_is_counted(tmp_path: Path) -> None:
    long = "ж" * BUDGET
    with ReplyCounts(BUDGET, tmp_path) as counts:
        for _ in range(3):
            counts.add([long, "no", long + "!"])
        assert counts.frequent(most=1) == [("no", 3)]
        assert counts.frequent(min_count=4) == []
        assert counts.distinct == 3


def test_what_cannot_be_is_refused_in_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="file: cannot be written"):
        ReplyCounts(BUDGET, file)


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with ReplyCounts(BUDGET, tmp_path) as counts:
        monkeypatch.setattr(pa.ipc, "new_stream", full)
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
            counts.add([f"reply number {number}" for number in range(5000)])
